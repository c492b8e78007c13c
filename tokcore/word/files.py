r"""Files of words, one on each line; and the vocabularies of other tools, which are refused by name.

Lines end at `\n` or `\r\n`, and a byte order mark is not part of the first word. Spaces at the ends of a
line are dropped, since no word has them; with `--split unicode` all white space is, as Tensor2Tensor does.

A file of another tool has more on a line than a word, so that no word of a text would be found in it.
It is not read, since not all of its tool's ids are in it; the error has the command that converts it.
"""

from __future__ import annotations

import codecs
import json
import re
import shlex
from collections.abc import Sequence
from typing import NoReturn

from tokcore.encoding.vocabulary import without_mark
from tokcore.errors import InputError

_SAMPLE = 1_000
"""Lines from which the form of a file is seen: the special tokens before them may have another."""

_SHOWN = 60  # characters of a line in an error

_FAIRSEQ_FIRST = ['<s>', '<pad>', '</s>', '<unk>']

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NUMBERED = re.compile(r'(.+)([ \t])([0-9]+)(?: #fairseq:overwrite)?')
_SCORED = r'.+\t-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?'
# Of `sed`, which also drops the rest of CRLF.
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
    """Returns what to do with a file: its words are written beside it."""
    return f'convert it: {command} > {shlex.quote(f"{path}.words")}'
