"""What is asked of a runner is answered by its options, whichever it is."""

import pytest

from pipelines.engines.engine import choose_engine

PROCESSES = ['--direct_running_mode=multi_processing', '--direct_num_workers=3']
EMBEDDED = ['--runner=PortableRunner', '--job_endpoint=embed', '--environment_type=EXTERNAL']


def traits(flags):
    runner = choose_engine(flags, None).runner
    return (runner.is_local, runner.in_process, runner.can_cancel, runner.through_files)


@pytest.mark.parametrize(
    ('flags', 'expected'),
    [
        ([], (True, True, False, True)),
        (PROCESSES, (True, False, False, True)),
        (EMBEDDED, (True, False, False, True)),
        (['--runner=FlinkRunner'], (False, False, True, True)),
        (['--runner=SparkRunner'], (False, False, True, False)),
        (['--runner=PrismRunner'], (False, False, True, False)),
        (['--runner=DataflowRunner'], (False, False, True, False)),
        (['--runner=my.own.Runner'], (False, False, True, False)),
    ],
    ids=lambda each: ' '.join(map(str, each)),
)
def test_where_a_runner_works_and_what_it_can(flags, expected):
    assert traits(flags) == expected


@pytest.mark.parametrize(
    ('flags', 'expected'),
    [
        ([], False),
        (EMBEDDED, True),
        (['--runner=FlinkRunner', '--flink_master=[local]'], False),
        (['--runner=FlinkRunner', '--flink_master=there:8081'], True),
        (['--runner=SparkRunner'], False),
        (['--runner=SparkRunner', '--spark_master_url=spark://there:7077'], True),
        (['--runner=PrismRunner'], False),
    ],
    ids=lambda each: ' '.join(map(str, each)) if isinstance(each, list) else None,
)
def test_which_runners_start_containers(flags, expected):
    assert choose_engine(flags, None).runner.has_containers is expected


@pytest.mark.parametrize('flags', [[], PROCESSES, EMBEDDED, ['--runner=FlinkRunner']])
def test_a_share_of_the_memory_is_never_below_none_at_all(flags):
    assert choose_engine(flags, None).runner.memory_share(1) == 0


def test_nobody_knows_the_memory_of_a_cluster():
    runner = choose_engine(['--runner=FlinkRunner', '--parallelism=4'], None).runner
    assert runner.memory_share(None) is None
    assert runner.memory_share(4 << 30) == (1 << 30) - (320 << 20)
