r"""Whole words as a scheme, as in TensorFlow NMT and Tensor2Tensor's `TokenTextEncoder`.

In a vocabulary's file each line is a word. Lines end at `\n` or `\r\n`, and a byte order mark is not part
of the first word. Spaces at the ends of a line are dropped, since no word has them; with
`--split unicode` all white space is, as Tensor2Tensor does.

A file of another tool has more on a line than a word, so that no word of a text would be found in it.
It is not read, since not all of its tool's ids are in it; the error has the command that converts it.
"""

from __future__ import annotations

import codecs
import functools
import json
import re
import shlex
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, get_args

from tokcore.encoding.scheme import EncodingOptions, Learned, LearningOptions, Scheme
from tokcore.encoding.vocabulary import (
    ReadBeside,
    SpecialIds,
    bracketed_tokens,
    read_if_there,
    special_ids_by_name,
    without_mark,
)
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.options import (
    LARGEST_INT64,
    WholeNumber,
    option,
    positive,
    special_tokens_option,
)

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.encoder import RowEncoder
    from tokcore.text.rows import Normalizer
    from tokcore.text.whitespace import SpacePreTokenizer
    from tokcore.word.model import WordModel

Split = Literal['space', 'unicode']
Unknown = Literal['token', 'stop']

_NMT_SPECIAL_TOKENS = ('<unk>', '<s>', '</s>')
"""The first words of TensorFlow NMT's vocabularies."""

_BEGINNING = 64  # bytes, in which these three lines are


@dataclass(frozen=True)
class WordOptions(LearningOptions):
    """Which words have ids."""

    vocab_size: int | None = option(
        'entries at most (or give --min-count)', positive, 'N', default=None, changes_bytes=True
    )
    min_count: int | None = option(
        'words that are counted less often have no id (default: none; then --vocab-size)',
        WholeNumber(1, LARGEST_INT64),
        'N',
        default=None,
        changes_bytes=True,
    )
    special_tokens: tuple[str, ...] | None = special_tokens_option()

    def __post_init__(self):
        if self.vocab_size is None and self.min_count is None:
            raise InputError('--vocab-size is missing; give it, or --min-count')

    @property
    def first_entries(self) -> tuple[str, ...]:
        """The special tokens."""
        return _NMT_SPECIAL_TOKENS if self.special_tokens is None else self.special_tokens

    @property
    def size_label(self) -> str:
        return f'min-count-{self.min_count}' if self.vocab_size is None else str(self.vocab_size)


@dataclass(frozen=True)
class WordEncodingOptions(EncodingOptions):
    """How unknown words are encoded."""

    unknown: Unknown = option(
        'token: they get the id of the unknown token; stop: an error names the line and the word '
        '(default: token)',
        get_args(Unknown),
        default='token',
    )


@dataclass(frozen=True)
class WordScheme(Scheme['WordVocabulary', WordOptions, WordEncodingOptions]):
    """`<unk> <s> </s>`, then words by count and code points."""

    name = 'word'
    file_suffix = 'words.txt'
    options = WordOptions
    encoding = WordEncodingOptions
    default_template = '$A </s>'

    split: Split = option(
        "space: words end at U+0020 and at line breaks; unicode: at what Python's "
        'str.split cuts at (default: space)',
        get_args(Split),
        default='space',
        changes_bytes=True,
    )

    @property
    def rows_have_unstorable(self) -> bool:
        return False  # words end at these characters

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.normalizers import STRIPPED_LINES

        return STRIPPED_LINES

    @property
    def pre_tokenizer(self) -> SpacePreTokenizer:
        from tokcore.text.whitespace import SpacePreTokenizer

        return SpacePreTokenizer(self.split, at_line_breaks=True)

    def learn(
        self, table: TokenTable, options: WordOptions, report: Progress
    ) -> Learned[WordVocabulary]:
        from tokcore.word.model import most_frequent_words

        first = options.first_entries
        most = None if options.vocab_size is None else options.vocab_size - len(first)
        words, smallest = most_frequent_words(table, options.min_count or 1, most, frozenset(first))
        return Learned(WordVocabulary([*first, *words]), smallest)

    def parse(self, data: bytes, path: str, read: ReadBeside = read_if_there) -> WordVocabulary:
        return WordVocabulary(read_words(data, path, self.split))

    def recognizes(self, data: bytes) -> bool:
        first = without_mark(data[:_BEGINNING]).replace(b'\r\n', b'\n').split(b'\n', 3)[:3]
        return first == [token.encode() for token in _NMT_SPECIAL_TOKENS]

    def encoder(
        self, vocabulary: WordVocabulary, options: WordEncodingOptions | None = None
    ) -> RowEncoder:
        from tokcore.encoding.encoder import RowEncoder

        model = vocabulary.model
        if options is not None and options.unknown == 'stop':
            model = vocabulary.strict_model
        return RowEncoder(self.pre_tokenizer, model)

    def unknown_token(self, options: WordEncodingOptions) -> str | None:
        return '<unk>' if options.unknown == 'token' else None

    def special_tokens_in(self, vocabulary: WordVocabulary, prefix: str) -> Mapping[str, int]:
        return bracketed_tokens(vocabulary.ids, prefix)

    def tokens(self, text: str) -> Iterable[str]:
        return self.pre_tokenizer.tokens(text)

    def vocabulary_of(self, characters: Sequence[str]) -> WordVocabulary:
        words = {*characters} - {'\n', ''}
        return WordVocabulary([*_NMT_SPECIAL_TOKENS, *sorted(words)])


class WordVocabulary:
    """A `Vocabulary` of words, which are distinct and not empty."""

    def __init__(self, words: Sequence[str]):
        """Takes the words by id, with special tokens."""
        self.pieces = tuple(words)

    @property
    def vocab_size(self) -> int:
        return len(self.pieces)

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        return special_ids_by_name(self.id_of)

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: id_ for id_, word in enumerate(self.pieces)}

    def id_of(self, token: str) -> int | None:
        return self.ids.get(token)

    @functools.cached_property
    def model(self) -> WordModel:
        """The model that gives unknown words the unknown token's id, if there is one."""
        from tokcore.word.model import WordModel

        return WordModel(self.pieces, self.special_ids.unknown)

    @functools.cached_property
    def strict_model(self) -> WordModel:
        """The model to which unknown words are errors."""
        from tokcore.word.model import WordModel

        return WordModel(self.pieces, None)

    def dump(self) -> bytes:
        """Returns the file.

        Raises:
            ValueError: a word is empty, would be read as another one, or occurs twice.
        """
        if len(self.ids) != len(self.pieces):
            raise ValueError('a word is in the vocabulary twice; a file has an id for each line')
        for id_, word in enumerate(self.pieces):
            has_mark = id_ == 0 and word.startswith('\ufeff')
            if not word or '\n' in word or word != word.removesuffix('\r').strip(' ') or has_mark:
                raise ValueError(f'{word!r} cannot be a line of a vocabulary file; leave it out')
        return ''.join(f'{word}\n' for word in self.pieces).encode()

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns `decode` in UTF-8."""
        return self.decode(ids).encode()

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the words with spaces between them; ids out of range have none."""
        size = len(self.pieces)
        return ' '.join(self.pieces[id_] for id_ in ids if 0 <= id_ < size)


SCHEME = WordScheme()

_SAMPLE = 1_000
"""Lines from which the form of a file is seen: the special tokens before them may have another."""

_SHOWN = 60  # characters of a line in an error

_FAIRSEQ_FIRST = ['<s>', '<pad>', '</s>', '<unk>']

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NUMBERED = re.compile(r'(.+)([ \t])([0-9]+)(?: #fairseq:overwrite)?')
_SCORED = r'.+\t-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?'
# A command that also drops the rest of CRLF.
_WITHOUT_NUMBERS = r"sed -E 's/[[:blank:]]+[0-9]+( #fairseq:overwrite)?[[:space:]]*$//'"

_PYTHON = "python3 -X utf8 -c '{}; print(*{}, sep=chr(10))' {}"
_YAML = 'import sys, yaml; d = yaml.load(open(sys.argv[1]), yaml.BaseLoader)'
_JSON = 'import sys, json; d = json.load(open(sys.argv[1]))'


def read_words(data: bytes, path: str, split: str = 'space') -> list[str]:
    """Returns the words of a file by id.

    Args:
        data: the file.
        path: of it.
        split: what words are split at, 'space' or 'unicode'.

    Raises:
        InputError: the file is empty, not UTF-8 or of another tool, or a line is blank or occurs twice;
            TensorFlow NMT's table refuses blank lines and duplicates too.
    """
    if data[:2] in _UTF16_MARKS or 4 * data.count(0) > len(data):
        command = f'iconv -f UTF-16 -t UTF-8 {shlex.quote(path)}'
        raise InputError(f'{path} seems to be UTF-16; {_converted(command, path)}')
    try:
        text = without_mark(data).decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f'{path}: invalid UTF-8 at byte {error.start}; give a vocabulary file in UTF-8'
        ) from error
    lines = [line.removesuffix('\r') for line in text.split('\n')]
    if lines[-1] == '':
        lines.pop()
    _refuse_other_tools(text, lines, path, split)
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        word = line.strip() if split == 'unicode' else line.strip(' ')
        if not word:
            raise InputError(f'{path}, line {number} is blank; take it out, or give another file')
        if word in seen:
            raise InputError(
                f'{path}, line {number}: {word[:_SHOWN]!r} is on line {seen[word]} too; take one of '
                'them out, or give another file'
            )
        seen[word] = number
    if not lines:
        raise InputError(f'{path} is empty; give a vocabulary file with a word on each line')
    return list(seen)


def _refuse_other_tools(text: str, lines: Sequence[str], path: str, split: str) -> None:
    """Raises InputError for a vocabulary of another tool, by the form of most of its lines.

    One that was learned here is of no such form: its words have no spaces, and its first line is a
    special token.
    """
    if not lines:
        return

    def most(form: str) -> str | None:
        """Returns the first line of a form, if more than half of the lines have it."""
        matching = [line for line in lines[:_SAMPLE] if re.fullmatch(form, line)]
        return matching[0] if 2 * len(matching) > min(len(lines), _SAMPLE) else None

    def refuse(what: str, line: str, remedy: str) -> NoReturn:
        raise InputError(f'{path} has {what}: {line[:_SHOWN]!r}; {remedy}')

    file = shlex.quote(path)
    if text.lstrip()[:1] in ('{', '['):
        _refuse_json(text, path)
    if lines[0].strip('\'"') in ('<pad>', '<pad>_') and (line := most(r"""(['"]).+\1""")):
        refuse('subwords of Tensor2Tensor between quotes', line, 'give --scheme subword')
    if line := most(r'.+: [0-9]+'):
        command = _PYTHON.format(_YAML, 'sorted(d, key=lambda word: int(d[word]))', file)
        refuse(
            "words and their ids in YAML, as Marian's vocab.yml", line, _converted(command, path)
        )
    if line := most(_NUMBERED.pattern):
        if found := _numbers(lines, path):
            refuse(found[0], line, found[1])
    elif lines[0] == most(_SCORED):
        remedy = 'give the .model, with --scheme pretrained'
        refuse("pieces and their scores, as SentencePiece's .vocab", lines[0], remedy)
    if line := most(r'.*\S\s+\S.*' if split == 'unicode' else r'.*[^ \r][ \r]+[^ \r].*'):
        refuse('several words on a line', line, 'give a file with a word on each line')


def _numbers(lines: Sequence[str], path: str) -> tuple[str, str] | None:
    """Returns what lines of words and numbers are, and what to do; None if these may be words."""
    fields = [match for match in map(_NUMBERED.fullmatch, lines) if match]
    numbers = [int(match[3]) for match in fields]
    file = shlex.quote(path)
    size, falls = len(numbers), numbers == sorted(numbers, reverse=True)
    if fields[0][2] == '\t' and fields[0][0] != lines[0] and not falls:
        return None
    if not falls and sorted(numbers) in ([*range(size)], [*range(1, size + 1)]):
        command = f'sort -s -n -k 2 {file} | {_WITHOUT_NUMBERS}'
        return 'words and their ids', _converted(command, path)
    if fields[0][2] == '\t':
        command = _converted(f'cut -f 1 {file}', path)
        what = "words and their counts, as OpenNMT-py's vocabularies"
        return what, f'{command}, and put the special tokens of the tool before them'
    command = f'{_WITHOUT_NUMBERS} {file}'
    if not {*_FAIRSEQ_FIRST}.intersection(match[1] for match in fields):
        first = ' '.join(map(shlex.quote, _FAIRSEQ_FIRST))
        command = f"(printf '%s\\n' {first}; {command})"
    return "words and their counts, as fairseq's dict.txt", _converted(command, path)


def _refuse_json(text: str, path: str) -> None:
    """Raises InputError for JSON, which a word alone is not."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not value:
        return
    file = shlex.quote(path)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        what, words = 'a list of words', 'd'
    elif isinstance(value, dict) and {*map(repr, value.values())} == {
        *map(repr, range(len(value)))
    }:
        what, words = 'words and their ids', 'sorted(d, key=d.get)'
    else:
        raise InputError(
            f'{path} is JSON, and has no words with ids from 0 on; give a file with a word on each line'
        )
    command = _PYTHON.format(_JSON, words, file)
    raise InputError(f'{path} is JSON, {what}; {_converted(command, path)}')


def _converted(command: str, path: str) -> str:
    """Returns what to do with a file: a command that writes its words to a file next to it."""
    return f'convert it: {command} > {shlex.quote(f"{path}.words")}'
