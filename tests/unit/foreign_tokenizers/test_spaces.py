"""Where U+0020 stands for U+2581 in texts, ids are those of texts in which it is replaced."""

import itertools
import json

from hypothesis import example, given
from hypothesis import strategies as st
from rows_of_text import side_of

from tokcore.encoding.encoder import unknown_tokens
from tokcore.foreign_tokenizers.encoder import PretrainedEncoder
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.text.pre_tokenizer import TextRows

REPLACE = {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}
LLAMA = {'type': 'Sequence', 'normalizers': [{'type': 'Prepend', 'prepend': '▁'}, REPLACE]}
SPLIT = {'type': 'Split', 'pattern': {'String': ' '}, 'behavior': 'Isolated', 'invert': False}
ALPHABET = 'ab ▁,é字'
TEXTS = st.lists(st.text(ALPHABET + '?<x>\t😀', max_size=100), min_size=1, max_size=5)
PIECES = st.lists(st.text(ALPHABET, min_size=1, max_size=5), max_size=25, unique=True)


def metaspace(scheme):
    return {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': scheme, 'split': False}


PARTS = {
    'gemma': (REPLACE, SPLIT),
    'llama': (LLAMA, None),
    **{scheme: (None, metaspace(scheme)) for scheme in ('always', 'first', 'never')},
    'both': (LLAMA, metaspace('first')),
}


def vocabulary(pieces, parts, **model):
    """The BPE of pieces; all of their cuts are merges."""
    normalizer, pre_tokenizer = parts
    names = [f'<0x{byte:02X}>' for byte in range(256)]
    entries = {
        entry: id_ for id_, entry in enumerate(dict.fromkeys(['?', *ALPHABET, *names, *pieces]))
    }
    merges = [
        [piece[:cut], piece[cut:]]
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in entries and piece[cut:] in entries
    ]
    # Tokens that are found in normalized text need U+2581 there.
    found = [
        {'id': len(entries) + number, 'content': content, 'single_word': False, 'lstrip': False,
         'rstrip': False, 'normalized': normalized, 'special': False}
        for number, (content, normalized) in enumerate([('<x>', False), *model.pop('tokens', ())])
    ]  # fmt: skip
    file = {
        'version': '1.0', 'added_tokens': found, 'normalizer': normalizer,
        'pre_tokenizer': pre_tokenizer, 'post_processor': None, 'decoder': None,
        'model': {'type': 'BPE', 'unk_token': '?', 'vocab': entries, 'merges': merges, **model},
    }  # fmt: skip
    return parse_pretrained(json.dumps(file).encode(), 'tokenizer.json')


def ids_of(made, texts):
    encoded = PretrainedEncoder(made).encode_side(side_of(texts))
    bounds = encoded.offsets.tolist()
    return [encoded.ids[first:last].tolist() for first, last in itertools.pairwise(bounds)]


@given(PIECES, TEXTS, st.sampled_from([*PARTS]), st.booleans(), st.booleans())
@example(['▁a', ' a', 'a▁', '▁▁'], [' a ▁ a', '▁a', '', ' ', 'a  b ' * 100], 'first', True, True)
@example([], [' 😀 😀?▁😀 ', '<x> a<x>▁a<x>a'], 'always', True, False)
def test_ids_are_those_of_marks(pieces, texts, name, fuse, has_bytes):
    options = {'fuse_unk': fuse, 'byte_fallback': has_bytes}
    kept = vocabulary(pieces, PARTS[name], **options)
    replaced = vocabulary(pieces, PARTS[name], tokens=[('\x01', True)], **options)
    assert (kept.cutting.keeps_spaces, replaced.cutting.keeps_spaces) == (True, False)
    assert ids_of(kept, texts) == ids_of(replaced, texts)


def test_unknown_tokens_show_marks():
    made = vocabulary(['a▁'], PARTS['always'])
    assert made.cutting.keeps_spaces
    encoder, side = PretrainedEncoder(made), side_of(['a 😀 a▁', ' 😀'])
    counts = unknown_tokens(side, encoder.encode_side(side), *encoder.parts, 0, 9)
    assert dict(counts) == {'😀': 2}
    assert [parts.decode() for parts in shown(encoder, side)] == [
        '▁',
        'a▁',
        '😀',
        '▁',
        'a▁',
        '▁',
        '😀',
    ]


def shown(encoder, side):
    """The tokens of rows, as lists of unknown tokens have them."""
    pre_tokenizer, _ = encoder.parts
    listed, text = pre_tokenizer.prepare(TextRows(side.text, side.starts, side.ends))
    for start, end in zip(listed.starts.tolist(), listed.ends.tolist(), strict=True):
        yield text[start:end].tobytes()


def test_no_borders_in_rows_of_bytes():
    """Merges of bytes are not those of the characters that they are spelled by."""
    of_bytes = {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': False}
    made = vocabulary(['Ġ', 'aĠ'], (None, of_bytes))
    entries = made.entries
    assert ids_of(made, ['a a']) == [[entries['aĠ'], entries['a']]]
