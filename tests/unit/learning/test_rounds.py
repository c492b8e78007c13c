"""A learner's files: whole or absent, and resumed only by the search that they belong to."""

import dataclasses
import json
import random
import shutil
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
    read_json,
    read_packed,
    write_json,
)
from tokcore.counts.token_table import TokenTable
from tokcore.errors import FullDiskError, InputError
from tokcore.subword.suffix_tables import SuffixTable
from tokcore.subword.sweep import PartitionSelection

TABLE = SuffixTable.from_items([(b'the', 5), (b'then', 2), ('文字'.encode(), 7)])
STATS = TokenStats('aeht文', 3, 12, 40, 7, 1000, (b'b', b'th', '文'.encode()))

SEARCH = {'counts': [(17, '0badcafe')], 'reserved': ('<pad>', '<EOS>')}


def kinds(folder: str) -> dict[str, tuple]:
    """For each kind of file: its path, functions that write and read it, and the value read."""
    files, merges, words = LearnerFiles(folder), MergeFiles(folder), WordFiles(folder)
    of_round, rows = files.round(3), list(TABLE.items())
    shared = ((b't', 9, 3), ('文'.encode(), 4, 0))
    token_table = TokenTable.from_items([('the', 5), ('文字', 1 << 40)])

    def table(read, *arguments):
        return lambda: list(read(*arguments).items())

    def selection():
        found = of_round.read_selection(2, (0, 7))
        return list(found.strings.items()), found.shared

    def json_file(path, value):
        return path, lambda: write_json(path, value), lambda: read_json(path), value

    def packed(path, value):
        return (
            path, lambda: write_checked(path, value.to_bytes()),
            table(read_packed, type(value), path), list(value.items()),
        )  # fmt: skip

    return {
        'stats': (
            files.survey_path, lambda: STATS.write(files.survey_path),
            lambda: TokenStats.read(files.survey_path), STATS,
        ),
        'reserved': json_file(files.reserved_path, ['<pad>_', '<EOS>_']),
        'finished pass': json_file(files.pass_path(2), [9, [[2, 100], [8, 7]]]),
        'first table': (
            files.first.path(4), lambda: files.first.write(4, TABLE), table(files.first.read, 4), rows,
        ),
        'frequent table': (
            of_round.groups.path(12345), lambda: of_round.groups.write(12345, TABLE),
            table(of_round.groups.read, 12345), rows,
        ),
        'sizes': json_file(of_round.sizes_path, [[2, 77], [4, 10]]),
        'frequent': (
            of_round.frequent_path, lambda: of_round.write_frequent([TABLE, SuffixTable.empty(), TABLE]),
            lambda: [list(each.items()) for each in of_round.read_frequent()], [rows, [], rows],
        ),
        'unknown frequent': (
            of_round.frequent_path, lambda: of_round.write_frequent(None), of_round.read_frequent, None,
        ),
        'vocabulary': (
            of_round.vocabulary_path(2), lambda: of_round.write_vocabulary(2, TABLE),
            table(of_round.read_vocabulary, 2), rows,
        ),
        'selection': (
            of_round.selection_path(2, (0, 7)),
            lambda: of_round.write_selection(2, (0, 7), PartitionSelection(TABLE, shared)),
            selection, (rows, shared),
        ),
        'merges': (
            merges.merges_path,
            lambda: merges.write_merges(np.array([1 << 32 | 7, 3]), np.array([1 << 40, 2])),
            lambda: [each.tolist() for each in merges.read_merges()], [[1 << 32 | 7, 3], [1 << 40, 2]],
        ),
        'characters': json_file(merges.characters_path, ['a\n文', 'é🙂']),
        'words': packed(words.words_path(7), token_table),
        'first counts': json_file(words.first_path, [[0, 31], ['a', '文']]),
        'pieces': packed(words.pieces_path(10_000_000, 12), token_table),
    }  # fmt: skip


@pytest.mark.parametrize('kind', kinds(''))
def test_files_are_read_as_they_were_written_and_not_if_damaged(tmp_path, kind):
    path, write, read, expected = kinds(str(tmp_path))[kind]
    write()
    assert read() == expected
    path = Path(path)
    assert is_learner_file(str(path.relative_to(tmp_path)))
    whole = path.read_bytes()
    for bit in random.Random(3).sample(range(8 * len(whole)), min(200, 8 * len(whole))):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(InputError, match='is damaged; run again, and it is made anew'):
            read()
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


ATTEMPT = '.tokbeam-attempt-0123456789abcdef0123456789abcdef'


def test_names_of_learner_files():
    for name in (ATTEMPT, f'first/{ATTEMPT}', f'round-17/groups/{ATTEMPT}'):
        assert is_learner_file(name)
    for name in (
        'thesis', 'survey.json.bak', 'first', 'round-17', 'round-17/thesis', 'first/round-17/frequent',
        'vocabulary-4', 'round-/frequent', '../round-17/frequent', 'round-17/groups/group-1',
        '.tokbeam-attempt-thesis', 'groups/group-00001', 'sizes-0', 'round-17/selection-2-00000',
        'search.json\n', 'words-3', 'words-3/part-1', 'words-x/part-00001',
    ):  # fmt: skip
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


def test_a_sweep_deletes_all_searches_for_an_output_that_no_run_uses(tmp_path):
    folder = begin(rounds_of(tmp_path))
    before = names(folder)
    with rounds_of(tmp_path).claimed():
        OutputRounds(str(tmp_path), 'v').sweep()
    assert names(folder) == before
    begin(rounds_of(tmp_path, size=501))
    OutputRounds(str(tmp_path), 'v').sweep()
    assert names(tmp_path) == []


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
            write_json(files.round(8).sizes_path, [[4, 10]])
        write_json(files.pass_path(0), [1, [[2, 3]]])
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


def test_rounds_of_another_format_are_not_used(tmp_path, monkeypatch):
    folder = begin(rounds_of(tmp_path))
    monkeypatch.setattr('pipelines.learning.rounds.LEARNER_ROUNDS', 1)
    assert rounds_of(tmp_path).folder != str(folder)
    OutputRounds(str(tmp_path), 'v').sweep()
    assert not folder.exists()


@pytest.mark.parametrize(
    'content', [None, b'', b'[]', b'"v"', b'{"output": "v"}', b'[' * 100_000, b'\xff']
)
def test_a_folder_without_its_valid_search_is_not_swept(tmp_path, content):
    folder = begin(rounds_of(tmp_path))
    if content is None:
        folder = folder.rename(
            tmp_path / 'learner-0123456789abcdef'
        )  # not the digest of its search
    else:
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


def test_a_run_that_begins_nothing_leaves_nothing(tmp_path):
    rounds = rounds_of(tmp_path / '.tokbeam')
    with pytest.raises(FullDiskError), swept(rounds.output_rounds), rounds.claimed():
        raise FullDiskError('no room for the survey')
    assert names(tmp_path) == []
    with Claim(f'{rounds.folder}.lock', 'this'), pytest.raises(InputError):
        with swept(rounds.output_rounds), rounds.claimed():
            pass
    with rounds.claimed():
        pass
