"""A vocabulary written as another tool's files, and proved by that tool on a sample of text.

A folder opens as it stands. What a tool's files cannot hold is refused by a sentence.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import dataclasses
import functools
import json
import logging
import os
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.artifacts.vocabularies import read_vocabulary, scheme_of
from pipelines.cli.terminal import print_lines
from pipelines.export.playground import playground_page
from pipelines.files import filesystem
from pipelines.files.vocabulary_files import vocabulary_path
from tokcore.bpe.codes import NmtVocabulary
from tokcore.bpe.extension import reason_against_rounds
from tokcore.bpe.files import is_tokenizer_json
from tokcore.bpe.scheme import SCHEME as BPE_SCHEME
from tokcore.bpe.shrinking import last_merge
from tokcore.bpe.vocabulary import (
    AddedToken,
    BpeVocabulary,
    EntriesWithAddedTokens,
    ModelRules,
    TokenizerParts,
)
from tokcore.encoding.hub_folders import (
    CONFIG_NAME,
    TOKENIZER_NAME,
    ExportTarget,
    tokenizer_config,
)
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.process_end import temporary_folder
from tokcore.text.byte_level import ALPHABET, token_bytes
from tokcore.text.expressions import fancy_regex
from tokcore.text.patterns import DEFINITIONS, PATTERNS, named_pattern
from tokcore.tokenizers import BpeTokenizer, tokenizer_of
from tokcore.wordpiece.scheme import WordPieceScheme
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

if typing.TYPE_CHECKING:
    from tokcore.foreign_tokenizers.vocabulary import PretrainedVocabulary


def export(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Writes the folder, proved or not; returns the command's status.

    Raises:
        InputError: the tool cannot hold the vocabulary, or encodes the sample otherwise.
    """
    path = vocabulary_path(options.path)
    folder = filesystem.absolute(options.output)
    if '://' in folder:
        raise InputError('export writes to this machine; give a path here, and copy the folder')
    if os.path.lexists(folder):
        raise InputError(f'{folder} is there already; give another --output, or remove it')
    parent, name = os.path.split(folder)
    target: ExportTarget = options.to
    scheme = scheme_of([path], options.scheme, vars(options))
    vocabulary = read_vocabulary(path, scheme).entries
    files = exported_files(scheme, vocabulary, target, name)
    os.makedirs(parent, exist_ok=True)
    with temporary_folder('.tokbeam-export-', parent) as attempt:
        for file, data in files.items():
            place = os.path.join(attempt, file)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, 'wb') as written:
                written.write(data)
        try:
            lines: int | None = prove(attempt, scheme, vocabulary, target, name)
        except ImportError:
            lines = None
        os.chmod(attempt, 0o755)
        os.rename(attempt, folder)
    print_lines(_outcome(folder, sorted(files), target, lines))
    return 0


def _outcome(
    folder: str, files: Sequence[str], target: ExportTarget, lines: int | None
) -> Iterator[str]:
    yield f'{folder}: {", ".join(files)}'
    library, _, opening = _TARGETS[target]
    if opening is None:
        yield 'the page compares itself with tokbeam on sample lines whenever a browser opens it'
    elif lines is None:
        yield f"UNPROVED: install '{library}', and the sample is encoded with it"
    else:
        yield f'proved: {library.partition("<")[0]} encodes {lines:,} lines as tokbeam does'


_LOGGER = logging.getLogger(__name__)

_PIECES_OF_SAMPLE = 4_000
_PIECES_OF_LINE = 8
_LINES_OF_PAGE = 100
_LINES = (
    'The quick brown fox jumps over the lazy dog; it\'s 12,345.67 dollars (or "so").',
    'Größe, élan, naïve und cafe\u0301: ÀÇ ΟΔΟΣ, Привет мир! שלום العالم',
    '漢字とかな、中文没有空格。한국어 텍스트 नमस्ते ไทย',
    'def f(x):\treturn x[1]  # HelloWorld  snake_case ▁ @@ </w> ##s',
    '🙂👍🏽 \u200d \u00a0 ½ ﬁ ǅ',
    '   leading, trailing   ',
)


def exported_files(
    scheme: Scheme, vocabulary: Vocabulary, target: ExportTarget, name: str
) -> Mapping[str, bytes]:
    """Returns the files of a vocabulary for a tool, by their paths in a folder.

    Args:
        scheme: of the vocabulary, with its options.
        vocabulary: the entries.
        target: the tool.
        name: of the folder; tiktoken calls the encoding so.

    Raises:
        InputError: the tool's files cannot hold the vocabulary; the sentence says why.
    """
    return _TARGETS[target][1](scheme, vocabulary, name)


def prove(
    folder: str, scheme: Scheme, vocabulary: Vocabulary, target: ExportTarget, name: str
) -> int:
    """Encodes a sample with a tool from its folder and compares it with what is encoded here.

    Returns the number of lines that were compared.

    Raises:
        ImportError: the tool is not installed, or is a browser.
        InputError: a line is encoded otherwise.
    """
    if target == 'huggingface' and isinstance(vocabulary, NmtVocabulary):
        vocabulary = vocabulary.with_all_symbols()
    opening = _TARGETS[target][2]
    if opening is None:
        raise ImportError('a browser opens the page later')
    try:
        theirs = opening(folder, name)
    except ImportError:
        raise
    except Exception as error:  # each library has errors of its own
        raise InputError(
            f'{target} cannot open the folder ({error!s:.300}); give a vocabulary that it can open'
        ) from error
    # BertTokenizer finds special tokens in text, whatever its options are.
    allowed = {'allow_special_tokens': True} if target == 'vocab.txt' else {}
    # What is a BpeTokenizer's alone is asked of one below: these tools hold nothing else.
    tokenizer = typing.cast(BpeTokenizer, tokenizer_of(vocabulary, scheme, **allowed))
    ours: Callable[[str], object] = tokenizer.encode
    if target == 'subword-nmt':
        ours = tokenizer.tokenize
    elif target == 'tiktoken':
        ours = functools.partial(tokenizer.encode, add_special_tokens=False)
    lines = sample_lines(vocabulary)
    for line in lines:
        try:
            actual = ours(line)
        except ValueError as error:  # a part of it has no ids
            raise InputError(
                f'{line!r:.80} cannot be encoded ({error!s:.300}); give a vocabulary that has a token '
                'for unknown text'
            ) from error
        try:
            expected = theirs(line)
        except Exception as error:  # likewise
            raise InputError(
                f'{target} cannot encode {line!r:.80} ({error!s:.300}), which has ids here; its files '
                'cannot hold this vocabulary'
            ) from error
        if expected != actual:
            raise InputError(
                f'{target} would encode {line!r:.200} otherwise: as {expected!r:.200}, and here it is '
                f'{actual!r:.200}; its files cannot hold this vocabulary'
            )
    return len(lines)


def sample_lines(vocabulary: Vocabulary) -> list[str]:
    """Returns lines in several scripts, and lines of the texts of up to 4,000 entries."""
    size = vocabulary.vocab_size
    ids = range(0, size, -(-size // _PIECES_OF_SAMPLE) or 1)
    texts = [vocabulary.decode([id_]).replace('\n', ' ').replace('\r', ' ') for id_ in ids]
    of_pieces = [
        separator.join(texts[first : first + _PIECES_OF_LINE])
        for first in range(0, len(texts), _PIECES_OF_LINE)
        for separator in ('', ' ')
    ]
    return [*_LINES, *of_pieces]


def _refuse(target: ExportTarget, why: str) -> typing.NoReturn:
    raise InputError(f'--to {target} cannot hold this vocabulary: {why}; give another target')


def _is_foreign(vocabulary: Vocabulary) -> typing.TypeGuard[PretrainedVocabulary]:
    """Whether a vocabulary is of `foreign_tokenizers`, which need not be there."""
    return isinstance(vocabulary, EntriesWithAddedTokens) and not isinstance(
        vocabulary, BpeVocabulary
    )


def _huggingface(
    scheme: Scheme, vocabulary: Vocabulary, name: str, target: ExportTarget = 'huggingface'
) -> Mapping[str, bytes]:
    if _is_foreign(vocabulary):
        data = vocabulary.dump()
        file = json.loads(data) if data.lstrip()[:1] == b'{' else {}
        if not is_tokenizer_json(file):
            data = _of_ranks(vocabulary, file, target).dump()
        special = [token.content for token in vocabulary.added if token.special]
        return {TOKENIZER_NAME: data, CONFIG_NAME: tokenizer_config(special)}
    if isinstance(vocabulary, NmtVocabulary):
        return _of_codes(vocabulary)
    files = scheme.tokenizer_files(vocabulary)
    if not files:
        _refuse('huggingface', f'the scheme {scheme.name} has no tokenizer.json for it')
    return files


def _of_ranks(
    vocabulary: PretrainedVocabulary, tekken: Mapping[str, Any], target: ExportTarget
) -> BpeVocabulary:
    """Returns ranks as a tokenizer.json has them: a merge for each token, in the order of ranks.

    A token is always the result of the same merge, so no two merges of equal result compete.
    """
    if vocabulary.is_sentencepiece:
        _refuse(target, "a SentencePiece model's normalizer and scores are not converted")
    pattern = vocabulary.pattern or tekken['config']['pattern']
    name = pattern if pattern in PATTERNS else named_pattern([fancy_regex(pattern)])
    if name is None:
        _refuse(target, f'{pattern!r:.80} is written for another engine of expressions')
    if {token.content for token in vocabulary.added} & vocabulary.entries.keys():
        _refuse(target, 'a special token is spelled as the bytes of another token')
    ids = vocabulary.entries
    tokens = sorted(ids, key=ids.__getitem__)
    merges = filter(
        None, (last_merge(token, lambda *pair: ids.get(''.join(pair))) for token in tokens)
    )
    entries = {**{token.content: token.id for token in vocabulary.added}, **ids}
    rules = ModelRules(ignore_merges=True)
    return BpeVocabulary(
        entries, tuple(merges), vocabulary.added, TokenizerParts.of((name,)), rules
    )


_WORDS: Mapping[str, Any] = {
    'normalizer': None,
    'pre_tokenizer': {
        'type': 'Split', 'pattern': {'String': ' '}, 'behavior': 'Removed', 'invert': False,
    },
    'post_processor': None,
    'decoder': {'type': 'BPEDecoder', 'suffix': '</w>'},
}  # fmt: skip
"""The parts of a tokenizer.json that do what codes do."""


def _of_codes(codes: NmtVocabulary) -> Mapping[str, bytes]:
    """Returns the files of codes of subword-nmt, in a tokenizer.json as words that end in `</w>`."""
    whole = codes.with_all_symbols()
    ids, unknown = whole.ids_of_symbols(), whole.special_ids.unknown
    added = tuple(
        AddedToken(id_, whole.pieces[id_]) for id_ in whole.special_ids if id_ is not None
    )
    entries = {**{token.content: token.id for token in added}, **ids}
    symbols = {text for pair in whole.merges for text in (*pair, ''.join(pair))}
    is_one_to_one = len({*entries.values()}) == len(added) + len(ids) and symbols <= ids.keys()
    if unknown is None or not is_one_to_one:
        _refuse(
            'huggingface', 'it has no <unk>, or a piece is spelled as another or a special token'
        )
    if reason := reason_against_rounds(BpeVocabulary(entries, whole.merges)):
        _refuse('huggingface', reason)
    if whole != codes:
        _LOGGER.warning(
            'pieces that the .vocab file lacks are <unk> here, and have ids from %d on in the '
            'tokenizer.json',
            codes.vocab_size,
        )
    parts, rules = TokenizerParts((), False, components=_WORDS), ModelRules(whole.pieces[unknown])
    file = json.loads(BpeVocabulary(entries, whole.merges, added, parts, rules).dump())
    file['model']['end_of_word_suffix'] = '</w>'
    return {
        TOKENIZER_NAME: json.dumps(file, indent=2, ensure_ascii=False).encode(),
        CONFIG_NAME: tokenizer_config(token.content for token in added),
    }


def _open_huggingface(folder: str, name: str) -> Callable[[str], object]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f'{folder}/{TOKENIZER_NAME}')
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda line: tokenizer.encode(line).ids


_ANYTHING = r'[\s\S]+'
"""An expression for text that is not cut, since tiktoken needs one."""


def _tiktoken(scheme: Scheme, vocabulary: Vocabulary, name: str) -> Mapping[str, bytes]:
    if _is_foreign(vocabulary) and vocabulary.pattern is not None:
        ranks, pattern = vocabulary.data, str(vocabulary.pattern)
    elif isinstance(vocabulary, BpeVocabulary) and vocabulary.parts.byte_level:
        if not vocabulary.parts.is_named:
            _refuse('tiktoken', 'its patterns are several, or an expression for another engine')
        ranks, pattern = _ranks(vocabulary), vocabulary.parts.patterns[0]
    else:
        _refuse('tiktoken', 'it is not byte-level BPE of the scheme bpe, nor a file of ranks')
    ordinary = [token.content for token in vocabulary.added if not token.special]
    if ordinary:
        _refuse('tiktoken', f'{ordinary[0]!r:.80} is found in any text, as no token of tiktoken is')
    special = {token.content: token.id for token in vocabulary.added}
    expressions: tuple[str, ...] = (pattern,)
    if pattern in PATTERNS:
        expressions = DEFINITIONS[pattern].expressions or (_ANYTHING,)
    if len(expressions) > 1:
        _refuse('tiktoken', f'the pattern {pattern} is several expressions, and tiktoken has one')
    module = _EXTENSION.format(
        name=name, file=f'{name}.tiktoken', pattern=expressions[0], special=special
    )
    return {
        f'{name}.tiktoken': ranks,
        f'tiktoken_ext/{_module_name(name)}.py': module.encode(),
    }


_EXTENSION = '''"""Lets `tiktoken.get_encoding({name!r})` work where the folder above is on Python's path."""

import base64
import pathlib


def _encoding():
    lines = (pathlib.Path(__file__).parents[1] / {file!r}).read_bytes().splitlines()
    return {{
        'name': {name!r},
        'pat_str': {pattern!r},
        'mergeable_ranks': {{
            base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)
        }},
        'special_tokens': {special!r},
    }}


ENCODING_CONSTRUCTORS = {{{name!r}: _encoding}}
'''


def _module_name(name: str) -> str:
    return 'tokbeam_' + re.sub(r'\W', '_', name, flags=re.ASCII)


def _ranks(vocabulary: BpeVocabulary) -> bytes:
    """Returns the ids of entries as ranks."""
    ids = vocabulary.entries
    if vocabulary.parts.form is not None or vocabulary.parts.add_prefix_space:
        _refuse('tiktoken', 'text is normalized or gets a space first, and tiktoken does not')
    if not ids.keys() >= {*ALPHABET}:
        _refuse('tiktoken', 'a byte has no entry, and tiktoken needs one for each')
    results = [ids[left + right] for left, right in vocabulary.merges]
    if any(second < first for first, second in zip(results, results[1:], strict=False)):
        _refuse('tiktoken', 'its merges are not in the order of ids, and tiktoken merges by ids')
    tokens = {
        token_bytes(entry): ids[entry]
        for entry in [*ALPHABET, *(left + right for left, right in vocabulary.merges)]
    }
    lines = [
        base64.b64encode(token) + b' %d\n' % id_
        for token, id_ in sorted(tokens.items(), key=lambda item: item[1])
    ]
    return b''.join(lines)


def _open_tiktoken(folder: str, name: str) -> Callable[[str], object]:
    import runpy

    import tiktoken

    module = runpy.run_path(f'{folder}/tiktoken_ext/{_module_name(name)}.py')
    return tiktoken.Encoding(**module['ENCODING_CONSTRUCTORS'][name]()).encode_ordinary


def _sentencepiece(scheme: Scheme, vocabulary: Vocabulary, name: str) -> Mapping[str, bytes]:
    if _is_foreign(vocabulary) and vocabulary.is_sentencepiece:
        return {'tokenizer.model': vocabulary.data}
    _refuse('sentencepiece', 'it has no scores of pieces and no such normalizer')


def _open_sentencepiece(folder: str, name: str) -> Callable[[str], object]:
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=f'{folder}/tokenizer.model').encode


def _vocab_txt(scheme: Scheme, vocabulary: Vocabulary, name: str) -> Mapping[str, bytes]:
    if not isinstance(vocabulary, WordPieceVocabulary) or not isinstance(scheme, WordPieceScheme):
        _refuse('vocab.txt', 'it is not of WordPiece')
    if scheme.normalizer_kind != 'bert' or vocabulary.joiner != '##':
        _refuse('vocab.txt', "its rules or its joiner are not those of transformers' BertTokenizer")
    for id_, piece in enumerate(vocabulary.pieces):
        if not piece or piece.strip() != piece or vocabulary.ids[piece] != id_:
            _refuse('vocab.txt', f'the entry {id_}, {piece!r:.80}, is blank or there twice')
    config = {
        'do_lower_case': scheme.lower_case,
        'strip_accents': scheme.pre_tokenizer.strip_accents,
        'tokenize_chinese_chars': scheme.split_cjk,
        'tokenizer_class': 'BertTokenizer',
    }
    return {
        'vocab.txt': ''.join(f'{piece}\n' for piece in vocabulary.pieces).encode(),
        CONFIG_NAME: f'{json.dumps(config, indent=2)}\n'.encode(),
    }


def _open_vocab_txt(folder: str, name: str) -> Callable[[str], object]:
    from transformers import BertTokenizer

    return BertTokenizer.from_pretrained(folder).encode


def _subword_nmt(scheme: Scheme, vocabulary: Vocabulary, name: str) -> Mapping[str, bytes]:
    if not isinstance(vocabulary, NmtVocabulary):
        _refuse('subword-nmt', 'its files hold merges of characters whose words end with </w>')
    return {'bpe.codes': vocabulary.dump()}


def _open_subword_nmt(folder: str, name: str) -> Callable[[str], object]:
    from subword_nmt.apply_bpe import BPE

    with open(f'{folder}/bpe.codes', encoding='utf-8') as file:
        segmenter = BPE(file)
    # It keeps spaces around a line, which are not pieces.
    return lambda line: [piece for piece in segmenter.process_line(line).split(' ') if piece]


def _playground(scheme: Scheme, vocabulary: Vocabulary, name: str) -> Mapping[str, bytes]:
    encode, lines = tokenizer_of(vocabulary, scheme).encode, sample_lines(vocabulary)
    samples = []
    for line in [*_LINES, *lines[len(_LINES) :: 1 + len(lines) // _LINES_OF_PAGE]]:
        with contextlib.suppress(ValueError):  # the vocabulary cannot spell it
            samples.append((line, encode(line)))
    if _is_foreign(vocabulary):
        file = _huggingface(scheme, vocabulary, name, 'playground')[TOKENIZER_NAME]
        parsed = BPE_SCHEME.parse(file, f'--to playground of {name}')
        assert isinstance(parsed, BpeVocabulary)  # it is a tokenizer.json
        vocabulary = dataclasses.replace(parsed, entries=vocabulary.entries)
    return {'index.html': playground_page(scheme, vocabulary, name, samples)}


_Make = Callable[[Scheme, Vocabulary, str], Mapping[str, bytes]]
_Open = Callable[[str, str], Callable[[str], object]]

_TARGETS: Mapping[ExportTarget, tuple[str, _Make, _Open | None]] = {
    'huggingface': ('tokenizers', _huggingface, _open_huggingface),
    'tiktoken': ('tiktoken', _tiktoken, _open_tiktoken),
    'sentencepiece': ('sentencepiece', _sentencepiece, _open_sentencepiece),
    'vocab.txt': ('transformers<5', _vocab_txt, _open_vocab_txt),
    'subword-nmt': ('subword-nmt', _subword_nmt, _open_subword_nmt),
    'playground': ('a browser', _playground, None),
}
"""By tool its package, what makes its files, and what opens them and encodes a line.

The page of a playground has the sample with it, and a browser encodes it whenever it opens the page."""
