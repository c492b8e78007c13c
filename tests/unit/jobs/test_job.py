"""Jobs: their keys and files; which form the shuffle takes, and how much memory."""

import dataclasses

import pytest

from pipelines.artifacts.counts import CountsFolder
from pipelines.engines.engine import choose_engine
from pipelines.jobs.corpus import SplitPaths, find_corpus
from pipelines.jobs.job import (
    BuildJob,
    CorpusReading,
    CountJob,
    EncodeJob,
    EncodeOptions,
    Execution,
    TextToCount,
    VocabJob,
    VocabularyPaths,
)
from pipelines.options.vocabulary import SampleOptions
from pipelines.shuffle.plan import fit_memory
from tokcore.errors import InputError
from tokcore.records.manifest import VocabularyRecord
from tokcore.schemes import find_scheme

MIB = 1 << 20
PROCESSES = ['--direct_running_mode=multi_processing', '--direct_num_workers=3']


@pytest.fixture(autouse=True)
def memory_at_hand(monkeypatch):
    """A machine with 4 GiB free, and a process that holds as much as one that has just begun."""
    monkeypatch.setattr('pipelines.engines.runners.available_bytes', lambda: 4096 * MIB)
    monkeypatch.setattr('pipelines.engines.runners.resident_bytes', lambda: 300 * MIB)


@pytest.mark.parametrize(
    'flags, through_files',
    [
        ([], True),
        (PROCESSES, True),
        (['--runner=FlinkRunner'], True),
        (['--runner=DataflowRunner'], False),
    ],
)
def test_files_are_for_local_and_flink(flags, through_files):
    assert choose_engine(flags, None).runner.through_files is through_files


@pytest.mark.parametrize(
    'flags, processes', [([], 1), (PROCESSES, 3), (['--runner=FlinkRunner', '--parallelism=8'], 8)]
)
def test_processes_are_those_that_the_engine_runs(flags, processes):
    assert choose_engine(flags, None).runner.processes == processes


def fit(workers: int = 2, flags=(), longest_line=0, **limits: int):
    execution = Execution(choose_engine(list(flags), workers), item_bytes=12 * MIB, **limits)
    return fit_memory(execution, longest_line, vocabularies=2)


def test_a_buffer_that_fits_is_two_runs():
    memory = fit()
    assert (memory.run_bytes, memory.workers) == (128 * MIB, 2)


def test_a_run_does_not_depend_on_the_workers():
    assert len({fit(workers).run_bytes for workers in (1, 2, 3, 5)}) == 1


@pytest.mark.parametrize('limit', [900, 1200, 2000, 4000])
def test_all_that_is_held_stays_below_the_limit(limit):
    memory = fit(buffer_bytes=100_000 * MIB, memory_bytes=limit * MIB, workers=8)
    held = 2 * memory.run_bytes + memory.workers * 2 * 32 * MIB
    assert 0 < held < limit * MIB
    groups = (memory.workers + 1) * 2 * memory.group_bytes
    assert groups <= 2 * memory.run_bytes


def test_threads_are_given_up_before_the_job_is_refused():
    much = fit(memory_bytes=4000 * MIB, workers=8)
    little = fit(memory_bytes=1000 * MIB, workers=8)
    assert much.workers == 8
    assert 1 <= little.workers < 8


@pytest.mark.parametrize('flags', [[], PROCESSES])
def test_too_little_is_refused(flags):
    with pytest.raises(InputError, match='--memory'):
        fit(memory_bytes=100 * MIB, flags=flags)


def test_the_longest_line_is_counted_beyond_the_block_that_it_stands_for():
    lines = [size * MIB for size in (0, 6, 16, 32)]
    runs = [fit(buffer_bytes=100_000 * MIB, longest_line=line).run_bytes for line in lines]
    assert [runs[0] - each for each in runs[1:]] == [0, 80 * MIB, 208 * MIB]


def test_a_line_too_long_for_the_memory_is_refused_with_its_option():
    with pytest.raises(InputError, match='a smaller --max-line-size'):
        fit(memory_bytes=1000 * MIB, longest_line=64 * MIB)


@pytest.mark.parametrize(
    'name, size, bound, longest',
    [
        ('text', 500, 1000, 500),
        ('text', 500, 300, 300),
        ('text.gz', 500, 1 << 24, 516_000),
        ('text.gz', 500, 1000, 1000),
    ],
)
def test_no_line_is_longer_than_the_bound_or_what_a_file_can_hold(
    tmp_path, name, size, bound, longest
):
    path = tmp_path / name
    path.write_bytes(b'\x1f\x8b' * (size // 2) if name.endswith('gz') else b'x' * size)
    corpus = find_corpus([SplitPaths('train', 'text', {'text': (str(path),)})])
    assert CorpusReading(corpus, max_line_bytes=bound).longest_line == longest


def test_processes_share_what_is_free():
    shared = fit(1, PROCESSES, buffer_bytes=100_000 * MIB).run_bytes
    assert shared < fit(1, buffer_bytes=100_000 * MIB).run_bytes // 2


def test_nothing_is_assumed_of_a_cluster_and_its_memory():
    assert fit(1, ['--runner=DataflowRunner']).run_bytes == 128 * MIB


TEXT = ''.join(f'{number} words\n' for number in range(5))


@pytest.fixture
def reading(tmp_path):
    """Two splits of the same text."""
    path = tmp_path / 'text'
    path.write_text(TEXT)
    paths = {'text': (str(path),)}
    corpus = find_corpus([SplitPaths(split, 'text', paths) for split in ('train', 'dev')])
    return CorpusReading(corpus, on_error='skip')


EXECUTION = Execution(choose_engine([], 1), overwrite=True)
DATASET = EncodeOptions(name='x', shards=3, seed=5)
LEARNING = find_scheme().options(vocab_size=300)


def test_the_key_of_a_build_has_all_that_its_bytes_depend_on_and_nothing_else(reading):
    job = BuildJob(
        reading=reading, dataset=DATASET, output='/out', execution=EXECUTION, learning=LEARNING
    )
    options = job.key().options
    assert list(options) == [
        'name', 'shards', 'source_prefix', 'target_prefix', 'seed', 'on_error',
        'vocab_size', 'search', 'min_count_range', 'max_subtoken_length', 'reserved_token',
        'shared_vocab', 'scheme',
    ]  # fmt: skip
    assert (options['shards'], options['seed'], options['on_error']) == (3, 5, 'skip')
    assert [each.split for each in job.key().inputs] == ['train', 'dev']


def test_newer_options_are_in_the_key_only_if_they_are_given(reading):
    sample = SampleOptions(vocab_sample='uniform:0.5')
    dataset = dataclasses.replace(DATASET, output_format='text')
    job = BuildJob(
        reading=reading, dataset=dataset, output='/out', execution=EXECUTION,
        learning=LEARNING, sample=sample,
    )  # fmt: skip
    assert job.key().options['output_format'] == 'text'
    assert job.key().options['vocab_sample'] == 'uniform:0.5'


def test_the_keys_of_the_other_jobs(reading):
    training = reading.only('train')
    folder = CountsFolder('/counts', 'text')
    count = CountJob(reading=training, folders=[folder], execution=EXECUTION)
    assert count.key(folder).options == {'side': 'text', 'on_error': 'skip'}
    vocab = VocabJob(
        source=TextToCount(training, 'text'), scheme=find_scheme(), learning=LEARNING,
        output='/vocab', execution=EXECUTION,
    )  # fmt: skip
    assert list(vocab.key().options)[:3] == ['scheme', 'side', 'on_error']
    encode = EncodeJob(
        reading=reading, vocabularies=VocabularyPaths('/vocab'), dataset=DATASET, output='/out',
        execution=EXECUTION,
    )  # fmt: skip
    record = VocabularyRecord(
        'targets', 'vocab', 300, 1234, '0badcafe', scheme='subword', special_ids={}
    )
    options = encode.key([record]).options
    assert options['vocabularies'] == [['targets', 'vocab', 1234, '0badcafe']]
    assert 'vocab_size' not in options and options['scheme'] == 'subword'


def test_the_files_of_a_build_are_its_vocabularies_and_shards(reading):
    job = BuildJob(
        reading=reading, dataset=DATASET, output='/out', execution=EXECUTION, learning=LEARNING
    )
    assert job.vocabulary_names == {'both': 'vocab.x.300.subwords'}
    assert job.vocabulary_paths('/out') == VocabularyPaths('/out/vocab.x.300.subwords')
    assert [folder.path for folder in job.counts_folders.values()] == ['/out/counts']
    assert job.file_names == [
        'vocab.x.300.subwords',
        *(f'x-train-{shard:05d}-of-00003' for shard in range(3)),
        'x-dev-00000-of-00001',
        *(f'index/x-train-{shard:05d}-of-00003' for shard in range(3)),
        'index/x-dev-00000-of-00001',
        'index/corpus.jsonl',
    ]
