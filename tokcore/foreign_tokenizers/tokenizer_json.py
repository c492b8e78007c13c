"""A tokenizer.json of Hugging Face, with models BPE, WordPiece, WordLevel and Unigram, and its decoders.

Words of byte pair encoding may end with a suffix, `</w>` of GPT-1, CLIP and HerBERT. The last unit of
such a word, a byte or a character, is another entry than the same unit within a word: `e</w>` and `e`.
As in subword-nmt's codes, a symbol is the number of a unit, plus `CODE_POINTS` if it is the last; other
entries have the numbers after these.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokcore.bpe.files import (
    is_bpe_model,
    keep_tokenizer,
    model_entries,
    model_vocabulary,
    parse_added_tokens,
    parse_entries,
)
from tokcore.bpe.model import MergeModel
from tokcore.bpe.model_kernels import numbered_units
from tokcore.bpe.offsets import trims_of
from tokcore.bpe.vocabulary import (
    BpeVocabulary,
    TokenizerParts,
    expression_tree,
    flattened,
    parse_template,
    part_type,
    refuse,
    report_ignored,
)
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.borders import NO_BORDERS, BorderPreTokenizer, borders_of_merges
from tokcore.foreign_tokenizers.normalizers import text_steps
from tokcore.foreign_tokenizers.pre_tokenizers import MARK, Cutting, parse_cutting
from tokcore.foreign_tokenizers.vocabulary import JoinTokens, PretrainedVocabulary
from tokcore.text.byte_level import BYTE_TO_CHARACTER, CHARACTER_TO_BYTE
from tokcore.text.pre_tokenizer import PreTokenizer, RowTokens
from tokcore.text.regex_splits import (
    BEHAVIORS,
    ByteSplitPreTokenizer,
    Split,
    SplitPreTokenizer,
    replacing,
)
from tokcore.text.unicode import CODE_POINTS
from tokcore.wordpiece.vocabulary import WITHOUT_SPACE

if typing.TYPE_CHECKING:
    from tokcore.encoding.kernels import Model


def parse_tokenizer_json(file: Mapping[str, Any], data: bytes, path: str) -> PretrainedVocabulary:
    """Returns the vocabulary of a tokenizer.json, read as JSON.

    Raises:
        InputError: the file is damaged, or has a part that is not supported.
    """
    model = file['model']
    cutting = parse_cutting(file.get('pre_tokenizer'), path, '$.pre_tokenizer')
    steps = text_steps(file.get('normalizer'), path, '$.normalizer')
    kind = 'BPE' if is_bpe_model(model) else model.get('type', 'WordPiece')
    if kind == 'Unigram':
        entries, scores, unk_token = _scored_entries(model, path)
    else:
        entries = (
            model_entries(model, data, path)
            if kind == 'BPE'
            else parse_entries(model.get('vocab'), f'{path}: $.model.vocab')
        )
        unk_token = model.get('unk_token')
        if not isinstance(unk_token, str | None):
            refuse(path, '$.model.unk_token', f'{unk_token!r:.80} for an entry')
    added = parse_added_tokens(file.get('added_tokens') or [], entries, path)
    if cutting.byte_level and kind != 'BPE':
        refuse(path, '$.pre_tokenizer', f'ByteLevel with the model {kind}')
    prefix = suffix = ''
    if kind == 'BPE':
        parts = TokenizerParts(byte_level=cutting.byte_level)
        merged = model_vocabulary(model, entries, (), parts, data, path)
        is_plain = '▁' in entries and not any(token.normalized for token in added)
        suffix = checked_suffix(model, merged, path)
        if not suffix:  # a row that is cut would have several ends
            cutting, is_last_left_out = _faster_cutting(
                merged, cutting, file.get('normalizer'), is_plain
            )
            steps = steps[: len(steps) - is_last_left_out]
        make_model: Any = functools.partial(_merge_model, merged, cutting, suffix)
    elif kind == 'Unigram':
        make_model = functools.partial(_unigram_model, model, entries, scores, unk_token)
    elif kind == 'WordPiece':
        prefix, longest = _wordpiece_rules(model, path)
        make_model = functools.partial(_wordpiece_model, entries, unk_token, prefix, longest)
    elif kind == 'WordLevel':
        make_model = functools.partial(_word_model, entries, unk_token)
    else:
        refuse(path, '$.model', f'the model {kind}')
    decoder = file.get('decoder')
    is_byte_level = isinstance(decoder, dict) and decoder.get('type') == 'ByteLevel'
    template = parse_template(file.get('post_processor'), path, '$.post_processor')
    vocabulary = PretrainedVocabulary(
        data,
        entries,
        added,
        make_model,
        cutting,
        tuple(steps),
        None if is_byte_level else decoder_steps(decoder, path),
        template,
        unk_token,
        joiner=prefix,
        suffix=suffix,
        trims=tuple(trims_of(file.get('post_processor'))),
    )
    report_ignored(file, path)
    for id_ in (*template.before, *template.after):
        if not 0 <= id_ < vocabulary.vocab_size:
            refuse(path, '$.post_processor', f'the id {id_}, which no token has,')
    if kind == 'BPE':
        keep_tokenizer(data, file, merged)
    return vocabulary


def _merge_model(vocabulary: BpeVocabulary, cutting: Cutting, suffix: str) -> Model:
    if suffix:
        return suffix_model(vocabulary, suffix)
    if isinstance(cutting.pre_tokenizer, ByteSplitPreTokenizer):
        return vocabulary.model.with_split_characters()
    return vocabulary.model.with_spaces() if cutting.keeps_spaces else vocabulary.model


def _faster_cutting(
    vocabulary: BpeVocabulary, cutting: Cutting, normalizer: Any, may_keep_spaces: bool
) -> tuple[Cutting, bool]:
    """Returns the cutting of whole rows at borders, where that changes no ids.

    Also whether it takes the place of the last normalizer.
    """
    replaces_spaces = _leaves_no_spaces(normalizer)
    whole_rows: list[PreTokenizer] = [RowTokens()]
    if replaces_spaces:  # then Gemma's pre-tokenizer does nothing
        whole_rows += [SplitPreTokenizer((Split(r'\ ', behavior),)) for behavior in BEHAVIORS]
    if cutting.pre_tokenizer not in whole_rows or cutting.byte_level:
        return cutting, False
    keeps_spaces = may_keep_spaces and (replaces_spaces or cutting.spaces == MARK)
    borders = borders_of_merges(vocabulary, keeps_spaces)
    keeps_spaces &= borders is not NO_BORDERS
    cutting = dataclasses.replace(
        cutting, pre_tokenizer=BorderPreTokenizer(borders), keeps_spaces=keeps_spaces
    )
    if keeps_spaces and cutting.spaces == MARK:
        cutting = dataclasses.replace(cutting, spaces=' ', prefix=' ')
    return cutting, keeps_spaces and replaces_spaces


def _leaves_no_spaces(normalizer: Any) -> bool:
    """Whether the last normalizer replaces each U+0020 by a mark."""
    members = normalizer.get('normalizers') if isinstance(normalizer, dict) else None
    last = members[-1] if isinstance(members, list) and members else normalizer
    match last:
        case {'type': 'Replace', 'pattern': {'String': ' '}, 'content': content}:
            return content == MARK
    return False


def _wordpiece_rules(model: Mapping[str, Any], path: str) -> tuple[str, int]:
    """Returns the prefix of entries that continue a word, and the most characters that a word may have."""
    prefix = model.get('continuing_subword_prefix', '##')
    if not isinstance(prefix, str):
        refuse(path, '$.model.continuing_subword_prefix', f'{prefix!r:.80} for a string')
    longest = model.get('max_input_chars_per_word', 100)
    if type(longest) is not int or not 0 <= longest < 1 << 31:
        refuse(path, '$.model.max_input_chars_per_word', f'{longest!r:.80} for a number')
    return prefix, longest


def _wordpiece_model(
    entries: Mapping[str, int], unk_token: str | None, prefix: str, longest: int
) -> Model:
    from tokcore.wordpiece.model import WordPieceModel, double_array_trie

    trie = double_array_trie(entries.items(), prefix)
    unknown = entries.get(unk_token) if isinstance(unk_token, str) else None
    return WordPieceModel(trie, 1 + max(entries.values(), default=-1), unknown, longest)


def _scored_entries(
    model: Mapping[str, Any], path: str
) -> tuple[dict[str, int], list[float], str | None]:
    """Returns the entries of a Unigram model with their ids, their scores, and the unknown token."""
    pairs = model.get('vocab')
    if not isinstance(pairs, list):
        raise InputError(f'{path}: $.model.vocab is not a list; give a whole tokenizer.json')
    entries: dict[str, int] = {}
    scores: list[float] = []
    for id_, pair in enumerate(pairs):
        match pair:
            case [str(entry), int() | float() as score] if entry and math.isfinite(score):
                pass
            case _:
                raise InputError(
                    f'{path}: {pair!r:.80} at $.model.vocab[{id_}] is not an entry and its score; '
                    'give a whole tokenizer.json'
                )
        if entries.setdefault(entry, id_) != id_:
            refuse(path, f'$.model.vocab[{id_}]', f'the entry {entry!r:.80} a second time')
        scores.append(float(score))
    unknown = model.get('unk_id')
    if unknown is None:
        return entries, scores, None
    if type(unknown) is not int or not 0 <= unknown < len(pairs):
        raise InputError(
            f'{path}: $.model.unk_id is {unknown!r:.80}, and there are {len(pairs)} entries; give a '
            'whole tokenizer.json'
        )
    return entries, scores, pairs[unknown][0]


def _unigram_model(
    model: Mapping[str, Any],
    entries: Mapping[str, int],
    scores: Sequence[float],
    unk_token: str | None,
) -> Model:
    from tokcore.foreign_tokenizers.unigram import UnigramModel, unknown_score

    fallback = (
        [entries.get(f'<0x{byte:02X}>', -1) for byte in range(256)]
        if model.get('byte_fallback')
        else []
    )
    unknown = None if unk_token is None else entries[unk_token]
    return UnigramModel(entries, scores, unknown_score(scores), unknown, fallback)


def _word_model(entries: Mapping[str, int], unk_token: str | None) -> Model:
    from tokcore.word.model import WordModel

    words = [''] * (1 + max(entries.values(), default=-1))
    for entry, id_ in entries.items():
        words[id_] = entry
    unknown = entries.get(unk_token) if isinstance(unk_token, str) else None
    return WordModel(words, unknown)


_BYTE = re.compile(r'<0x([0-9A-Fa-f]{2})>')

_WITHOUT_SPACE = (*WITHOUT_SPACE, (' do not', " don't"))


def decoder_steps(part: Any, path: str) -> tuple[JoinTokens, ...]:
    """Returns the steps of a decoder, in their order; without one, tokens are joined by spaces.

    A decoder changes no ids, so a step that is not supported refuses to decode, and not the file.
    """
    steps: list[JoinTokens] = []
    for member, where in flattened(part, 'decoders', path, '$.decoder'):
        try:
            steps.append(_decoder_step(member, path, where))
        except InputError:
            what = f'{path}: the decoder {member!r:.120} at {where}'
            steps.append(functools.partial(_refuse_to_decode, what=what))
    return tuple(steps) if part is not None else (_spaced,)


def _decoder_step(part: Mapping[str, Any], path: str, where: str) -> JoinTokens:
    kind = part_type(part, path, where)
    match kind:
        case 'ByteLevel':
            return _byte_level
        case 'ByteFallback':
            return _byte_fallback
        case 'BPEDecoder':
            return functools.partial(_without_suffixes, suffix=str(part.get('suffix', '</w>')))
        case 'Fuse':
            return lambda tokens: [''.join(tokens)]
        case 'Replace':
            content = str(part.get('content'))
            match part.get('pattern'):
                case {'String': str(text)}:
                    return lambda tokens: [token.replace(text, content) for token in tokens]
                case {'Regex': str(expression)}:
                    replaced = replacing(expression_tree(expression, path, where), content)
                    return lambda tokens: [*map(replaced, tokens)]
        case 'Strip':
            start, stop = part.get('start', 0), part.get('stop', 0)
            for name, number in (('start', start), ('stop', stop)):
                if type(number) is not int or number < 0:
                    refuse(path, f'{where}.{name}', f'{number!r:.80} for a number')
            content = str(part.get('content', ' '))
            return functools.partial(_stripped, content=content, start=start, stop=stop)
        case 'Metaspace':
            mark = str(part.get('replacement', '▁'))
            scheme = part.get('prepend_scheme', 'always')
            return functools.partial(_marks, mark=mark, drops_first=scheme != 'never')
        case 'WordPiece':
            prefix = str(part.get('prefix', '##'))
            return functools.partial(
                _wordpiece, prefix=prefix, cleans=bool(part.get('cleanup', True))
            )
    refuse(path, where, f'the decoder {kind}')


def _refuse_to_decode(tokens: list[str], what: str) -> list[str]:
    raise InputError(
        f'{what} is not supported, so its ids cannot be made text; decode with the tokenizers that the '
        'file was made for'
    )


def _spaced(tokens: list[str]) -> list[str]:
    return [' '.join(tokens)]


def _byte_level(tokens: list[str]) -> list[str]:
    data = b''.join(
        bytes(CHARACTER_TO_BYTE[character] for character in token)
        if all(character in CHARACTER_TO_BYTE for character in token)
        else token.encode('utf-8', 'surrogatepass')
        for token in tokens
    )
    return [data.decode('utf-8', 'replace')]


def _byte_fallback(tokens: list[str]) -> list[str]:
    joined: list[str] = []
    pending = bytearray()

    def flush() -> None:
        try:
            joined.extend([pending.decode()] if pending else [])
        except UnicodeDecodeError:
            joined.extend('�' * len(pending))
        pending.clear()

    for token in tokens:
        match = _BYTE.fullmatch(token)
        if match:
            pending.append(int(match[1], 16))
        else:
            flush()
            joined.append(token)
    flush()
    return joined


def _stripped(tokens: list[str], content: str, start: int, stop: int) -> list[str]:
    stripped = []
    for token in tokens:
        first, last = 0, len(token)
        while first < min(start, len(token)) and token[first] == content:
            first += 1
        while last > max(first, len(token) - stop) and token[last - 1] == content:
            last -= 1
        stripped.append(token[first:last])
    return stripped


def _marks(tokens: list[str], mark: str, drops_first: bool) -> list[str]:
    spaced = [token.replace(mark, ' ') for token in tokens]
    if spaced and drops_first:
        spaced[0] = tokens[0].replace(mark, '')
    return spaced


def _wordpiece(tokens: list[str], prefix: str, cleans: bool) -> list[str]:
    joined = []
    for number, token in enumerate(tokens):
        if number:
            token = token.removeprefix(prefix) if token.startswith(prefix) else f' {token}'
        if cleans:
            for spaced, without in _WITHOUT_SPACE:
                token = token.replace(spaced, without)
        joined.append(token)
    return joined


def _without_suffixes(tokens: list[str], suffix: str) -> list[str]:
    spaced = [token.replace(suffix, ' ') for token in tokens[:-1]]
    return spaced + [token.replace(suffix, '') for token in tokens[-1:]]


def checked_suffix(model: Mapping[str, Any], vocabulary: BpeVocabulary, path: str) -> str:
    """Returns the suffix of the model of a tokenizer.json; '' if it has none.

    Raises:
        InputError: the model has a rule that is not supported with a suffix.
    """
    suffix, rules = model.get('end_of_word_suffix') or '', vocabulary.rules
    odd = [name for name in ('fuse_unk', 'byte_fallback', 'ignore_merges') if getattr(rules, name)]
    if rules.unk_token is None:
        odd.append('no unk_token')
    if suffix and any(rules.unk_token in pair for pair in vocabulary.merges):
        odd.append('a merge of unk_token')
    if suffix and (odd or not isinstance(suffix, str)):
        what = ' and '.join([f'the suffix {suffix!r:.80}', *odd])
        refuse(path, '$.model.end_of_word_suffix', what)
    return suffix


def suffix_model(vocabulary: BpeVocabulary, suffix: str) -> MergeModel:
    """Returns the model of a vocabulary whose suffix was checked."""
    byte_level, entries = vocabulary.parts.byte_level, vocabulary.entries
    symbols: dict[str, int] = {}
    others = 2 * CODE_POINTS
    for entry in entries:
        unit = entry if len(entry) == 1 else entry.removesuffix(suffix)
        if len(unit) == 1 and (unit in CHARACTER_TO_BYTE or not byte_level):
            code = CHARACTER_TO_BYTE[unit] if byte_level else ord(unit)
            symbols[entry] = code + CODE_POINTS * (unit != entry)
        else:
            symbols[entry] = others
            others += 1
    assert vocabulary.rules.unk_token is not None  # it was checked
    outputs = np.full(others, entries[vocabulary.rules.unk_token], np.int32)
    outputs[[*symbols.values()]] = [*entries.values()]
    merges = [
        (symbols[left], symbols[right], symbols[left + right]) for left, right in vocabulary.merges
    ]
    alphabet = [BYTE_TO_CHARACTER[byte] for byte in range(256)]
    units = numbered_units(alphabet if byte_level else ())
    return MergeModel(merges, units, size=vocabulary.vocab_size, outputs=outputs)
