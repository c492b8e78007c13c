"""A page that shows the pieces and ids of a vocabulary for any text, without a server.

The page holds the vocabulary, the categories of characters in this Python's Unicode, and sample lines with
their ids. Its script is a plain form of each scheme. In a browser that encodes one of the lines differently
it shows nothing but that.
"""

import base64
import importlib.resources
import itertools
import json
import typing
import zlib
from collections.abc import Sequence
from typing import Any

from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import NO_TEMPLATE, Vocabulary
from tokcore.errors import InputError
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.bert_plain import CJK_RANGES
from tokcore.text.byte_level import BYTE_TO_CHARACTER, CHARACTER_TO_BYTE
from tokcore.text.expressions import oniguruma
from tokcore.text.patterns import DEFINITIONS, DIGITS, expressions_of
from tokcore.text.split_sequence import pre_tokenizer_of
from tokcore.text.unicode import CODE_POINTS, UNICODE_VERSION, category_table
from tokcore.wordpiece.scheme import WordPieceScheme
from tokcore.wordpiece.vocabulary import MAX_WORD_LENGTH, WordPieceVocabulary

_KNOWN = {*DIGITS.values()}.union(*(pattern.expressions for pattern in DEFINITIONS.values()))

# Safari before 26 has no `(?i:`, where ſ is an s. What follows a possessive part never matches its end.
_ANY_CASE = "(?:'[sdmtSDMTſ]|'[lL][lL]|'[vV][eE]|'[rR][eE])"
_IN_JAVASCRIPT = {
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)": _ANY_CASE, "'(?i:[sdmt]|ll|ve|re)": _ANY_CASE,
    '?+': '?', '++': '+', ']*+': ']*',
}  # fmt: skip


def playground_page(
    scheme: Scheme, vocabulary: Vocabulary, name: str, samples: Sequence[tuple[str, list[int]]]
) -> bytes:
    """Returns the page of a vocabulary.

    Args:
        scheme: of the vocabulary, with its options.
        vocabulary: the entries.
        name: the title.
        samples: lines and their ids; the page begins with the first two.

    Raises:
        InputError: the page would not encode all text exactly; the sentence says why.
    """
    letters = category_table().tobytes().decode()
    categories = map(''.join, zip(letters[::2], letters[1::2], strict=True))
    data = {
        'name': name, 'size': vocabulary.vocab_size, 'unicode': UNICODE_VERSION, 'samples': samples,
        'categories': [(category, len([*run])) for category, run in itertools.groupby(categories)],
        'pieces': vocabulary.pieces, 'contents': {}, 'unknown': vocabulary.special_ids.unknown,
        **_rules(scheme, vocabulary),
    }  # fmt: skip
    packed = base64.b64encode(zlib.compress(json.dumps(data, separators=(',', ':')).encode(), 9))
    page = importlib.resources.files('pipelines.export').joinpath('playground.html').read_bytes()
    return page.replace(b'DATA', packed, 1)


def _rules(scheme: Scheme, vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns what the page needs to know of a scheme, and how it is called there."""
    around = NO_TEMPLATE  # as `SubwordTextEncoder.encode` has it
    match scheme, vocabulary:
        case _, SubwordTextEncoder():
            rules = {'kind': 'subword', 'label': "Tensor2Tensor's subwords"}
        case WordPieceScheme(), WordPieceVocabulary():
            rules, around = _wordpiece(scheme, vocabulary), scheme.template(vocabulary)
        case _, BpeVocabulary():
            rules, around = _bpe(vocabulary), vocabulary.template
        case _:
            _refuse('the page has subword, wordpiece and byte-level BPE only')
    return {**rules, 'before': around.before, 'after': around.after}


def _wordpiece(scheme: WordPieceScheme, vocabulary: WordPieceVocabulary) -> dict[str, Any]:
    if scheme.normalizer_kind != 'bert':
        _refuse('the page has no final sigma, as bert-original has')
    rules = scheme.pre_tokenizer
    characters = map(chr, range(CODE_POINTS))
    return {
        'kind': 'wordpiece', 'label': f'WordPiece{" in lower case" * rules.lower_case}',
        'joiner': vocabulary.joiner, 'most': MAX_WORD_LENGTH,
        'lower': [(c, c.lower()) for c in characters if rules.lower_case and c != c.lower()],
        'strips': rules.lower_case if rules.strip_accents is None else rules.strip_accents,
        'ideographs': CJK_RANGES if rules.split_cjk else (),
    }  # fmt: skip


def _bpe(vocabulary: BpeVocabulary) -> dict[str, Any]:
    parts, ids = vocabulary.parts, vocabulary.entries
    expressions = expressions_of(parts.patterns)
    # The classes of characters are those of the page where there is a kernel.
    has_kernel = not expressions or pre_tokenizer_of([*map(oniguruma, expressions)]) is not None
    if not has_kernel or not _KNOWN.issuperset(expressions):
        _refuse(f'the page has named patterns, and digits before one, not {parts.patterns!r:.200}')
    by_id = {id_: piece for piece, id_ in ids.items()}
    if not parts.byte_level or not CHARACTER_TO_BYTE.keys() <= ids.keys() or len(by_id) < len(ids):
        _refuse('the page has only byte-level BPE, with one id for each byte and each entry')
    results = [ids[left + right] for left, right in vocabulary.merges]
    numbered = zip(results, [0, *results], vocabulary.merges)  # noqa: B905 - the last is one before none
    found = [token for token in vocabulary.added if not token.special]
    for token in found:
        if token.single_word or token.lstrip or token.rstrip:
            _refuse(f'the page has no single_word, lstrip and rstrip, as {token.content!r:.80} has')
        for each in vocabulary.added:
            if each.special and each.normalized == token.normalized and _hides(each, token):
                _refuse(f'the page would find {token.content!r:.80} in {each.content!r:.80}')
    for old, new in _IN_JAVASCRIPT.items():
        expressions = tuple(expression.replace(old, new) for expression in expressions)
    return {
        'kind': 'bpe', 'label': f'byte-level BPE · pattern {" and ".join(parts.patterns)}',
        'pieces': [by_id.get(id_, '') for id_ in range(1 + max(by_id))],
        'contents': {token.id: token.content for token in vocabulary.added},
        'added': [[(token.content, token.id) for token in found if token.normalized == late] for late in (0, 1)],
        'merges': [(result - before, len(left)) for result, before, (left, _) in numbered],
        'bytes': [BYTE_TO_CHARACTER[byte] for byte in range(256)],
        'patterns': expressions, 'form': parts.form, 'prefix': parts.add_prefix_space,
        'whole': vocabulary.rules.ignore_merges,
    }  # fmt: skip


def _hides(special: AddedToken, token: AddedToken) -> bool:
    """Whether a token may begin in a special token, which is text."""
    text, content = special.content, token.content
    return any(
        text.startswith(content, start) or (start and content.startswith(text[start:]))
        for start in range(len(text))
    )


def _refuse(why: str) -> typing.NoReturn:
    raise InputError(f'--to playground cannot hold this vocabulary: {why}; give another target')
