"""A learner's files: whole or absent, and resumed only by the search that they belong to."""

import dataclasses
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipelines.files.attempts import swept, write_checked
from pipelines.files.claims import Claim
from pipelines.learning.rounds import (
    LearnerFiles,
    MergeFiles,
    OutputRounds,
    SearchRounds,
    TokenStats,
    WordFiles,
    is_learner_file,
)
from tokcore.counts.token_table import TokenTable
from tokcore.errors import FullDiskError, InputError
from tokcore.subword.suffix_tables import SuffixTable
from tokcore.subword.sweep import PartitionSelection

TABLE = SuffixTable.from_items([(b'the', 5), (b'then', 2), ('文字'.encode(), 7)])
STATS = TokenStats('aeht文', 3, 12, 40, 7, 1000, (b'b', b'th', '文'.encode()))

SEARCH = {'counts': [(17, '0badcafe')], 'reserved': ('<pad>', '<EOS>')}


def stats(files: LearnerFiles) -> tuple:
    STATS.write(files.survey_path)
    return files.survey_path, lambda: TokenStats.read(files.survey_path), STATS


def reserved(files: LearnerFiles) -> tuple:
    files.write_reserved(['<pad>_', '<EOS>_'])
    return files.reserved_path, files.round(3).read_reserved, ['<pad>_', '<EOS>_']


def finished_pass(files: LearnerFiles) -> tuple:
    files.finish_pass(2, 9, [[2, 100], [8, 7]])
    return files.pass_path(2), lambda: files.finished_pass(2), (9, {2: 100, 8: 7})


def first_table(files: LearnerFiles) -> tuple:
    files.first.write(4, TABLE)
    return files.first.path(4), lambda: list(files.first.read(4).items()), list(TABLE.items())


def frequent_table(files: LearnerFiles) -> tuple:
    groups = files.round(3).groups
    groups.write(12345, TABLE)
    return groups.path(12345), lambda: list(groups.read(12345).items()), list(TABLE.items())


def sizes(files: LearnerFiles) -> tuple:
    files.round(3).write_sizes({4: 10, 2: 77})
    return files.round(3).sizes_path, files.round(3).read_sizes, {2: 77, 4: 10}


def frequent(files: LearnerFiles) -> tuple:
    tables = [TABLE, SuffixTable.empty(), TABLE]
    files.round(3).write_frequent(tables)

    def read() -> list[list]:
        return [list(table.items()) for table in files.round(3).read_frequent()]

    return files.round(3).frequent_path, read, [list(table.items()) for table in tables]


def unknown_frequent(files: LearnerFiles) -> tuple:
    files.round(3).write_frequent(None)
    return files.round(3).frequent_path, files.round(3).read_frequent, None


def vocabulary(files: LearnerFiles) -> tuple:
    files.round(3).write_vocabulary(2, TABLE)
    path = files.round(3).vocabulary_path(2)
    return path, lambda: list(files.round(3).read_vocabulary(2).items()), list(TABLE.items())


def selected(files: LearnerFiles) -> tuple:
    shared = ((b't', 9, 3), ('文'.encode(), 4, 0))
    files.round(3).write_selection(2, (0, 7), PartitionSelection(TABLE, shared))

    def read() -> tuple:
        selection = files.round(3).read_selection(2, (0, 7))
        return list(selection.strings.items()), selection.shared

    return files.round(3).selection_path(2, (0, 7)), read, (list(TABLE.items()), shared)


def merges(files: LearnerFiles) -> tuple:
    merge_files = MergeFiles(files.folder)
    merge_files.write_merges(np.array([1 << 32 | 7, 3]), np.array([1 << 40, 2]))

    def read() -> list:
        return [each.tolist() for each in merge_files.read_merges()]

    return merge_files.merges_path, read, [[1 << 32 | 7, 3], [1 << 40, 2]]


def characters(files: LearnerFiles) -> tuple:
    merge_files = MergeFiles(files.folder)
    merge_files.write_characters('a\n文', 'é🙂')
    return merge_files.characters_path, merge_files.read_characters, ('a\n文', 'é🙂')


def words(files: LearnerFiles) -> tuple:
    word_files = WordFiles(files.folder)
    path = word_files.words_path(7)
    table = TokenTable.from_items([('the', 5), ('文字', 1 << 40)])
    word_files.write_table(path, table)
    return path, lambda: dict(word_files.read_table(path).items()), dict(table.items())


def first_counts(files: LearnerFiles) -> tuple:
    path = WordFiles(files.folder).first_path
    WordFiles.write_json(path, [[0, 31], ['a', '文']])
    return path, lambda: WordFiles.read_json(path), [[0, 31], ['a', '文']]


def pieces(files: LearnerFiles) -> tuple:
    path = WordFiles(files.folder).pieces_path(10_000_000, 12)
    WordFiles.write_table(path, TokenTable.from_items([('Wthe', 5)]))
    return path, lambda: dict(WordFiles.read_table(path).items()), {'Wthe': 5}


KINDS = [
    stats, reserved, finished_pass, first_table, frequent_table, sizes, frequent, unknown_frequent,
    vocabulary, selected, merges, characters, words, first_counts, pieces,
]  # fmt: skip


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def written(request, tmp_path) -> tuple[Path, Callable[[], object], object]:
    """A file of each kind: its path, a function that reads it, and the expected value."""
    path, read, expected = request.param(LearnerFiles(str(tmp_path)))
    return Path(path), read, expected


def test_is_read_as_it_was_written(written):
    _, read, expected = written
    assert read() == expected


def test_is_recognized_by_its_name(written, tmp_path):
    path, _, _ = written
    assert is_learner_file(str(path.relative_to(tmp_path)))


def test_a_flipped_bit_is_an_error(written):
    path, read, _ = written
    whole = path.read_bytes()
    for bit in random.Random(3).sample(range(8 * len(whole)), min(200, 8 * len(whole))):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(InputError, match='is damaged; run again, and it is made anew'):
            read()


def test_a_truncated_file_is_an_error(written):
    path, read, expected = written
    whole = path.read_bytes()
    # From 1 on: an empty file of frequent suffixes means that they are unknown.
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match='is damaged'):
            read()


def test_words_are_known_by_their_merges_and_deleted_with_what_a_kill_left(tmp_path):
    files = MergeFiles(str(tmp_path))
    assert files.numbers_of_merges() == [] and files.read_merges()[0].tolist() == []
    for number in (7, 120, 0):
        path = Path(files.words_path(number, 3))
        path.parent.mkdir()
        path.write_bytes(b'')
        (path.parent / f'.tokbeam-attempt-{number:032x}').write_bytes(b'')
        assert all(is_learner_file(name) for name in names(tmp_path) if '/' in name)
    assert files.numbers_of_merges() == [120, 7, 0]
    files.delete_words(7)
    assert files.numbers_of_merges() == [120, 0]


@pytest.mark.parametrize('name', ['survey.json', 'merges'])
def test_work_that_was_begun_stays_after_an_error_of_the_system(tmp_path, name):
    rounds = rounds_of(tmp_path)
    with rounds.claimed():
        path = Path(rounds.folder) / name
    rounds.output_rounds.sweep(keep_begun=True)
    assert not path.parent.exists()
    with rounds.claimed():
        path.write_text('')
    rounds.output_rounds.sweep(keep_begun=True)
    assert path.exists()


def test_borders_that_do_not_ascend_are_an_error(tmp_path):
    path = str(tmp_path / 'survey.json')
    fields = {**dataclasses.asdict(STATS), 'borders': ['th', 'b']}
    write_checked(path, json.dumps(fields).encode())
    with pytest.raises(InputError, match='is damaged'):
        TokenStats.read(path)


@pytest.mark.parametrize(
    'name',
    [
        '.tokbeam-attempt-0123456789abcdef0123456789abcdef',
        'first/.tokbeam-attempt-0123456789abcdef0123456789abcdef',
        'round-17/groups/.tokbeam-attempt-0123456789abcdef0123456789abcdef',
    ],
)
def test_files_that_killed_runs_leave_are_recognized(name):
    assert is_learner_file(name)


@pytest.mark.parametrize(
    'name',
    ['thesis', 'survey.json.bak', 'first', 'round-17', 'round-17/thesis', 'first/round-17/frequent',
     'vocabulary-4', 'round-/frequent', '../round-17/frequent', 'round-17/groups/group-1',
     '.tokbeam-attempt-thesis', 'groups/group-00001', 'sizes-0', 'round-17/selection-2-00000',
     'search.json\n', 'words-3', 'words-3/part-1', 'words-x/part-00001'],
)  # fmt: skip
def test_other_names_are_not_recognized(name):
    assert not is_learner_file(name)


def rounds_of(work: Path, output: str = 'v', size: int = 500) -> SearchRounds:
    return SearchRounds(OutputRounds(str(work), output), {**SEARCH, 'vocab_size': size})


def begin(rounds: SearchRounds) -> Path:
    """Writes the files that a killed learner leaves."""
    folder = Path(rounds.folder)
    with rounds.claimed():
        (folder / 'round-7' / 'groups').mkdir(parents=True)
        for name in ['survey.json', 'round-7/vocabulary-4', 'round-7/groups/group-00000']:
            (folder / name).write_text(str(folder))
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*'))


def test_each_output_and_each_search_has_a_folder_of_its_own(tmp_path):
    folders = {
        rounds_of(tmp_path).folder,
        rounds_of(tmp_path, size=501).folder,
        rounds_of(tmp_path, output='w').folder,
        rounds_of(tmp_path / 'other').folder,
    }
    assert len(folders) == 4
    assert rounds_of(tmp_path).folder in folders


def test_rounds_beside_an_output_move_with_it(tmp_path):
    places = [OutputRounds.of(str(tmp_path / folder), 'v') for folder in 'ab']
    assert [Path(rounds.work) for rounds in places] == [
        tmp_path / 'a' / '.tokbeam', tmp_path / 'b' / '.tokbeam',
    ]  # fmt: skip
    assert places[0].output == places[1].output
    shared = [OutputRounds.of(str(tmp_path / folder), 'v', str(tmp_path)) for folder in 'ab']
    assert shared[0].work == shared[1].work
    assert shared[0].output != shared[1].output


def test_the_second_of_two_runs_on_the_same_rounds_is_refused(tmp_path):
    with rounds_of(tmp_path).claimed():
        with pytest.raises(InputError, match='is being written by process'):
            with rounds_of(tmp_path).claimed():
                pass
        with rounds_of(tmp_path, size=501).claimed(), rounds_of(tmp_path, output='w').claimed():
            pass
    with rounds_of(tmp_path).claimed():
        pass


def test_a_work_folder_that_cannot_be_written_to_is_an_error(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(InputError, match='cannot '), rounds_of(tmp_path / 'file').claimed():
        pass


def test_a_sweep_leaves_other_outputs_and_strange_files(tmp_path):
    mine, others = begin(rounds_of(tmp_path)), begin(rounds_of(tmp_path, output='w'))
    (mine / 'thesis').write_text('')
    (mine / 'round-7' / 'thesis').write_text('')
    (tmp_path / 'learner-thesis').mkdir()
    (tmp_path / 'learner-0123456789abcdef').mkdir()
    (tmp_path / 'learner-0123456789abcdef' / 'survey.json').write_text('')
    before = names(others)
    OutputRounds(str(tmp_path), 'v').sweep()
    assert names(mine) == ['round-7', 'round-7/thesis', 'thesis']
    assert names(others) == before
    assert (tmp_path / 'learner-thesis').is_dir()
    assert (tmp_path / 'learner-0123456789abcdef' / 'survey.json').exists()


def test_a_sweep_deletes_all_searches_for_an_output(tmp_path):
    begin(rounds_of(tmp_path))
    begin(rounds_of(tmp_path, size=501))
    OutputRounds(str(tmp_path), 'v').sweep()
    assert names(tmp_path) == []


def test_a_sweep_leaves_rounds_that_another_run_uses(tmp_path):
    folder = begin(rounds_of(tmp_path))
    before = names(folder)
    with rounds_of(tmp_path).claimed():
        OutputRounds(str(tmp_path), 'v').sweep()
    assert names(folder) == before


def test_a_sweep_that_was_killed_can_be_repeated(tmp_path):
    folder = begin(rounds_of(tmp_path))
    for name in ['survey.json', 'round-7/vocabulary-4', 'round-7/groups/group-00000']:
        (folder / name).unlink()
        folder.with_name(f'{folder.name}.lock').write_text('of a process that is gone')
        shutil.copytree(tmp_path, tmp_path.with_name(f'{tmp_path.name}-{len(name)}'))
    for copy in [tmp_path, *tmp_path.parent.glob(f'{tmp_path.name}-*')]:
        OutputRounds(str(copy), 'v').sweep()
        assert names(copy) == []


def test_the_lock_of_a_run_that_was_killed_at_its_start_is_swept(tmp_path):
    left = tmp_path / 'learner-0123456789abcdef.lock'
    left.write_text('of a process that is gone')
    with rounds_of(tmp_path, output='w').claimed():
        OutputRounds(str(tmp_path), 'v').sweep()
        assert not left.exists()
        assert len([name for name in names(tmp_path) if name.endswith('.lock')]) == 1


def test_only_the_tools_own_work_folder_is_deleted(tmp_path):
    own, shared = tmp_path / '.tokbeam', tmp_path / 'shared'
    for work in (own, shared):
        begin(rounds_of(work))
        OutputRounds(str(work), 'v').sweep()
    assert not own.exists()
    assert names(shared) == []
    own.mkdir()
    (own / 'thesis').write_text('')
    OutputRounds(str(own), 'v').sweep()
    assert names(own) == ['thesis']


def test_links_are_not_written_through_and_not_followed(tmp_path):
    victim, work = tmp_path / 'victim', tmp_path / 'work'
    begin(rounds_of(victim))
    before = names(victim)
    rounds = rounds_of(work)
    folder = begin(rounds)
    (folder / 'round-8').symlink_to(Path(rounds_of(victim).folder) / 'round-7')
    (folder / 'first-00000.json').symlink_to(victim / 'thesis')
    (folder / 'frequent').symlink_to(victim)
    with rounds.claimed():
        files = LearnerFiles(rounds.folder)
        with pytest.raises(InputError, match='round-8 is a symbolic link'):
            files.round(8).write_sizes({4: 10})
        files.finish_pass(0, 1, [[2, 3]])
        assert not (folder / 'first-00000.json').is_symlink()
    rounds.output_rounds.sweep()
    assert names(folder) == ['frequent', 'round-8']
    assert names(victim) == before


def test_a_link_in_place_of_the_folder_is_removed(tmp_path):
    victim = begin(rounds_of(tmp_path / 'victim'))
    before = names(victim)
    work = tmp_path / 'work'
    work.mkdir()
    rounds = rounds_of(work)
    Path(rounds.folder).symlink_to(victim)
    with pytest.raises(InputError, match='is a symbolic link'), rounds.claimed():
        pass
    rounds.output_rounds.sweep()
    assert not Path(rounds.folder).is_symlink()
    assert names(victim) == before


def test_a_folder_whose_name_is_not_the_digest_of_its_search_is_not_swept(tmp_path):
    folder = begin(rounds_of(tmp_path))
    renamed = folder.rename(tmp_path / 'learner-0123456789abcdef')
    before = names(renamed)
    OutputRounds(str(tmp_path), 'v').sweep()
    assert names(renamed) == before


def test_rounds_of_another_format_are_not_used(tmp_path, monkeypatch):
    folder = begin(rounds_of(tmp_path))
    monkeypatch.setattr('pipelines.learning.rounds.LEARNER_ROUNDS', 1)
    assert rounds_of(tmp_path).folder != str(folder)
    OutputRounds(str(tmp_path), 'v').sweep()
    assert not folder.exists()


@pytest.mark.parametrize(
    'content', [b'', b'[]', b'"v"', b'{"output": "v"}', b'[' * 100_000, b'\xff']
)
def test_a_folder_without_a_valid_search_is_not_swept(tmp_path, content):
    folder = begin(rounds_of(tmp_path))
    (folder / 'search.json').write_bytes(content)
    before = names(folder)
    OutputRounds(str(tmp_path), 'v').sweep()
    assert names(folder) == before


@pytest.mark.parametrize(
    ('error', 'is_kept'),
    [
        (None, False),
        (InputError('a size below the alphabet'), False),
        (FullDiskError('no room'), True),
        (RuntimeError('a failure'), True),
        (KeyboardInterrupt(), True),
    ],
)
def test_rounds_stay_if_a_new_run_may_resume_them(tmp_path, error, is_kept):
    rounds = rounds_of(tmp_path / '.tokbeam')
    folder = begin(rounds)
    try:
        with swept(rounds.output_rounds):
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error
    assert folder.exists() == is_kept
    assert Path(rounds.output_rounds.work).exists() == is_kept


def test_no_folder_stays_if_nothing_was_begun(tmp_path):
    rounds = rounds_of(tmp_path / '.tokbeam')
    with pytest.raises(FullDiskError), swept(rounds.output_rounds), rounds.claimed():
        raise FullDiskError('no room for the survey')
    assert names(tmp_path) == []


def test_a_refused_claim_leaves_the_rounds_to_a_later_run(tmp_path):
    rounds = rounds_of(tmp_path)
    with Claim(f'{rounds.folder}.lock', 'this'), pytest.raises(InputError):
        with swept(rounds.output_rounds), rounds.claimed():
            pass
    with rounds.claimed():
        pass
