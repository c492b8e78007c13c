"""What differs between two revisions is found, and explained by the expected differences alone."""

import json
from pathlib import Path

import pytest
from earlier_revisions import Command, run_all
from jobs import write

from pipelines.options.job import SHARD_FORMATS
from tokcore.corpus.formats import format_names
from tokcore.filters.registry import filter_names
from tokcore.schemes import scheme_names

from . import __main__ as command
from . import running
from .comparison import ADDED, DIFFERENT, FIELD, MISSING, Compared, Difference, compare_results
from .expected import FOLLOWS, Expected, explain, read_expected
from .jobs_combined import FILTERS, OUTPUTS, TOKENS
from .jobs_compared import Job
from .odd_corpora import CORPORA
from .running import Ran

REAL_TEXT = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'

MANIFEST = 'data/tokbeam.json'
SHARD = Difference(
    'data/n-train-0', DIFFERENT, '', "b'a' from byte 0 of 1", "b'b' from byte 0 of 1"
)
RULE = Difference(MANIFEST, FIELD, 'normalizer.name', 'raw-lines', 'lines')
CHECKSUM = Difference(MANIFEST, FIELD, 'files.n-train-0.crc32c', 'a', 'b')
ROWS = Difference(MANIFEST, FIELD, 'lines.0.empty', '1', '2')
ROOT = Difference(MANIFEST, FIELD, 'root', 'a', 'b')
INDEX = Difference('data/index/n-train-0', ADDED)
INPUT = Difference('vocab.tokbeam.json', FIELD, 'inputs.counts/c-0.parquet.crc32c', 'a', 'b')


def compared(before: dict[str, bytes], now: dict[str, bytes], root: Path) -> Compared:
    for name, files in [('before', before), ('now', now)]:
        (root / name).mkdir()
        for file, data in files.items():
            write(root / name / file, data)
    return compare_results(root / 'before', root / 'now')


def test_every_differing_file_is_found(tmp_path):
    before = {'a': b'1', 'b/c': b'22', 'cut': b'333', 'tokbeam.run.json': b'1', 'gone': b''}
    now = {'a': b'1', 'b/c': b'23', 'cut': b'33', 'tokbeam.run.json': b'2', '.tokbeam-x': b''}
    found = compared(before, now, tmp_path)
    assert found.equal == ('a',)
    assert [(each.file, each.kind) for each in found.differences] == [
        ('.tokbeam-x', ADDED), ('b/c', DIFFERENT), ('cut', DIFFERENT), ('gone', MISSING),
    ]  # fmt: skip
    assert str(found.differences[1]) == (
        "b/c: different, b'2' from byte 1 of 2 and b'3' from byte 1 of 2"
    )


def test_every_differing_field_of_a_manifest_is_found(tmp_path):
    before = {
        'format': 1,
        'files': [{'name': 'a.0', 'rows': 1}, {'name': 'b', 'rows': 2}],
        'tried': [[1, 2], [3, 4]],
        'gone': {'é': None},
    }
    now = {
        'format': 2,
        'files': [{'name': 'a.0', 'rows': 3}, {'name': 'c', 'rows': 2}],
        'tried': [[1, 2], [3, 5]],
        'gone': {},
    }
    name = 'vocab.tokbeam.json'
    files = ({name: json.dumps(manifest).encode()} for manifest in (before, now))
    found = compared(*files, tmp_path)
    assert found.equal == ()
    assert [(each.field, each.before, each.now) for each in found.differences] == [
        ('files.a.0.rows', '1', '3'),
        ('files.b.name', 'b', '(absent)'),
        ('files.b.rows', '2', '(absent)'),
        ('files.c.name', '(absent)', 'c'),
        ('files.c.rows', '(absent)', '2'),
        ('format', '1', '2'),
        ('gone', '(absent)', '{}'),
        ('gone.é', 'null', '(absent)'),
        ('tried.1.1', '4', '5'),
    ]


def test_a_manifest_with_equal_fields_in_other_bytes_differs(tmp_path):
    [difference] = compared({MANIFEST: b'{"a": 1}'}, {MANIFEST: b'{"a":1}'}, tmp_path).differences
    assert difference.kind == DIFFERENT


@pytest.mark.parametrize(
    ('entry', 'difference', 'is_explained'),
    [
        (Expected('r'), SHARD, True),
        (Expected('r'), RULE, False),
        (Expected('r', files='data/n-*'), SHARD, True),
        (Expected('r', files='n-*'), SHARD, False),
        (Expected('r', jobs='build.*.text'), SHARD, True),
        (Expected('r', jobs='build.*.tex'), SHARD, False),
        (Expected('r', kind=DIFFERENT), SHARD, True),
        (Expected('r', kind=ADDED), SHARD, False),
        (Expected('r', fields=('*',)), SHARD, False),
        (Expected('r', fields=('normalizer.*',)), RULE, True),
        (Expected('r', fields=('a', '*.name')), RULE, True),
        (Expected('r', fields=('normalizer',)), RULE, False),
        (Expected('r', fields=('*',), before='raw-lines', now='lines'), RULE, True),
        (Expected('r', fields=('*',), before='raw.lines'), RULE, False),
        (Expected('r', fields=('*',), now='raw-*'), RULE, False),
    ],
)
def test_an_entry_explains_what_it_names_and_nothing_else(entry, difference, is_explained):
    assert entry.explains('build.byte.text', difference) == is_explained


def reasons(entries, found, uses=None):
    explained = explain({'job': found, **(uses or {})}, entries, {'job': {*(uses or {})}})
    return [explained['job', each] for each in found]


def test_what_follows_from_an_expected_file_needs_no_entry():
    shard = Expected('r', files='data/n-*')
    assert reasons([shard], [SHARD, CHECKSUM, INDEX, ROOT]) == [shard, *[FOLLOWS] * 3]
    assert reasons([], [SHARD, CHECKSUM, INDEX, ROOT]) == [None] * 4
    assert reasons([shard], [CHECKSUM]) == [None]
    other = Difference(MANIFEST, FIELD, 'files.n-train-1.crc32c', 'a', 'b')
    assert reasons([shard], [SHARD, other]) == [shard, None]
    used = Difference(MANIFEST, FIELD, 'vocabularies.n-train-0.scheme', 'a', 'b')
    of_shard = Difference(MANIFEST, FIELD, 'files.n-train-0.dropped.0', '1', '2')
    assert reasons([shard], [SHARD, of_shard, used]) == [shard, FOLLOWS, None]


def test_a_root_follows_only_if_all_else_in_its_folder_is_expected():
    rule = Expected('r', fields=('normalizer.name',))
    outcome = Difference('outcome.json', FIELD, 'status', '0', '1')
    assert reasons([rule], [RULE, ROOT]) == [rule, FOLLOWS]
    assert reasons([rule], [RULE, ROWS, ROOT]) == [rule, None, None]
    assert reasons([rule], [RULE, outcome, ROOT]) == [rule, None, FOLLOWS]
    assert reasons([rule], [ROOT]) == [None]


def test_checksums_of_an_input_follow_from_the_job_that_made_it():
    counts = Difference('counts/c-0.parquet', DIFFERENT)
    entry = Expected('r', files='counts/*')
    assert reasons([entry], [INPUT], {'count': [counts]}) == [FOLLOWS]
    assert reasons([entry], [INPUT], {'count': []}) == [None]


def test_entries_are_read(tmp_path):
    path = tmp_path / 'expected.toml'
    path.write_text('against = "abc"\n[[expected]]\nreason = "r"\nfields = ["a"]\nbefore = "1"\n')
    assert read_expected(path) == ('abc', [Expected('r', fields=('a',), before='1')])


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('', 'against'),
        ('against = "a"\nother = 1', 'unknown keys: other'),
        ('against = "a"\n[[expected]]', 'reason'),
        ('against = "a"\n[[expected]]\nreason = " "', 'no reason'),
        ('against = "a"\n[[expected]]\nreason = "r"\nfield = "a"', 'field'),
        ('against = "a"\n[[expected]]\nreason = "r"\nfields = "format"', 'a list of'),
        ('against = "a"\n[[expected]]\nreason = "r"\nbefore = "1"', 'of fields'),
        ('against = "a"\n[[expected]]\nreason = "r"\nkind = "new"', "kind 'new'"),
        ('against = "a"\n[[expected]]\nreason = "r"\nkind = "added"\nfields = ["a"]', 'kind'),
    ],
)
def test_a_file_with_mistakes_is_refused(tmp_path, text, complaint):
    path = tmp_path / 'expected.toml'
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_expected(path)


def test_the_file_of_this_checkout_is_read():
    revision, _ = read_expected()
    assert revision


@pytest.fixture
def compare(monkeypatch, capsys):
    """Returns a function that runs the command as if one job had these differences."""

    def run(differences, entries, *arguments):
        ran = [Ran(Job('job', ('build',)), 1, 0, Compared(('a', 'b'), tuple(differences)))]
        monkeypatch.setattr(command, 'read_expected', lambda: ('abc', entries))
        monkeypatch.setattr(command, 'packages_of', lambda revision: Path(revision))
        monkeypatch.setattr(command, 'compare_with', lambda *_: ran)
        return command.main(arguments), capsys.readouterr().out

    return run


def test_the_status_says_whether_anything_is_not_expected(compare):
    rule = Expected('The rule has another name.', fields=('normalizer.name',))
    status, printed = compare([], [])
    assert status == 0 and printed.startswith('1 jobs, 0 of them refused; 2 files equal;')
    status, printed = compare([RULE, ROOT], [rule])
    assert status == 0 and '1 differences expected: The rule has another name.\n' in printed
    assert '1 differences expected, 1 follow from these, 0 not expected' in printed
    status, printed = compare([RULE, ROWS], [rule])
    assert status == 1 and 'NOT EXPECTED  data/tokbeam.json: lines.0.empty: 1 -> 2\n' in printed
    assert 'normalizer' not in printed


def test_an_entry_that_explains_nothing_is_an_error_unless_jobs_are_chosen(compare):
    rule = Expected('The rule has another name.', fields=('normalizer.name',))
    status, printed = compare([], [rule])
    assert status == 1 and 'remove this entry' in printed
    assert compare([], [rule], '--only', 'job')[0] == 0


def test_a_revision_that_is_not_there_is_told(capsys):
    assert command.main(['--against', '0' * 40]) == 2
    assert 'cannot be had' in capsys.readouterr().err


def test_a_name_that_no_job_has_is_told(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(running, '_all_jobs', lambda *_: [Job('job', ('build',))])
    monkeypatch.setattr(command, 'packages_of', lambda revision: tmp_path)
    assert command.main(['--only', 'jib']) == 2
    said = "no job has a name that begins with 'jib'; give --only another\n"
    assert capsys.readouterr().err == said


FAKE = """
import os, sys

def main(arguments):
    if arguments == ['raise']:
        raise RuntimeError('not caught')
    if arguments == ['exit']:
        sys.exit(2)
    print('tokbeam: warned', file=sys.stderr)
    if arguments == ['refuse']:
        print(f'tokbeam: {os.getcwd()}/a/.tokbeam-attempt-12ef/b is bad', file=sys.stderr)
        return 2
    if arguments == ['fail']:
        print('tokbeam: failed: x; its traceback is in /tmp/some-file.txt', file=sys.stderr)
        return 1
    sys.stdout.buffer.write(sys.stdin.buffer.read())
    return 0
"""


def test_how_each_command_ends_is_kept_whatever_it_is(tmp_path):
    # Without these two, Python prefers the installed package.
    write(tmp_path / 'code' / 'pipelines' / '__init__.py', b'')
    write(tmp_path / 'code' / 'pipelines' / 'cli' / '__init__.py', b'')
    write(tmp_path / 'code' / 'pipelines' / 'cli' / 'main.py', FAKE.encode())
    lines = write(tmp_path / 'lines', b'\xff\r\n')
    root = tmp_path / 'root'
    names = ['refuse', 'fail', 'raise', 'exit', 'print']
    for name in names:
        (root / name).mkdir(parents=True)
    run_all(tmp_path / 'code', [Command([name], root / name, lines) for name in names], root)
    outcomes = [json.loads((root / name / 'outcome.json').read_bytes()) for name in names]
    assert outcomes == [
        {'status': 2, 'sentence': 'tokbeam: a/.tokbeam-attempt-(random)/b is bad'},
        {'status': 1, 'sentence': 'tokbeam: failed: x; its traceback is in (a file)'},
        {'status': 'an exception', 'sentence': 'RuntimeError: not caught'},
        {'status': 2, 'sentence': ''},
        {'status': 0},
    ]
    assert [path.read_bytes() for path in root.glob('*/stdout')] == [b'\xff\r\n']


def test_every_scheme_format_output_and_filter_is_compared():
    assert {corpus.format for corpus in CORPORA.values()} == {*format_names()}
    assert {words[1] for words in TOKENS.values()} == {*scheme_names()}
    assert {*SHARD_FORMATS} <= {*OUTPUTS}
    specs = [spec.split(':')[0] for text in FILTERS.values() for spec in text.split(',')]
    # The normal forms are one filter with several names.
    assert {*filter_names()} - {*specs} == {'nfc', 'nfd', 'nfkd'}


@pytest.mark.corpora
@pytest.mark.skipif(not REAL_TEXT.is_dir(), reason=f'{REAL_TEXT} is not there')
def test_whole_corpora_differ_only_as_expected(capsys):
    status = command.main(['--corpora', str(REAL_TEXT)])
    if status == 2:
        pytest.skip(capsys.readouterr().err)
    assert status == 0, capsys.readouterr().out
