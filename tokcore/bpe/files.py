"""Vocabulary files of byte pair encoding: tokenizer.json, merges.txt with vocab.json, and codes.

Files are recognized by their content; JSON is parsed once for that. Its numbers are those that
`tokenizers` reads, whose JSON reader (serde_json, without the feature `float_roundtrip`) multiplies or
divides the digits by a power of ten, both in double precision. So a number of more than 15 digits may
differ in its last bit from the nearest one, and with it which of two ways to cut a text has the larger
score.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tokcore.bpe.codes import (
    SPECIAL_TOKENS,
    CodesVocabulary,
    NmtVocabulary,
    TextbookVocabulary,
    is_codes_file,
    is_textbook_file,
    parse_nmt_codes,
    parse_textbook_codes,
)
from tokcore.bpe.parsed_files import ParsedFile, keep_parsed, parsed_file
from tokcore.bpe.vocabulary import (
    FLAGS,
    AddedToken,
    BpeVocabulary,
    ModelRules,
    TokenizerParts,
    parse_parts,
    refuse,
    report_ignored,
)
from tokcore.encoding.vocabulary import ReadBeside, read_if_there, without_mark
from tokcore.errors import InputError

_MERGES, _ENTRIES = 'merges.txt', 'vocab.json'

CODES_SUFFIX, ENTRIES_SUFFIX = '.codes', '.vocab'

AnyVocabulary = BpeVocabulary | CodesVocabulary

_COUNTED = re.compile('.+ [0-9]+')

_LARGEST_ID = (1 << 31) - 2


def is_bpe_file(data: bytes) -> bool:
    """Whether a file is certainly a vocabulary of byte pair encoding."""
    data = without_mark(data)
    if is_codes_file(data):
        return True
    file = json_object(data)
    if file is None:
        return False
    # A vocab.json gives ids of entries, and is nothing else.
    return is_plain_bpe(file) or (bool(file) and all(type(id_) is int for id_ in file.values()))


def parse_bpe_file(data: bytes, path: str, read: ReadBeside = read_if_there) -> AnyVocabulary:
    """Returns the vocabulary of a tokenizer.json, a vocab.json, a merges.txt, or codes.

    vocab.json and merges.txt are read together, whichever is given; codes with the .vocab file beside
    them, if there is one, for the ids of their pieces.

    Raises:
        InputError: the file is none of these, or a part of it is not supported.
    """
    data = without_mark(data)
    if data.lstrip()[:1] == b'{' and not path.endswith(_MERGES):
        file = read_json(data, path)
        if is_tokenizer_json(file):
            return _tokenizer(data, path)
        merges = _beside(path, _ENTRIES, _MERGES)
        pairs = read(merges)
        if pairs is None:
            raise InputError(
                f'{path} has ids of entries and no merges; put its merges beside it, {merges}, or '
                'give a tokenizer.json'
            )
        return vocabulary_of_two_files(file, pairs, path, merges)
    if os.path.basename(path).endswith(_MERGES):
        entries = _beside(path, _MERGES, _ENTRIES)
        ids = read(entries)
        if ids is not None:
            return vocabulary_of_two_files(read_json(ids, entries), data, entries, path)
    if is_textbook_file(data):
        characters, codes = parse_textbook_codes(data, path)
        return TextbookVocabulary(codes, _entries(path, read), path, characters)
    if data.startswith(b'#version:') or is_codes_file(data):
        return NmtVocabulary(parse_nmt_codes(data, path), _entries(path, read), path)
    raise InputError(
        f'{path} is not a vocabulary of byte pair encoding; give a tokenizer.json, a vocab.json with '
        "its merges.txt beside it, or codes, whose first line is '#version: 0.2' (for ranks, "
        '`tokbeam export FILE --to huggingface` makes a tokenizer.json)'
    )


# A command parses a file for its options, and again for its vocabulary.
@functools.lru_cache(maxsize=2)
def _tokenizer(data: bytes, path: str) -> BpeVocabulary:
    vocabulary = parse_tokenizer(data, path)
    forget_json()
    return vocabulary


def files_of_vocabulary(path: str) -> tuple[str, ...]:
    """Returns a file, and the other one if it is a vocab.json or a merges.txt, which go together."""
    name = os.path.basename(path)
    for own, other in ((_ENTRIES, _MERGES), (_MERGES, _ENTRIES)):
        if name.endswith(own) and os.path.exists(beside := _beside(path, own, other)):
            return path, beside
    return (path,)


def entries_path(path: str) -> str:
    """Returns the path of the ids of codes: `X.vocab` beside `X.codes`.

    For the vocabulary of one side of a dataset it is `X.vocab.inputs` beside `X.codes.inputs`.
    """
    folder, name = os.path.split(path)
    stem, suffix, side = name.rpartition(CODES_SUFFIX)
    if suffix and side in ('', '.inputs', '.targets'):
        return os.path.join(folder, f'{stem}{ENTRIES_SUFFIX}{side}')
    return str(pathlib.PurePath(path).with_suffix(ENTRIES_SUFFIX))


def _beside(path: str, name: str, other: str) -> str:
    """Returns the path of the other of two files, whose names have the same prefix."""
    if not path.endswith(name):
        raise InputError(
            f'{path} has ids of entries and no model; give a tokenizer.json, or name it {name} and '
            f'put its {other} beside it'
        )
    return path.removesuffix(name) + other


def _entries(path: str, read: ReadBeside) -> tuple[str, ...] | None:
    beside = entries_path(path)
    data = None if beside == path else read(beside)
    if data is None:
        return None
    entries = tuple(_lines(data, beside, 'count the pieces again'))
    if entries and 2 * sum(map(bool, map(_COUNTED.fullmatch, entries))) > len(entries):
        raise InputError(
            f"{beside} has pieces and their counts, as subword-nmt's get-vocab writes them: "
            f'{entries[0]!r:.80}; its lines must be pieces alone, {" ".join(SPECIAL_TOKENS)} first'
        )
    return entries


def _lines(data: bytes, path: str, remedy: str) -> list[str]:
    try:
        lines = without_mark(data).decode('utf-8').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(f'{path} is not UTF-8 ({error.reason}); {remedy}') from None
    if lines[-1] == '':
        lines.pop()
    return [line.removesuffix('\r') for line in lines]


def is_tokenizer_json(file: Mapping[str, Any]) -> bool:
    """Whether an object is a tokenizer.json. In a vocab.json, `model` is a token with an id."""
    return isinstance(file.get('model'), dict)


def is_plain_bpe(file: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json is of BPE with parts and added tokens that a `BpeVocabulary` has.

    Others are read by the scheme `pretrained`.
    """
    if not is_tokenizer_json(file) or not is_bpe_model(file['model']):
        return False
    if file['model'].get('end_of_word_suffix'):
        return False
    try:
        parts = parse_parts(file, '')
    except InputError:
        return False
    if not parts.is_named:
        return False
    added = [token for token in file.get('added_tokens') or [] if isinstance(token, dict)]
    if any(token.get(flag) for token in added for flag in ('single_word', 'lstrip', 'rstrip')):
        return False
    # These are found before text is normalized, and rows of a block already are.
    return parts.form is None or all(
        token.get('special') or token.get('normalized') for token in added
    )


def is_bpe_model(model: Mapping[str, object]) -> bool:
    """Whether the model of a tokenizer.json is BPE."""
    # Files of tokenizers before 0.9 do not name the type.
    return model.get('type', 'BPE') == 'BPE' and 'merges' in model and 'vocab' in model


def parse_tokenizer(data: bytes, path: str) -> BpeVocabulary:
    """Returns the vocabulary of a tokenizer.json.

    Raises:
        InputError: the model is not BPE, or the file is damaged or has a part that is not supported.
    """
    file = read_json(data, path)
    model = file['model']
    if not is_bpe_model(model):
        refuse(path, '$.model', f'the model {model.get("type")}')
    if model.get('end_of_word_suffix'):
        raise InputError(
            f'{path}: the scheme bpe does not read $.model.end_of_word_suffix; give --scheme pretrained'
        )
    entries = model_entries(model, data, path)
    added = parse_added_tokens(file.get('added_tokens') or [], entries, path)
    vocabulary = model_vocabulary(model, entries, added, parse_parts(file, path), data, path)
    report_ignored(file, path)
    keep_tokenizer(data, file, vocabulary)
    return vocabulary


def model_entries(model: Mapping[str, Any], data: bytes, path: str) -> dict[str, int]:
    """Returns ids by entry of the model of BPE in a tokenizer.json.

    Raises:
        InputError: they are damaged.
    """
    parsed = parsed_file(data)
    if parsed is not None:
        return parsed.entries
    return parse_entries(model.get('vocab'), f'{path}: $.model.vocab')


def model_vocabulary(
    model: Mapping[str, Any],
    entries: Mapping[str, int],
    added: tuple[AddedToken, ...],
    parts: TokenizerParts,
    data: bytes,
    path: str,
) -> BpeVocabulary:
    """Returns the model of BPE in a tokenizer.json, with these parts.

    Raises:
        InputError: its merges are damaged, or one of its rules is not supported.
    """
    for name in ('dropout', 'continuing_subword_prefix'):
        if model.get(name):
            refuse(path, f'$.model.{name}', f'{name} {model[name]!r}')
    rules = ModelRules(
        model.get('unk_token'),
        *(bool(model.get(name)) for name in ('fuse_unk', 'byte_fallback', 'ignore_merges')),
    )
    if rules.unk_token is not None and rules.unk_token not in entries:
        refuse(path, '$.model.unk_token', f'the unknown token {rules.unk_token!r} without an id')
    parsed = parsed_file(data)
    if parsed is not None:
        vocabulary = BpeVocabulary(entries, parsed.merges, added, parts, rules)
        return vocabulary.knows_merge_ids(parsed.merge_ids)
    merges = check_merges(
        parse_merges(model.get('merges'), path), entries, f'{path}: $.model.merges'
    )
    return BpeVocabulary(entries, merges, added, parts, rules)


def keep_tokenizer(data: bytes, file: Mapping[str, Any], vocabulary: BpeVocabulary) -> None:
    """Keeps the model of a tokenizer.json, so that other processes need not parse the file again."""

    def parsed() -> ParsedFile:
        rest = {**file, 'model': {**file['model'], 'vocab': {}, 'merges': []}}
        entries = dict(vocabulary.entries)
        return ParsedFile(
            json.dumps(rest).encode(), entries, vocabulary.merges, vocabulary.merge_ids
        )

    keep_parsed(data, parsed)


def parse_entries(entries: object, where: str) -> dict[str, int]:
    """Returns ids by entry.

    Raises:
        InputError: this is not an object of distinct ids; the error names `where`.
    """
    if not isinstance(entries, dict) or not all(
        type(id_) is int and 0 <= id_ <= _LARGEST_ID for id_ in entries.values()
    ):
        raise InputError(f'{where} does not give ids of entries; give a whole file')
    if len(set(entries.values())) < len(entries):
        raise InputError(f'{where} gives the same id twice; give a file with an entry for each')
    check_largest_id(max(entries.values(), default=0), len(entries), where)
    return entries


def check_largest_id(largest: int, count: int, where: str) -> None:
    """Raises InputError if the largest of so many ids is far above their number, as tables have all."""
    if largest > 16 * count + 65_536:
        raise InputError(f'{where} has the id {largest} among {count} entries; number them')


def parse_merges(merges: object, path: str) -> Iterable[tuple[str, str]]:
    """Yields the merges of a tokenizer.json, pairs or strings; raises InputError for anything else."""
    if not isinstance(merges, list):
        raise InputError(f'{path}: $.model.merges is not a list; give a whole tokenizer.json')
    # There are some 200,000 of them, and as a rule all are of one kind.
    kinds = set(map(type, merges))
    pairs = [merge.split(' ') for merge in merges] if kinds == {str} else merges
    if kinds in ({str}, {list}) and set(map(len, pairs)) == {2}:
        if set(map(type, itertools.chain.from_iterable(pairs))) == {str}:
            yield from map(tuple, pairs)
            return
    for number, merge in enumerate(merges):
        pair = merge.split(' ') if isinstance(merge, str) else merge
        match pair:
            case [str(left), str(right)]:
                yield left, right
            case _:
                raise InputError(
                    f'{path}: {merge!r:.80} at $.model.merges[{number}] is not a pair; '
                    'give a whole tokenizer.json'
                )


def check_merges(
    merges: Iterable[tuple[str, str]], entries: Mapping[str, int], where: str
) -> tuple[tuple[str, str], ...]:
    """Returns the merges; their parts and results must be entries.

    Raises:
        InputError: one is not an entry; the error names `where` and the first such string.
    """
    checked = tuple(merges)
    used = {left for left, _ in checked} | {right for _, right in checked}
    used.update(left + right for left, right in checked)
    if used <= entries.keys():
        return checked
    for number, (left, right) in enumerate(checked):
        for entry in (left, right, left + right):
            if entry not in entries:
                raise InputError(
                    f'{where}[{number}]: {entry!r:.80} is not an entry of the vocabulary; give merges '
                    'and entries of the same model'
                )
    return checked


def parse_added_tokens(
    tokens: object, entries: Mapping[str, int], path: str
) -> tuple[AddedToken, ...]:
    """Returns the added tokens; `tokenizers` must give them the ids that the file does.

    From 0.22 on, it numbers those that are not entries from the number of entries on.
    """
    added: dict[str, AddedToken] = {}
    next_id = len(entries)
    for number, token in enumerate(tokens if isinstance(tokens, list) else []):
        where = f'$.added_tokens[{number}]'
        match token:
            case {'content': str(content), 'id': int(id_)}:
                flags = {name: bool(token.get(name, False)) for name in FLAGS}
            case _:
                raise InputError(f'{path}: {where} has no content and id; give a whole file')
        if not content or content in added:
            continue
        expected = entries.get(content, next_id)
        if id_ != expected:
            refuse(path, where, f'the id {id_} of {content!r:.80} (the next id is {expected})')
        added[content] = AddedToken(id_, content, **flags)
        next_id += content not in entries
    return tuple(added.values())


def parse_merges_txt(data: bytes, path: str) -> list[tuple[str, str]]:
    """Returns the merges of a merges.txt.

    Raises:
        InputError: a line is not a pair.
    """
    merges = []
    for number, line in enumerate(_lines(data, path, 'give a merges.txt'), 1):
        if line.startswith('#version'):
            continue
        pair = line.split(' ')
        if len(pair) != 2:
            raise InputError(
                f'{path}, line {number}: {line!r:.80} is not a pair; give a merges.txt'
            )
        merges.append((pair[0], pair[1]))
    return merges


def vocabulary_of_two_files(
    entries: object, merges: bytes, entries_path: str, merges_path: str
) -> BpeVocabulary:
    """Returns the vocabulary of a vocab.json, parsed, and a merges.txt: byte-level, as GPT-2's."""
    ids = parse_entries(entries, entries_path)
    pairs = check_merges(parse_merges_txt(merges, merges_path), ids, merges_path)
    return BpeVocabulary(ids, pairs, parts=TokenizerParts.of())


_NUMBER = re.compile(r'(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?')
_LARGEST_DIGITS = (1 << 64) - 1
_LARGEST_POWER = 308


def read_json(data: bytes, path: str) -> dict[str, Any]:
    """Returns the object of a JSON file, which is not to be changed.

    Of a file that was parsed before (`parsed_file`), its entries and merges are left out.

    Raises:
        InputError: it is not a JSON object.
    """
    try:
        value = _parsed(without_mark(data))
    except (ValueError, RecursionError) as error:
        raise InputError(f'{path} is not JSON ({error}); give a tokenizer.json') from None
    if not isinstance(value, dict):
        raise InputError(f'{path} is not a JSON object; give a tokenizer.json')
    return value


def json_object(data: bytes) -> dict[str, Any] | None:
    """Returns the object of a JSON file as `read_json`; None if it is not a JSON object."""
    data = without_mark(data)
    if data.lstrip()[:1] != b'{':
        return None
    try:
        return _parsed(data)
    except (ValueError, RecursionError):
        return None


def forget_json() -> None:
    """Frees the object that was parsed last, when its vocabulary has been made."""
    _parsed.cache_clear()


# Several schemes look at a file before one makes its vocabulary, and it may have 40 MB.
@functools.lru_cache(maxsize=1)
def _parsed(data: bytes) -> Any:
    parsed = parsed_file(data)
    if parsed is not None:
        return json.loads(parsed.rest)
    return json.loads(data, parse_float=rust_float)


def rust_float(text: str) -> float:
    """Returns the number that is written so, as `json.loads` takes it for `parse_float`."""
    match = _NUMBER.fullmatch(text)
    if match is None:  # NaN and infinities are no JSON
        return float(text)
    sign, whole, fraction, exponent = match.groups()
    fraction = fraction or ''
    digits, power = int(whole + fraction), int(exponent or 0) - len(fraction)
    while digits > _LARGEST_DIGITS and power < int(exponent or 0):
        # Digits after the point that do not fit are left out.
        digits //= 10
        power += 1
    if digits > _LARGEST_DIGITS:
        return float(text)
    value = float(digits)
    while value and power < -_LARGEST_POWER:
        value /= 1e308
        power += _LARGEST_POWER
    if value and power < 0:
        value /= float(f'1e{-power}')
    elif value:
        value *= float(f'1e{power}')
    return -value if sign else value
