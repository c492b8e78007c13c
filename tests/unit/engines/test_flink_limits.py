"""What keeps a job on Flink from hanging: records a slot, and a deadline that cancels."""

import pytest

from pipelines.engines.engine import choose_engine
from pipelines.files.filesystem import StoredFile
from pipelines.jobs.corpus import Corpus, CorpusInput
from pipelines.jobs.job import CorpusReading, Execution
from pipelines.jobs.shuffle_memory import refuse_too_large
from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.tsv import Tsv
from tokcore.errors import InputError

GIB = 1 << 30
FLINK = ['--runner=FlinkRunner']


def refuse_flink_job(size: int, *flags: str, compressed: bool = False, shuffle: str = 'engine'):
    """Refuses a job over one file of a size in bytes, which need not exist, if it is too large."""
    file = CorpusFile('/data/a.tsv', 'a.tsv', size, compressed)
    stored = StoredFile(file.path, file.name, size, 0)
    corpus = Corpus(
        (Split('train', Tsv((0, 1)), ((file,),)),),
        (CorpusInput('train', 'tsv', 0, 0, file, stored),),
    )
    engine = choose_engine([*FLINK, *flags], None)
    refuse_too_large(
        CorpusReading(corpus), Execution(engine, item_bytes=12 << 20, shuffle=shuffle), 1
    )


def test_slots_are_as_many_as_asked_for_and_one_by_default():
    assert choose_engine([*FLINK, '--parallelism=8'], None).runner.processes == 8
    assert choose_engine(FLINK, None).runner.processes == 1
    assert choose_engine(['--parallelism=8'], None).runner.processes == 1


@pytest.mark.parametrize(
    'size, flags',
    [(GIB // 2, []), (4 * GIB, ['--parallelism=8']), (40 * GIB, ['--parallelism=80'])],
)
def test_half_a_gigabyte_a_slot_may_be_encoded(size, flags):
    refuse_flink_job(size, *flags)


@pytest.mark.parametrize(
    'size, flags, needed',
    [(GIB // 2 + 1, [], 2), (4 * GIB + 8, ['--parallelism=8'], 9), (GIB, ['--parallelism=1'], 2)],
)
def test_more_than_that_is_refused_with_the_remedy(size, flags, needed):
    with pytest.raises(InputError, match=f'give --parallelism={needed} or more on a cluster'):
        refuse_flink_job(size, *flags)


def test_slots_without_a_work_item_do_not_help():
    with pytest.raises(InputError, match='as many work items, which are 1 now'):
        refuse_flink_job(GIB // 2 + 1, '--parallelism=100', compressed=True)


def test_a_compressed_file_counts_as_stored_until_its_text_is_read():
    refuse_flink_job(GIB // 2, compressed=True)


@pytest.mark.parametrize('shuffle', ['auto', 'files'])
def test_through_files_any_size_may_be_encoded(shuffle):
    refuse_flink_job(1000 * GIB, shuffle=shuffle)


class EndlessResult:
    """A pipeline that is still running however long one waits."""

    def __init__(self):
        self.waited = []
        self.cancelled = 0

    def wait_until_finish(self, duration=None):
        self.waited.append(duration)
        return 'RUNNING'

    def cancel(self):
        self.cancelled += 1


def test_a_pipeline_past_its_deadline_is_cancelled_and_a_failure(monkeypatch):
    result = EndlessResult()
    monkeypatch.setattr('apache_beam.Pipeline.run', lambda pipeline: result)
    with pytest.raises(RuntimeError, match='RUNNING after 90 seconds'):
        choose_engine(FLINK, None, deadline=90).run(lambda pipeline: None)
    assert result.waited == [90_000]
    assert result.cancelled == 1


@pytest.mark.parametrize('flags', [[], ['--runner=PortableRunner', '--job_endpoint=embed']])
def test_a_deadline_for_what_cannot_be_cancelled_is_refused(flags):
    with pytest.raises(InputError, match='needs a runner that can cancel'):
        choose_engine(flags, None, deadline=90)
