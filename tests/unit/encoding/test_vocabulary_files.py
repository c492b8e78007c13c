"""Vocabulary files that Windows wrote, with CRLF and a byte order mark, are the same vocabularies."""

import base64
import json

import pytest

from tokcore.bpe.files import parse_bpe_file
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.schemes import find_scheme, schemes_of_file
from tokcore.text.byte_level import BYTE_TO_CHARACTER

MARK = b'\xef\xbb\xbf'
BYTES = [*BYTE_TO_CHARACTER.values()]
ENTRIES = {entry: id_ for id_, entry in enumerate([*BYTES, 'th'])}
TOKENIZER = {
    'added_tokens': [],
    'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False},
    'model': {'type': 'BPE', 'vocab': ENTRIES, 'merges': ['t h']},
}
UNIGRAM = {
    'pre_tokenizer': {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'always'},
    'model': {'type': 'Unigram', 'unk_id': 0, 'vocab': [['<unk>', 0.0], ['▁a', -1.0], ['b', -2.0]]},
}
RANKS = b''.join(b'%b %d\n' % (base64.b64encode(bytes([byte])), byte) for byte in range(256))


def as_json(value):
    return json.dumps(value, indent=1).encode()


FILES = {
    'subword': ('subword', b"'<pad>_'\n'<EOS>_'\n'the_'\n"),
    'wordpiece': ('wordpiece', b'[UNK]\n[CLS]\n[SEP]\nthe\n##n\n'),
    'word': ('word', b'<unk>\n<s>\n</s>\nthe\n'),
    'bpe': ('bpe', as_json(TOKENIZER)),
    'pretrained': ('pretrained', as_json(UNIGRAM)),
    'ranks': ('pretrained', RANKS),
}


@pytest.mark.parametrize(('scheme', 'data'), FILES.values(), ids=FILES)
@pytest.mark.parametrize('mark', [b'', MARK])
def test_files_of_one_vocabulary(scheme, data, mark):
    options = {'pattern': 'gpt2'} if data == RANKS else {}
    made = find_scheme(scheme, **options)
    windows = mark + data.replace(b'\n', b'\r\n')
    assert schemes_of_file(windows) == schemes_of_file(data) == [scheme]
    pieces = made.parse(data, 'file').pieces
    assert list(made.parse(windows, 'file').pieces) == list(pieces)
    assert list(made.parse(mark + data, 'file').pieces) == list(pieces)


@pytest.mark.parametrize('mark', [b'', MARK])
def test_files_that_go_together(mark):
    files = {'vocab.json': as_json(ENTRIES), 'merges.txt': b'#version: 0.2\nt h\n'}
    windows = {name: mark + data.replace(b'\n', b'\r\n') for name, data in files.items()}
    for name in files:
        read = parse_bpe_file(windows[name], name, windows.get)
        assert (read.entries, read.merges) == (ENTRIES, (('t', 'h'),))
    codes = {'a.codes': b'#version: 0.2\nt h\n', 'a.vocab': b'<unk>\nth@@\ne\n'}
    windows = {name: mark + data.replace(b'\n', b'\r\n') for name, data in codes.items()}
    read = parse_bpe_file(windows['a.codes'], 'a.codes', windows.get)
    assert (read.merges, read.entries) == ((('t', 'h'),), ('<unk>', 'th@@', 'e'))


def test_counts_in_place_of_ids_of_codes_are_refused():
    files = {'a.vocab': b'th@@ 33\ne 4\n'}
    with pytest.raises(
        InputError, match="a.vocab has .* get-vocab writes them: 'th@@ 33'; its lines"
    ):
        parse_bpe_file(b'#version: 0.2\nt h\n', 'a.codes', files.get)


def test_a_file_with_a_mark_is_dumped_without_it():
    data = as_json(UNIGRAM)
    assert parse_pretrained(MARK + data, 'file').dump() == data
