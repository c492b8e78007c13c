"""How many slots a job on Flink is cut for."""

from pipelines.engines.engine import choose_engine

FLINK = ['--runner=FlinkRunner']


def test_slots_are_as_many_as_asked_for_and_one_by_default():
    assert choose_engine([*FLINK, '--parallelism=8'], None).runner.processes == 8
    assert choose_engine(FLINK, None).runner.processes == 1
    assert choose_engine(['--parallelism=8'], None).runner.processes == 1
