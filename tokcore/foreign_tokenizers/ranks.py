"""Files of ranks: tiktoken's, lines of a token in base64 and its rank, and Mistral's tekken.json.

Two neighbors are merged if together they are a token, those of the lowest rank first; a word that is
a token is not merged. The ids of tokens are their ranks; in tekken.json special tokens come before.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tokcore.bpe.files import check_largest_id
from tokcore.bpe.parsed_files import ParsedFile, keep_parsed, parsed_file
from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary, ModelRules, TokenizerParts
from tokcore.encoding.document_ends import ENDS_OF_RANKS
from tokcore.encoding.hub_folders import GPT_END
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.pre_tokenizers import Cutting
from tokcore.foreign_tokenizers.vocabulary import PretrainedVocabulary
from tokcore.text.byte_level import spelled
from tokcore.text.expression_trees import Tree, leaves_text, may_be_empty
from tokcore.text.expression_trees import spelled as spelled_tree
from tokcore.text.expressions import ExpressionError, fancy_regex
from tokcore.text.patterns import DEFINITIONS, Pattern, named_pattern
from tokcore.text.pre_tokenizer import PreTokenizer
from tokcore.text.regex_splits import Split, SplitPreTokenizer
from tokcore.text.split_sequence import pattern_pre_tokenizer

_BASE64 = rb'(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)'
_LINES = re.compile(rb'(?:%s \d+\r?\n){4}' % _BASE64)
_LARGEST_ID = (1 << 31) - 2


def is_tiktoken_file(data: bytes) -> bool:
    """Whether a file begins with four lines of a token in base64 and its rank."""
    return _LINES.match(data) is not None


def parse_tiktoken(data: bytes, path: str, pattern: str | None) -> PretrainedVocabulary:
    """Returns the vocabulary of a file of tiktoken; of special tokens it has at most `<|endoftext|>`.

    `pattern` is the name of a pattern or a regular expression, which the file does not state.

    Raises:
        InputError: the file is damaged, or there is no pattern.
    """
    if not pattern:
        raise InputError(
            f'{path} has ranks of tokens, and does not state the pattern that cuts text into them; '
            f'give --pattern, one of {", ".join(DEFINITIONS)}, or a regular expression'
        )
    parsed = parsed_file(data)
    if parsed is None:
        parsed = _merged(_ranks(data, path), 0, b'', path)
        keep_parsed(data, lambda: parsed)
    read = _read_pattern(pattern, path)
    end = ENDS_OF_RANKS.get((read, len(parsed.entries))) if isinstance(read, str) else None
    special = () if end is None else (AddedToken(end, GPT_END),)
    return _vocabulary(parsed, special, read, data)


def _ranks(data: bytes, path: str) -> dict[bytes, int]:
    """Returns the ranks by token of a file of tiktoken."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b'\n'), 1):
        fields = line.split()
        if not fields:
            continue
        try:
            # Whisper's files have an empty token, which is written so.
            token = b'' if fields[0] == b'=' else base64.b64decode(fields[0], validate=True)
            rank = int(fields[1])
        except (IndexError, ValueError):
            token, rank = b'', -1
        if len(fields) != 2 or not 0 <= rank <= _LARGEST_ID:
            raise InputError(
                f'{path}, line {number}: {line[:80]!r} is not a token in base64 and its rank; give '
                'a file of tiktoken'
            )
        if ranks.setdefault(token, rank) != rank:
            raise InputError(f'{path}, line {number}: the token has a rank already; {_REMEDY}')
    return ranks


_REMEDY = 'give a whole file'


def is_tekken(file: Mapping[str, Any]) -> bool:
    """Whether a JSON file is Mistral's."""
    return isinstance(file.get('config'), dict) and isinstance(file.get('vocab'), list)


def parse_tekken(file: Mapping[str, Any], data: bytes, path: str) -> PretrainedVocabulary:
    """Returns the vocabulary of a tekken.json, read as JSON.

    Raises:
        InputError: the file is damaged.
    """
    config = file['config']
    match config:
        case {
            'pattern': str(pattern),
            'default_vocab_size': int(size),
            'default_num_special_tokens': int(special_size),
        } if pattern and 0 <= special_size <= size <= _LARGEST_ID:
            pass
        case _:
            raise InputError(f'{path}: $.config has no pattern or sizes; {_REMEDY}')
    parsed = parsed_file(data)
    if parsed is None:  # else `read_json` left out the entries
        check_largest_id(size, len(file['vocab']), f'{path}: $.config')
        ranks = _tekken_ranks(file['vocab'][: size - special_size], path)
        rest = json.dumps({**file, 'vocab': []}).encode()
        parsed = _merged(ranks, special_size, rest, path)
        keep_parsed(data, lambda: parsed)
    special = _special_tokens(file.get('special_tokens'), special_size, path)
    return _vocabulary(parsed, special, _read_pattern(pattern, path), data)


def _tekken_ranks(tokens: Sequence[Any], path: str) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, token in enumerate(tokens):
        try:
            value = base64.b64decode(token['token_bytes'], validate=True)
            rank = token['rank']
        except (KeyError, TypeError, ValueError):
            value, rank = b'', -1
        if rank != number or not value or value in ranks:
            raise InputError(f'{path}: $.vocab[{number}] is not a token with its rank; {_REMEDY}')
        ranks[value] = rank
    return ranks


_OLD_SPECIAL_TOKENS = (
    '<unk>', '<s>', '</s>', '[INST]', '[/INST]', '[AVAILABLE_TOOLS]', '[/AVAILABLE_TOOLS]',
    '[TOOL_RESULTS]', '[/TOOL_RESULTS]', '[TOOL_CALLS]', '[IMG]', '<pad>', '[IMG_BREAK]',
    '[IMG_END]', '[PREFIX]', '[MIDDLE]', '[SUFFIX]', '[SYSTEM_PROMPT]', '[/SYSTEM_PROMPT]',
    '[TOOL_CONTENT]',
)  # fmt: skip
"""Special tokens where a file does not list them; the rest are `<SPECIAL_20>` and so on."""


def _special_tokens(tokens: Any, size: int, path: str) -> tuple[AddedToken, ...]:
    known = _OLD_SPECIAL_TOKENS[:size] if tokens is None else ()
    names = [*known, *(f'<SPECIAL_{number}>' for number in range(len(known), size))]
    if tokens is not None:
        for number, token in enumerate(tokens if isinstance(tokens, list) else [None]):
            match token:
                case {'rank': int(rank), 'token_str': str(name)} if 0 <= rank < size:
                    names[rank] = name
                case _:
                    raise InputError(f'{path}: $.special_tokens[{number}] has no rank; {_REMEDY}')
    return tuple(AddedToken(number, name) for number, name in enumerate(names))


def _merged(ranks: Mapping[bytes, int], first: int, rest: bytes, path: str) -> ParsedFile:
    """Returns the entries of ranks, whose ids begin at `first`, and their merges."""
    ordered = sorted(ranks, key=ranks.__getitem__)
    if len({*ranks.values()}) < len(ranks):
        raise InputError(f'{path} gives the same rank twice; {_REMEDY}')
    spellings = {token: spelled(token) for token in ordered}
    entries = {spellings[token]: ranks[token] + first for token in ordered}
    check_largest_id(max(ranks.values(), default=0), len(ranks), path)
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise InputError(f'{path} has no token for the byte {missing[0]:#x}; {_REMEDY}')
    merges = tuple(
        (spellings[token[:cut]], spellings[token[cut:]])
        for token in ordered
        for cut in range(1, len(token))
        if token[:cut] in ranks and token[cut:] in ranks
    )
    return ParsedFile(rest, entries, merges, BpeVocabulary(entries, merges).merge_ids)


def _vocabulary(
    parsed: ParsedFile,
    special: tuple[AddedToken, ...],
    pattern: Pattern | Tree,
    data: bytes,
) -> PretrainedVocabulary:
    rules = ModelRules(ignore_merges=True, ranks_of_results=True)
    parts = TokenizerParts(byte_level=True)
    vocabulary = BpeVocabulary(parsed.entries, parsed.merges, special, parts, rules)
    vocabulary.knows_merge_ids(parsed.merge_ids)
    return PretrainedVocabulary(
        data,
        parsed.entries,
        special,
        functools.partial(getattr, vocabulary, 'model'),
        Cutting(pre_tokenizer=_pre_tokenizer(pattern), byte_level=True),
        joins_surrogates=True,
    )


def _read_pattern(pattern: str, path: str) -> Pattern | Tree:
    """Returns the name of a pattern, or the tree of an expression that has no name."""
    if name := next((name for name in DEFINITIONS if name == pattern), None):
        return name
    try:
        tree = fancy_regex(pattern)
        if may_be_empty(tree):
            raise ExpressionError(0, 'a match without text')
    except ExpressionError as error:
        raise InputError(
            f'{pattern!r:.80} of {path} is neither a pattern, one of {", ".join(DEFINITIONS)}, nor '
            f'a regular expression that is known here ({error})'
        ) from None
    return named_pattern([tree]) or tree


def _pre_tokenizer(pattern: Pattern | Tree) -> PreTokenizer:
    if isinstance(pattern, str):
        return pattern_pre_tokenizer(pattern)
    # tiktoken takes the matches, and text between them is lost.
    split = Split(spelled_tree(pattern), 'Removed', True)
    return SplitPreTokenizer((split,), loses_text=leaves_text(pattern))
