"""A run killed at any moment leaves no file under a final name that is not whole.

Whole means: byte for byte what the run that nobody killed has under that name. The rerun then gives
all of them, and sweeps what the killed one left.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from attempts import attempt_at
from generated_text import as_tsv, pairs_with_gaps
from jobs import succeed, write
from killed_runs import NEVER, Measured, Moment, moments_of, run_until
from leftovers import assert_finished, final_files, result_files

from pipelines.files import filesystem

pytestmark = pytest.mark.slow

ENZH = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora' / 'enzh.tsv.gz'


def assert_all_whole(folder: Path, *references: Mapping[str, bytes]) -> None:
    """Each final file is one of a reference's; a manifest stands only by all files it speaks of."""
    files = result_files(folder)
    for name, data in files.items():
        assert any(reference.get(name) == data for reference in references), name
    for name, data in final_files(folder).items():
        if name.endswith('.json'):
            json.loads(data)
    for name, data in files.items():
        if name.endswith('tokbeam.json'):
            # A dataset's manifest comes last, so it also speaks for the counts; that of an earlier
            # result stands until its shards are replaced, which comes after the counts.
            manifest = json.loads(data)
            listed = [file['name'] for file in manifest['files'] + manifest.get('index', [])]
            folder_of = Path(name).parent
            expected = [str(folder_of / file) for file in listed]
            if name == 'tokbeam.json' and data == references[0].get(name):
                expected = list(references[0])
            assert any(
                reference.get(name) == data
                and all(files.get(each) == reference[each] for each in expected)
                for reference in references
            ), name


def build_arguments(corpus: Path, folder: Path, vocab_size: int, *extra: object) -> list[object]:
    inputs = ['--tsv', corpus, '--dev', corpus]
    options = ['--name', 'killed', '--vocab-size', vocab_size, '--shards', 5]
    return ['build', *inputs, *options, '--output', folder, *extra]


def kill_and_rerun(
    corpus: Path,
    folder: Path,
    vocab_size: int,
    moment: Moment,
    reference: Mapping[str, bytes],
    *extra: object,
) -> bool:
    """Returns whether the kill came before the end."""
    arguments = build_arguments(corpus, folder, vocab_size, *extra)
    was_killed, _ = run_until(arguments, folder, moment)
    assert_all_whole(folder, reference)
    succeed(*arguments)
    assert result_files(folder) == reference
    succeed('verify', folder)  # its root too is that of a run that nobody killed
    assert_finished(folder)
    shutil.rmtree(folder)
    return was_killed


def measure(
    corpus: Path, folder: Path, vocab_size: int, *extra: object
) -> tuple[Measured, Mapping[str, bytes]]:
    """Returns what is seen of a whole run, and its result, which every rerun must give."""
    # The first may have to compile, and only a warm run tells how long one takes.
    succeed(*build_arguments(corpus, folder / 'first', vocab_size, *extra))
    reference = result_files(folder / 'first')
    second = folder / 'second'
    _, measured = run_until(build_arguments(corpus, second, vocab_size, *extra), second, NEVER)
    assert result_files(second) == reference
    return measured, reference


@pytest.fixture(scope='module')
def corpus(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp('corpus') / 'pairs.tsv', as_tsv(pairs_with_gaps(1500, 3)))


@pytest.fixture(scope='module')
def measured_build(corpus, tmp_path_factory) -> tuple[Measured, Mapping[str, bytes]]:
    return measure(corpus, tmp_path_factory.mktemp('reference'), 1000)


def test_killed_at_some_moments(corpus, measured_build, tmp_path):
    measured, reference = measured_build
    killed = [
        kill_and_rerun(corpus, tmp_path / str(number), 1000, moment, reference)
        for number, moment in enumerate(moments_of(measured, 4, seed=1))
    ]
    assert sum(killed) >= 2


WORDPIECE = ['--scheme', 'wordpiece', '--min-count-range', '2:10000']
SCHEMES = {
    'wordpiece': WORDPIECE,
    'wordpiece on Beam': [*WORDPIECE, '--learner', 'beam'],
    'codes': ['--scheme', 'bpe', '--preset', 'subword-nmt'],
}


@pytest.mark.parametrize(
    'scheme',
    [
        each if each == 'codes' else pytest.param(each, marks=pytest.mark.corpora)
        for each in SCHEMES
    ],
)
def test_other_schemes_killed_at_some_moments(corpus, tmp_path, scheme):
    extra = SCHEMES[scheme]
    measured, reference = measure(corpus, tmp_path / 'reference', 700, *extra)
    for number, moment in enumerate(moments_of(measured, 1, seed=4)):
        kill_and_rerun(corpus, tmp_path / str(number), 700, moment, reference, *extra)


def test_what_was_left_in_a_stage_that_had_just_ended_is_swept_too(build, write_corpus, tmp_path):
    # As if it had been killed after the counts' manifest and before the end of their attempt.
    folder = tmp_path / 'out'
    assert build(write_corpus('text')).status == 0
    (folder / 'tokbeam.json').unlink()
    left = attempt_at(folder / 'counts').__enter__()
    filesystem.write_bytes(os.path.join(left.path, 'counts-00000-of-00032.parquet'), b'half')
    assert build(write_corpus('text')).status == 0
    assert_finished(folder)


def test_what_a_killed_run_left_beside_a_finished_result_is_swept(build, write_corpus, tmp_path):
    folder = tmp_path / 'out'
    assert build(write_corpus('text')).status == 0
    left = attempt_at(folder).__enter__()
    filesystem.write_bytes(os.path.join(left.path, 'tokbeam.run.json'), b'{')
    assert build(write_corpus('text')).status == 0
    assert_finished(folder)


@pytest.mark.corpora
@pytest.mark.skipif(not ENZH.exists(), reason='the shared corpora are not here')
def test_killed_at_twenty_moments_of_a_whole_corpus(tmp_path):
    measured, reference = measure(ENZH, tmp_path, 8192)
    killed = [
        kill_and_rerun(ENZH, tmp_path / str(number), 8192, moment, reference)
        for number, moment in enumerate(moments_of(measured, 20, seed=3))
    ]
    assert sum(killed) >= 15
