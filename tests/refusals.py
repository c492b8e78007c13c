"""The table of refusals: how each test of `tests/unit` and `tests/faults` is refused, in `refusals.txt`.

A refusal is recorded where a user meets it: as the last line of a command that ends with status 1 or 2,
in this process or in another one, or as an exception that leaves our code within `pytest.raises`. What
fixtures provoke is left out, as it would count for whichever test comes first, and so are tests that
draw their cases, of Hypothesis and those marked `fuzz`, and slow ones: what a job says that is killed or
finds no room depends on the moment.

At its end a session compares its refusals with the table. A sentence that is missing there fails any
session; one that no longer occurs fails it if all cases of its test have passed.
"""

import argparse
import dis
import functools
import itertools
import re
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from traceback import walk_tb

import pytest

from tokcore.errors import InputError

Table = Mapping[str, Set[str]]
"""The refusals of each test. All cases of a test have its name, as `tests/unit/test_a.py::test_b`."""

_FOLDERS = ('tests/unit/', 'tests/faults/')
_PACKAGES = ('tokcore.', 'pipelines.')
_ANY = '{…}'
_SKIPPED = '(skipped)'  # in place of the refusals of a test that was skipped where it was recorded
_VALUE = re.compile(rf"{_ANY}|\{{tmp\}}[^\s,;:]*|https?://[^\s,;]*|'[^']*'|\d[\d,.]*\d|\d")

# What differs between runs, machines and versions, and what stands for it.
_HIDDEN = {
    re.escape(str(Path(__file__).parents[1])): '{checkout}',
    r"'/[^']*'…": "'{tmp}'…",  # a long path, cut short
    r"(?<='… has )\d+ bytes": '{size}',
    r'\(choose from [^)]*\)': '(choose from …)',
    r'; its traceback is in \S+': '',
    r'\b(127\.0\.0\.1|localhost):\d+': '{host}',
    r'process \d+ on host \S+ since [\d-]{10} [\d:]{8} UTC': '{process}',
    r'(workers on) [^,\s]+': r'\1 {host}',
    r'--memory \S+ is more than the \d+ MiB': '--memory {size} is more than the {size}',
    r'\b(?=\d*[a-f])[0-9a-f]{16,}\b': '{digest}',
    r'\b(CRC-32C|with|letters|sources) [0-9a-f]{8}\b': r'\1 {digest}',
    r'beam-runners-[\w./-]+jar\b': '{jar}',
    r'python3\.\d+': 'python{version}',
    r'\bv?\d+\.\d+\.\d+\b': '{version}',
}


def parse_table(text: str) -> Table:
    """Reads lines of modules, of tests, which are indented, and of refusals, which are so twice."""
    table: dict[str, set[str]] = {}
    module = test = ''
    for line in text.splitlines():
        if line.startswith('    '):
            table[test].add(line[4:])
        elif line.startswith('  '):
            test = f'{module}::{line[2:]}'
            table[test] = set()
        else:
            module = line
    return table


def format_table(table: Table) -> list[str]:
    """Returns the lines of a table in order; a test without refusals has none."""
    lines = []
    last_module = ''
    for module, name in sorted(test.split('::', 1) for test in table if table[test]):
        lines += [module] if module != last_module else []
        lines += [f'  {name}', *(f'    {each}' for each in sorted(table[f'{module}::{name}']))]
        last_module = module
    return lines


def renewed(recorded: Table, seen: Table, finished: Set[str]) -> Table:
    """Returns the table after a session.

    Args:
        recorded: the table before.
        seen: the refusals of the session, as they are.
        finished: the tests that could not have provoked more; others keep what they have had.
    """
    table = dict(recorded)
    for test in {*seen, *finished}:
        lines, refusals = recorded.get(test, set()) - {_SKIPPED}, seen.get(test, set())
        new = {each for each in refusals if not any(_covers(line, each) for line in lines)}
        table[test] = merge_alike(refusals) if test in finished else lines | new
    return table


def merge_alike(refusals: Iterable[str]) -> Set[str]:
    """Makes one line of more than three refusals that differ only in numbers, paths and quoted text.

    >>> merge_alike(f'{tokens} of 9 tokens are lost' for tokens in range(4))
    {'{…} of 9 tokens are lost'}
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for each in refusals:
        groups.setdefault(tuple(_VALUE.split(each)), []).append(each)
    merged = set()
    for words, alike in groups.items():
        slots = [set(values) for values in zip(*map(_VALUE.findall, alike))]
        values = [slot.pop() if len(slot) == 1 else _ANY for slot in slots]
        line = ''.join(itertools.chain(*zip(words, [*values, ''])))
        merged.update(alike if len(alike) <= 3 else [line])
    return merged


def _covers(line: str, refusal: str) -> bool:
    """Returns whether a line of a table, which may stand for several refusals, stands for this one."""
    if _ANY not in line:
        return line == refusal
    values = zip(_VALUE.findall(line), _VALUE.findall(refusal))
    is_alike = _VALUE.split(line) == _VALUE.split(refusal)
    return is_alike and all(recorded in (value, _ANY) for recorded, value in values)


class RefusalTable:
    """Records refusals in a process of tests; where the session ends, compares them with the table."""

    def __init__(self, config: pytest.Config):
        self._config = config
        self._path = config.rootpath / 'tests' / 'refusals.txt'
        self._seen: dict[str, set[str]] = {}
        self._cases: Counter[str] = Counter()  # that were collected, of each test
        self._passed: Counter[str] = Counter()
        self._skipped: set[str] = set()
        self._test: str | None = None  # that runs
        self.temporary = re.compile('')  # folders
        self._report: list[str] = []

    @pytest.hookimpl(tryfirst=True)  # before any are deselected
    def pytest_collection_modifyitems(self, items):
        self._cases.update(filter(None, map(_test_of, items)))

    def pytest_collection_finish(self):
        _watch_commands(self._record_command)
        _watch_raises(self._record)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self._test = _test_of(item)
        try:
            return (yield)
        finally:
            self._test = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        report = yield
        if test := _test_of(item):
            self._passed[test] += report.passed and report.when == 'call'
            self._skipped.update([test] if report.skipped else [])
        return report

    def _record(self, origin: str, sentence: str) -> None:
        if self._test is not None and sentence:
            text = self.temporary.sub('{tmp}', f'{origin}: {" ".join(sentence.split())}')
            for pattern, name in _HIDDEN.items():
                text = re.sub(pattern, name, text)
            text = ''.join(c if c.isprintable() else repr(c)[1:-1] for c in text)
            self._seen.setdefault(self._test, set()).add(text)

    def _record_command(self, arguments: Sequence[object], status: int, stderr: str) -> None:
        lines = [line for line in stderr.splitlines() if line.startswith('tokbeam: ')]
        if status in (1, 2) and lines:
            name = next((f' {word}' for word in arguments if word in _command_names()), '')
            self._record(f'tokbeam{name}, status {status}', lines[-1].removeprefix('tokbeam: '))

    def pytest_sessionfinish(self, session):
        if hasattr(self._config, 'workeroutput'):  # this is a worker of xdist
            seen = {test: sorted(refusals) for test, refusals in self._seen.items()}
            counts = dict(self._cases), dict(self._passed), list(self._skipped)
            self._config.workeroutput['refusals'] = seen, *counts
        elif not self._config.option.collectonly:
            self._compare(session)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        output = getattr(node, 'workeroutput', {}).get('refusals', ({}, {}, {}, []))
        seen, cases, passed, skipped = output
        for test, refusals in seen.items():
            self._seen.setdefault(test, set()).update(refusals)
        self._cases |= Counter(cases)  # each worker collects all
        self._passed.update(passed)
        self._skipped.update(skipped)

    def pytest_terminal_summary(self, terminalreporter):
        if self._report:
            terminalreporter.section(f'refusals that differ from {self._path.name}', red=True)
            terminalreporter.write('\n'.join(self._report) + '\n')

    def _compare(self, session: pytest.Session) -> None:
        recorded = parse_table(self._path.read_text('utf-8')) if self._path.exists() else {}
        table = renewed(recorded, self._seen, self._finished(recorded))
        changes = {}
        for test in table:
            before = recorded.get(test, set())
            if _SKIPPED not in before:
                changes[test] = {f'+ {each}' for each in table[test] - before}
                changes[test] |= {f'- {each}' for each in before - table[test]}
        if self._config.option.renew_refusals:
            table = {**dict.fromkeys(self._skipped - self._seen.keys(), {_SKIPPED}), **table}
            self._path.write_text(''.join(f'{line}\n' for line in format_table(table)), 'utf-8')
        elif any(changes.values()):
            modules = sorted({_module_of(test) for test in changes if changes[test]})
            remedy = f'If this is meant: pytest --renew-refusals {" ".join(modules)}'
            self._report = [*format_table(changes), remedy]
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def _finished(self, recorded: Table) -> Set[str]:
        """Returns the tests of which all cases have passed, and recorded ones that no longer exist."""
        if self._config.getoption('lf', False) or any('::' in each for each in self._config.args):
            return set()  # not all cases were collected
        modules = {_module_of(test) for test in self._cases}
        gone = {
            test
            for test in recorded.keys() - self._cases.keys()
            if _module_of(test) in modules
            or not (self._config.rootpath / _module_of(test)).exists()
        }
        return gone | {test for test in self._cases if self._passed[test] == self._cases[test]}


def pytest_addoption(parser):
    parser.addoption(
        '--renew-refusals',
        action='store_true',
        help='write what tests that run are refused into tests/refusals.txt',
    )


def pytest_configure(config):
    config.pluginmanager.register(RefusalTable(config), 'refusal table')


@pytest.fixture(autouse=True, scope='session')
def _find_temporary_folders(request, tmp_path_factory):
    basetemp = re.escape(str(tmp_path_factory.getbasetemp()))
    table = request.config.pluginmanager.get_plugin('refusal table')
    table.temporary = re.compile(rf"{basetemp}/[^/\s,:;']+")


def _test_of(item: pytest.Item) -> str | None:
    """Returns the name of a test without that of its case; None if it is not recorded."""
    draws = getattr(getattr(item, 'obj', None), 'is_hypothesis_test', False)
    if draws or item.get_closest_marker('fuzz') or item.get_closest_marker('slow'):
        return None
    return item.nodeid.partition('[')[0] if item.nodeid.startswith(_FOLDERS) else None


def _module_of(test: str) -> str:
    return test.partition('::')[0]


def _watch_commands(record: Callable[[Sequence[object], int, str], None]) -> None:
    """Records commands that end in this process, in a lane of `forked_commands`, or in a subprocess."""
    import pipelines.cli.main as command
    from pipelines.options.beam import text_without_secrets

    refuse, fail, communicate = command._refuse, command._fail, subprocess.Popen.communicate

    def watched_refuse(error):
        arguments = sys._getframe(1).f_locals['arguments']  # those of `main`
        record(arguments, 2, f'tokbeam: {_without_reasons(error)}')
        return refuse(error)

    def watched_fail(error, arguments):
        reason = text_without_secrets(command.in_a_line(error), arguments)
        record(arguments, 1, f'tokbeam: failed: {reason}')
        return fail(error, arguments)

    def watched_communicate(process, *arguments, **options):
        stdout, stderr = communicate(process, *arguments, **options)
        text = stderr.decode(errors='replace') if isinstance(stderr, bytes) else stderr or ''
        record(process.args, process.returncode, text)
        return stdout, stderr

    command._refuse, command._fail = watched_refuse, watched_fail
    subprocess.Popen.communicate = watched_communicate
    if 'forked_commands' in sys.modules:
        lane = sys.modules['forked_commands'].Lane
        end = lane.end

        def watched_end(self):
            ended = end(self)
            record(self.arguments, ended.status, ended.stderr)
            return ended

        lane.end = watched_end


@functools.cache
def _command_names() -> frozenset[str]:
    from pipelines.options.commands import known_commands

    return frozenset(known_commands()) | {'help', 'completion'}


def _watch_raises(record: Callable[[str, str], None]) -> None:
    """Records exceptions that our code raises within `pytest.raises`."""
    context = type(pytest.raises(Exception))
    leave = context.__exit__

    def watched_exit(self, kind, error, traceback):
        __tracebackhide__ = True
        is_expected = leave(self, kind, error, traceback)
        frames = [frame for frame, _ in walk_tb(traceback)]
        ours = list(filter(_is_ours, frames))
        # Errors of other processes and threads come without the frames that raised them.
        if is_expected and ours and (ours[-1] is frames[-1] or isinstance(error, InputError)):
            record(f'{_name(ours[0])}, {kind.__name__}', _without_reasons(error))
        return is_expected

    context.__exit__ = watched_exit


def _is_ours(frame: types.FrameType) -> bool:
    return frame.f_globals.get('__name__', '').startswith(_PACKAGES)


def _name(frame: types.FrameType) -> str:
    """Returns the name of the function or class that was called."""
    name = frame.f_code.co_name
    is_special = name.startswith('__') and 'self' in frame.f_locals
    return type(frame.f_locals['self']).__name__ if is_special else name


def _without_reasons(error: BaseException) -> str:
    """Returns a message; texts of libraries in it, which differ between their versions, are names."""
    message = _shown(error)
    ours, theirs = [], {}
    seen: set[int] = set()
    reason = error.__cause__ or error.__context__
    while reason is not None and id(reason) not in seen:  # an error may be among its own reasons
        seen.add(id(reason))
        text = _shown(reason)
        if isinstance(reason, InputError) or _is_raised_by_us(reason.__traceback__):
            ours.append(text)
        elif ' ' in text and not isinstance(reason, argparse.ArgumentError):
            theirs[text] = f'{{{type(reason).__name__}}}'
        reason = reason.__cause__ or reason.__context__
    for text, name in theirs.items():
        if not any(each in text for each in ours):
            message = message.replace(text, name)
    return message


def _shown(error: BaseException) -> str:
    try:
        return ' '.join(str(error).split())
    except BaseException:  # as those of tests do that cannot be shown
        return ''


def _is_raised_by_us(traceback: types.TracebackType | None) -> bool:
    """Returns whether a `raise` of ours has raised an exception, not a function that it calls."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:  # nobody has
        return True
    code = traceback.tb_frame.f_code.co_code
    return _is_ours(traceback.tb_frame) and code[traceback.tb_lasti] == dis.opmap['RAISE_VARARGS']
