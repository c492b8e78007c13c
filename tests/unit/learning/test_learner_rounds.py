"""The folders that learners on Beam keep their rounds in, in a work folder that others share."""

import shutil
from pathlib import Path

import pytest

from pipelines.files.claims import Claim
from pipelines.learning.learner_rounds import KeptRounds, RoundsPlace
from tokcore.errors import FullDiskError, InputError

CONTENT = {'format': 1, 'counts': [(17, '0badcafe')], 'reserved': ('<pad>', '<EOS>')}


def kept(work: Path, output: str = 'v', size: int = 500) -> KeptRounds:
    return KeptRounds(RoundsPlace(str(work), output), CONTENT, {'vocab_size': size})


def begin(rounds: KeptRounds) -> Path:
    """Leaves what a killed learner leaves."""
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
        kept(tmp_path).folder,
        kept(tmp_path, size=501).folder,
        kept(tmp_path, output='w').folder,
        kept(tmp_path / 'other').folder,
    }
    assert len(folders) == 4
    assert kept(tmp_path).folder in folders


def test_the_place_beside_an_output_moves_with_it(tmp_path):
    places = [RoundsPlace.of(str(tmp_path / folder), 'v') for folder in 'ab']
    assert [Path(each.work) for each in places] == [
        tmp_path / 'a' / '.tokbeam', tmp_path / 'b' / '.tokbeam',
    ]  # fmt: skip
    assert places[0].output == places[1].output
    given = [RoundsPlace.of(str(tmp_path / folder), 'v', str(tmp_path)) for folder in 'ab']
    assert given[0].work == given[1].work
    assert given[0].output != given[1].output


def test_the_second_of_two_runs_on_the_same_rounds_is_refused(tmp_path):
    with kept(tmp_path).claimed():
        with pytest.raises(InputError, match='is being written by process'):
            with kept(tmp_path).claimed():
                pass
        with kept(tmp_path, size=501).claimed(), kept(tmp_path, output='w').claimed():
            pass
    with kept(tmp_path).claimed():
        pass


def test_a_work_folder_that_cannot_be_written_to_is_told(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(InputError, match='cannot '):
        with kept(tmp_path / 'file').claimed():
            pass


def test_a_sweep_leaves_other_outputs_and_strange_files(tmp_path):
    mine, others = begin(kept(tmp_path)), begin(kept(tmp_path, output='w'))
    (mine / 'thesis').write_text('')
    (mine / 'round-7' / 'thesis').write_text('')
    (tmp_path / 'learner-thesis').mkdir()
    (tmp_path / 'learner-0123456789abcdef').mkdir()
    (tmp_path / 'learner-0123456789abcdef' / 'survey.json').write_text('')
    before = names(others)
    RoundsPlace(str(tmp_path), 'v').sweep()
    assert names(mine) == ['round-7', 'round-7/thesis', 'thesis']
    assert names(others) == before
    assert (tmp_path / 'learner-thesis').is_dir()
    assert (tmp_path / 'learner-0123456789abcdef' / 'survey.json').exists()


def test_a_sweep_takes_all_searches_for_an_output(tmp_path):
    begin(kept(tmp_path))
    begin(kept(tmp_path, size=501))
    RoundsPlace(str(tmp_path), 'v').sweep()
    assert names(tmp_path) == []


def test_a_sweep_leaves_what_another_run_is_at_work_on(tmp_path):
    folder = begin(kept(tmp_path))
    before = names(folder)
    with kept(tmp_path).claimed():
        RoundsPlace(str(tmp_path), 'v').sweep()
    assert names(folder) == before


def test_a_sweep_that_was_killed_is_taken_up(tmp_path):
    folder = begin(kept(tmp_path))
    for name in ['survey.json', 'round-7/vocabulary-4', 'round-7/groups/group-00000']:
        (folder / name).unlink()
        folder.with_name(f'{folder.name}.lock').write_text('of a process that is gone')
        shutil.copytree(tmp_path, tmp_path.with_name(f'{tmp_path.name}-{len(name)}'))
    for copy in [tmp_path, *tmp_path.parent.glob(f'{tmp_path.name}-*')]:
        RoundsPlace(str(copy), 'v').sweep()
        assert names(copy) == []


def test_a_claim_of_a_run_that_was_killed_before_all_else_is_swept(tmp_path):
    left = tmp_path / 'learner-0123456789abcdef.lock'
    left.write_text('of a process that is gone')
    with kept(tmp_path, output='w').claimed():
        RoundsPlace(str(tmp_path), 'v').sweep()
        assert not left.exists()
        assert len([name for name in names(tmp_path) if name.endswith('.lock')]) == 1


def test_only_the_tools_own_work_folder_is_deleted(tmp_path):
    own, given = tmp_path / '.tokbeam', tmp_path / 'given'
    for work in (own, given):
        begin(kept(work))
        RoundsPlace(str(work), 'v').sweep()
    assert not own.exists()
    assert names(given) == []
    own.mkdir()
    (own / 'thesis').write_text('')
    RoundsPlace(str(own), 'v').sweep()
    assert names(own) == ['thesis']


def test_links_are_removed_and_not_followed(tmp_path):
    victim, work = tmp_path / 'victim', tmp_path / 'work'
    begin(kept(victim))
    before = names(victim)
    rounds = kept(work)
    folder = begin(rounds)
    (folder / 'round-8').symlink_to(Path(kept(victim).folder) / 'round-7')
    (folder / 'first-00000.json').symlink_to(victim)
    with rounds.claimed():
        assert not (folder / 'round-8').is_symlink()
        assert not (folder / 'first-00000.json').is_symlink()
        (folder / 'round-8').symlink_to(Path(kept(victim).folder) / 'round-7')
        (folder / 'round-8').rename(folder / 'heavy')
    rounds.place.sweep()
    assert (folder / 'heavy').is_symlink()  # of no name that a learner makes there
    assert names(victim) == before


def test_a_link_in_place_of_the_folder_is_removed(tmp_path):
    victim = begin(kept(tmp_path / 'victim'))
    before = names(victim)
    work = tmp_path / 'work'
    work.mkdir()
    rounds = kept(work)
    Path(rounds.folder).symlink_to(victim)
    rounds.place.sweep()
    assert names(victim) == before
    with rounds.claimed():
        assert not Path(rounds.folder).is_symlink()
    assert names(victim) == before


def test_a_folder_whose_name_is_not_the_digest_of_what_it_says_is_nobodys(tmp_path):
    folder = begin(kept(tmp_path))
    renamed = folder.rename(tmp_path / 'learner-0123456789abcdef')
    before = names(renamed)
    RoundsPlace(str(tmp_path), 'v').sweep()
    assert names(renamed) == before


@pytest.mark.parametrize('asked', [b'', b'[]', b'"v"', b'{"output": "v"}', b'[' * 100_000, b'\xff'])
def test_a_folder_that_says_nothing_sound_is_nobodys(tmp_path, asked):
    folder = begin(kept(tmp_path))
    (folder / 'asked.json').write_bytes(asked)
    before = names(folder)
    RoundsPlace(str(tmp_path), 'v').sweep()
    assert names(folder) == before


def earlier_folder(work: Path) -> Path:
    """What 6b30307 leaves: the same, by a digest of less, and without a word of what it is."""
    rounds = KeptRounds(RoundsPlace(str(work), 'v'), CONTENT, {})
    earlier = Path(rounds._earlier_folder)
    (earlier / 'round-7').mkdir(parents=True)
    (earlier / 'survey.json').write_text('')
    (earlier / 'round-7' / 'vocabulary-4').write_text('of 6b30307')
    return earlier


def test_rounds_of_6b30307_are_taken_up_by_one_search(tmp_path):
    earlier = earlier_folder(tmp_path)
    first, second = kept(tmp_path), kept(tmp_path, size=501)
    with first.claimed(), second.claimed():
        assert (Path(first.folder) / 'round-7' / 'vocabulary-4').read_text() == 'of 6b30307'
        assert names(Path(second.folder)) == ['asked.json']
    assert not earlier.exists()


def test_rounds_of_this_version_come_before_those_of_6b30307(tmp_path):
    folder = begin(kept(tmp_path))
    earlier = earlier_folder(tmp_path)
    with kept(tmp_path).claimed():
        assert (folder / 'round-7' / 'vocabulary-4').read_text() == str(folder)
    assert (earlier / 'round-7' / 'vocabulary-4').exists()


def test_a_link_in_place_of_the_rounds_of_6b30307_is_not_taken_up(tmp_path):
    victim = earlier_folder(tmp_path / 'victim')
    work = tmp_path / 'work'
    earlier = earlier_folder(work)
    earlier.rename(tmp_path / 'aside')
    earlier.symlink_to(victim)
    with kept(work).claimed():
        assert names(Path(kept(work).folder)) == ['asked.json']
    assert names(victim) == ['round-7', 'round-7/vocabulary-4', 'survey.json']


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
def test_rounds_stay_where_a_rerun_goes_on_with_them(tmp_path, error, is_kept):
    rounds = kept(tmp_path / '.tokbeam')
    folder = begin(rounds)
    try:
        with rounds.place.swept():
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error
    assert folder.exists() == is_kept
    assert Path(rounds.place.work).exists() == is_kept


def test_where_nothing_is_begun_nothing_stays(tmp_path):
    rounds = kept(tmp_path / '.tokbeam')
    with pytest.raises(FullDiskError):
        with rounds.place.swept(), rounds.claimed():
            raise FullDiskError('no room for the survey')
    assert names(tmp_path) == []


def test_a_claim_that_is_held_is_no_hindrance_to_its_holder(tmp_path):
    rounds = kept(tmp_path)
    with Claim(f'{rounds.folder}.lock', 'this'), pytest.raises(InputError):
        with rounds.place.swept(), rounds.claimed():
            pass
    with rounds.claimed():
        pass
