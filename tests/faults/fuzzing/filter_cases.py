"""Users' filters that return, raise and end anything: the rows that they ask for, or a sentence."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plain.lines import SplitRows

from tokcore.records.tfrecord import parse_example, read_records

from . import results
from .room import Room, Violation

_MOST_BYTES = 4000
_MODULE = 'filters_here'
_NAME = f'{_MODULE}:function'

_CLASSES = """
class Hostile:
    def __repr__(self):
        raise SystemExit(0)
    __eq__ = __len__ = __iter__ = __hash__ = __repr__

class Text(str):
    __eq__ = __len__ = __iter__ = encode = __str__ = Hostile.__repr__
    __hash__ = str.__hash__

class Row(tuple):
    __len__ = __iter__ = __getitem__ = Hostile.__repr__

class Rows(list):
    __len__ = __iter__ = __getitem__ = Hostile.__repr__

class Own(BaseException):
    __str__ = Hostile.__repr__

class NoClass:
    @property
    def __class__(self):
        raise GeneratorExit

def throw(error):
    raise error
"""

_BAD_MODULES = [
    'import sys; sys.exit(0)', 'import sys; sys.exit("bye")', 'raise SystemExit', 'raise KeyboardInterrupt',
    'raise GeneratorExit', '1 / 0', 'def function(:', '\0', 'class E(BaseException): pass\nraise E',
    'class E(Exception):\n    def __str__(self): raise SystemExit(0)\nraise E', 'function = 3', '',
    'import no_such_module', 'from . import x', 'import sys; sys.modules[__name__] = 3',
    'import sys; del sys.modules[__name__]', 'raise ModuleNotFoundError(name=3)',
    'raise ModuleNotFoundError', 'def __getattr__(name): raise SystemExit(0)', 'raise Warning("\\x1b\\n")',
    'raise ImportError', 'raise BrokenPipeError', 'raise OSError(28, "no room")', 'raise RecursionError',
    'raise EOFError', 'raise StopIteration', 'raise ExceptionGroup("two", [ValueError(), OSError()])',
]  # fmt: skip

_FAILING = [
    'throw(SystemExit(0))', 'throw(SystemExit(2))', 'throw(KeyboardInterrupt())', 'throw(GeneratorExit())',
    'throw(Own())', 'throw(StopIteration())', 'throw(MemoryError())', 'throw(BrokenPipeError())',
    'throw(OSError(28, "no room"))', 'throw(EOFError("\\n"))', '{}[0]', 'NoClass()', 'function(*texts)',
    'throw(type("", (BaseException,), {"__module__": ""})())', '[NoClass()]', 'exit()',
    'throw(BaseExceptionGroup("two", [SystemExit(), OSError()]))', '[row] * 5000',
    '__import__("signal").signal(2, print)()', 'throw(UnicodeDecodeError("utf-8", b"", 0, 1, "x"))',
]  # fmt: skip

_NO_ROWS = [
    'True', '3', 'b"x"', '{}', 'Hostile()', '[Hostile()]', '[None]', '[[row]]', '(*row, "more")', '()',
    'iter([row])', 'row + (1,)', 'Row((1,) * len(row))', 'float("nan")', 'function', '{row}', '[row, 3]',
    '("\\ud800",) * len(row)', '("a\\nb",) * len(row)', '[row, ("\\n",) * len(row)]',
    '(Text("x\\ny"),) * len(row)',
]  # fmt: skip

_LONG = [
    f'("x" * {_MOST_BYTES + 1},) * len(row)', f'("é" * {_MOST_BYTES // 2 + 1},) * len(row)',
    f'[("x" * {_MOST_BYTES // 2 + 1},) * len(row)] * 2', '("x" * 10**7,) * len(row)', '[row] * 2000',
]  # fmt: skip

_ENDS = ['x', '\r', '\0', '\x85', '字']


@dataclass(frozen=True)
class _Answer:
    """What the function does with a row, as an expression, and the rows that come of it."""

    code: str
    rows: Sequence[tuple[str, ...]] = ()
    reason: str | None = None  # that it is rejected under
    fails: bool = False


def attack_filters(room: Room, dice: random.Random) -> None:
    sides = dice.choice([1, 2])
    rows = [
        tuple(f'{number} {dice.choice("ab é字_")}{dice.randrange(99)}' for _ in range(sides))
        for number in range(dice.choice([1, 5, 40]))
    ]
    lines = ['\t'.join(row) + '\n' for row in rows]
    room.write('rows', ''.join(lines).encode())
    if dice.random() < 0.15:
        _attack_import(room, dice, sides)
        return
    worst = dice.choice(['sound', 'sound', 'unfit', 'unfit', 'failing'])
    answers = [_drawn(dice, row, worst if dice.random() < 0.2 else 'sound') for row in rows]
    room.write(f'{_MODULE}.py', _source(answers).encode())
    skips = dice.random() < 0.6
    words = _words(dice, sides)
    if skips:
        words += ['--on-error', 'skip']
    fatal = [
        number for number, each in enumerate(answers) if each.fails or each.reason and not skips
    ]
    kept = SplitRows(rows=[row for each in answers for row in _normalized(each)])
    ended = room.run(
        *words, statuses=[2 if fatal or not kept.rows else 0], may_change=['out', 'out.rejected'],
        imports=True,
    )  # fmt: skip
    if ended.status == 2:
        _check_sentence(ended.complaints[0], fatal, lines)
        return
    manifest = json.loads((room.here / 'out' / 'tokbeam.json').read_bytes())
    _check_tally(manifest['lines'][0], answers, len(kept.rows))
    if words[0] == 'count':
        results.check_counts(room.here / 'out', kept, range(sides))
    else:
        _check_examples(room, manifest, kept)


def _words(dice: random.Random, sides: int) -> list[str]:
    words = ['--text' if sides == 1 else '--tsv', 'rows', '--clean', _NAME, '--output', 'out']
    words += ['--max-line-size', str(_MOST_BYTES)]
    if dice.random() < 0.3:
        words += ['@item-size', str(dice.choice([10, 100]))]
    if dice.random() < 0.3:
        words += ['--workers', '2']
    if dice.random() < 0.3:
        words += ['--keep-rejected']
    if dice.random() < 0.5:
        return ['count', *words]
    shuffle = ['@shuffle', dice.choice(['files', 'engine'])]
    return ['encode', *words, '--scheme', 'byte', '--name', 'n', '--shards', '2', *shuffle]


def _attack_import(room: Room, dice: random.Random, sides: int) -> None:
    room.write(f'{_MODULE}.py', dice.choice(_BAD_MODULES).encode())
    words = _words(dice, sides)
    if words[0] == 'encode' and dice.random() < 0.3:
        words.append('--dry-run')
    said = room.run(*words, statuses=[2], imports=True).complaints[0]
    if _NAME not in said and 'no_such_module' not in said:
        raise Violation(f'the filter is not named: {said}')


def _drawn(dice: random.Random, row: tuple[str, ...], kind: str) -> _Answer:
    if kind == 'failing':
        return _Answer(dice.choice(_FAILING), fails=True)
    if kind == 'unfit':
        if dice.random() < 0.3:
            return _Answer(dice.choice(_LONG), reason='filter_too_long')
        return _Answer(dice.choice(_NO_ROWS), reason='filter_no_row')
    changed = tuple(f' {each} {dice.choice(_ENDS)}\t' for each in row)
    blank = ('  ',) * len(row)
    several = [dice.choice([row, changed, blank]) for _ in range(dice.randrange(4))]
    return dice.choice(
        [
            _Answer('row', [row]),
            _Answer('row', [row]),
            _Answer('texts if len(texts) > 1 else texts[0]', [row]),
            _Answer('None'),
            _Answer('[]'),
            _Answer(repr(changed), [changed]),
            _Answer(repr(blank), [blank]),
            _Answer(repr(several), several),
            _Answer('Row(row)', [row]),
            _Answer('Rows([Row(map(Text, row)), row])', [row, row]),
        ]
    )


def _source(answers: Sequence[_Answer]) -> str:
    branches = '\n'.join(
        f'    if number == {number}: return {each.code}' for number, each in enumerate(answers)
    )
    return (
        f'{_CLASSES}\ndef function(*texts):\n    row, number = texts, int(texts[0].split()[0])\n'
        f'{branches}\n'
    )


def _stripped(text: str) -> str:
    return text.replace('\r', '').strip()


def _normalized(answer: _Answer) -> list[tuple[str, ...]]:
    """The rows of an answer that have text on every side."""
    rows = [tuple(map(_stripped, row)) for row in answer.rows]
    return [row for row in rows if all(row)]


def _check_sentence(said: str, fatal: Sequence[int], lines: Sequence[str]) -> None:
    if not fatal:
        if 'is empty' not in said:
            raise Violation(f'nothing failed: {said}')
        return
    starts = [sum(len(line.encode()) for line in lines[:number]) for number in fatal]
    # A function that fails is told without the line's number.
    places = [
        f'rows{of_line}: the line that starts at byte {start}: '
        for number, start in zip(fatal, starts, strict=True)
        for of_line in ('', f', line {number + 1}')
    ]
    if not any(place in said for place in places):
        raise Violation(f'{said} names none of the rows at {starts}')
    if _NAME not in said and 'filters made' not in said:
        raise Violation(f'the filter is not named: {said}')


def _check_tally(tally: dict, answers: Sequence[_Answer], examples: int) -> None:
    made = sum(max(len(each.rows), 1) for each in answers)
    unfit = Counter(each.reason for each in answers if each.reason)
    expected = {
        'lines': len(answers),
        'examples': examples,
        'added': made - len(answers),
        'filtered': made - examples - unfit.total(),
        **{reason: unfit[reason] for reason in ('filter_no_row', 'filter_too_long')},
    }
    found = {name: tally.get(name, 0) for name in expected}
    found['filtered'] = sum(tally.get('filtered', {}).values())
    if found != expected:
        raise Violation(f'{found} in place of {expected}')


def _check_examples(room: Room, manifest: dict, kept: SplitRows) -> None:
    found = Counter(
        tuple(bytes(id_ - 2 for id_ in example[name][:-1]).decode() for name in sorted(example))
        for each in manifest['files']
        if each['name'].startswith('n-train-')
        for example in map(
            parse_example,
            read_records((room.here / 'out' / each['name']).read_bytes(), each['name']),
        )
    )
    if found != Counter(kept.rows):
        raise Violation(f'{found - Counter(kept.rows)} in place of {Counter(kept.rows) - found}')
