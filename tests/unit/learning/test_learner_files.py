"""The files of a learner's rounds: read as they were written, or told to be damaged."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.learning.learner_files import LearnerFiles, TokenStats, is_learner_file
from tokcore.errors import InputError
from tokcore.subword.partitioned.partition_sweep import PartitionSelection
from tokcore.subword.partitioned.suffix_table import SuffixTable

TABLE = SuffixTable.from_items([(b'the', 5), (b'then', 2), ('文字'.encode(), 7)])
FACTS = TokenStats('aeht文', 3, 12, 40, 7, 1000, (b'b', b'th', '文'.encode()))


def facts(files: LearnerFiles) -> tuple:
    FACTS.write(files.facts_path)
    return files.facts_path, lambda: TokenStats.read(files.facts_path), FACTS


def reserved(files: LearnerFiles) -> tuple:
    files.write_reserved(['<pad>_', '<EOS>_'])
    return files.reserved_path, files.round(3).read_reserved, ['<pad>_', '<EOS>_']


def finished_pass(files: LearnerFiles) -> tuple:
    files.finish_pass(2, 9, [[2, 100], [8, 7]])
    return files.pass_path(2), lambda: files.finished_pass(2), (9, {2: 100, 8: 7})


def first_table(files: LearnerFiles) -> tuple:
    files.first.write(4, TABLE)
    return files.first.path(4), lambda: list(files.first.read(4).items()), list(TABLE.items())


def heavy_table(files: LearnerFiles) -> tuple:
    groups = files.round(3).groups
    groups.write(12345, TABLE)
    return groups.path(12345), lambda: list(groups.read(12345).items()), list(TABLE.items())


def sizes(files: LearnerFiles) -> tuple:
    files.round(3).write_sizes({4: 10, 2: 77})
    return files.round(3).sizes_path, files.round(3).read_sizes, {2: 77, 4: 10}


def frequent(files: LearnerFiles) -> tuple:
    tables = [TABLE, SuffixTable.empty(), TABLE]
    files.round(3).write_heavy(tables)

    def read() -> list[list]:
        return [list(table.items()) for table in files.round(3).read_heavy()]

    return files.round(3).frequent_path, read, [list(table.items()) for table in tables]


def unknown_heavy(files: LearnerFiles) -> tuple:
    files.round(3).write_heavy(None)
    return files.round(3).frequent_path, files.round(3).read_heavy, None


def vocabulary(files: LearnerFiles) -> tuple:
    files.round(3).write_vocabulary(2, TABLE)
    path = files.round(3).vocabulary_path(2)
    return path, lambda: list(files.round(3).read_vocabulary(2).items()), list(TABLE.items())


def selected(files: LearnerFiles) -> tuple:
    shared = ((b't', 9, 3), ('文'.encode(), 4, 0))
    files.round(3).write_selection(2, (0, 7), PartitionSelection(TABLE, shared))

    def read() -> tuple:
        found = files.round(3).read_selection(2, (0, 7))
        return list(found.kept.items()), found.shared

    return files.round(3).selection_path(2, (0, 7)), read, (list(TABLE.items()), shared)


KINDS = [
    facts, reserved, finished_pass, first_table, heavy_table, sizes, frequent, unknown_heavy,
    vocabulary, selected,
]  # fmt: skip


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def written(request, tmp_path) -> tuple[Path, Callable[[], object], object]:
    """A file of a kind: its path, what reads it, and what is to be read."""
    path, read, expected = request.param(LearnerFiles(str(tmp_path)))
    return Path(path), read, expected


def test_is_read_as_it_was_written(written):
    _, read, expected = written
    assert read() == expected


def test_is_known_by_its_name(written, tmp_path):
    path, _, _ = written
    assert is_learner_file(str(path.relative_to(tmp_path)))


def test_a_flipped_bit_is_told(written):
    path, read, _ = written
    whole = path.read_bytes()
    for bit in random.Random(3).sample(range(8 * len(whole)), min(200, 8 * len(whole))):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(InputError, match='is damaged; run again, and it is made anew'):
            read()


def test_a_lost_end_is_told(written):
    path, read, expected = written
    whole = path.read_bytes()
    # Of nothing at all, a reader of heavy suffixes learns that they are not known, as may be.
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match='is damaged'):
            read()


def test_is_read_as_6b30307_wrote_it(written):
    path, read, expected = written
    path.write_bytes(path.read_bytes()[20:])
    assert read() == expected


def test_borders_that_do_not_ascend_are_told(tmp_path):
    path = tmp_path / 'survey.json'
    path.write_bytes(json.dumps({**json.loads(FACTS.to_json()), 'borders': ['th', 'b']}).encode())
    with pytest.raises(InputError, match='is damaged'):
        TokenStats.read(str(path))


@pytest.mark.parametrize(
    'name',
    [
        '.tokbeam-attempt-0123456789abcdef0123456789abcdef',
        'first/.tokbeam-attempt-0123456789abcdef0123456789abcdef',
        'round-17/groups/.tokbeam-attempt-0123456789abcdef0123456789abcdef',
        # Of 6b30307.
        '.tokbeam-attempt-survey.json-0123456789abcdef0123456789abcdef',
        'round-17/.tokbeam-attempt-claims-2-00000-0123456789abcdef0123456789abcdef',
        'round-17/groups/.tokbeam-attempt-group-00003-0123456789abcdef0123456789abcdef',
        'round-17/claims-2-00000',
        'sizes-0',
    ],
)
def test_what_killed_runs_leave_is_known(name):
    assert is_learner_file(name)


@pytest.mark.parametrize(
    'name',
    ['thesis', 'survey.json.bak', 'first', 'round-17', 'round-17/thesis', 'first/round-17/heavy',
     'vocabulary-4', 'round-/heavy', '../round-17/heavy', 'round-17/groups/group-1',
     '.tokbeam-attempt-thesis', 'groups/group-00001', 'asked.json\n'],
)  # fmt: skip
def test_no_other_name_is_known(name):
    assert not is_learner_file(name)
