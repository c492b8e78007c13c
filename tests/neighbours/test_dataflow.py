"""Dataflow's runner checks and translates every pipeline; nothing is sent."""

import pytest
from environments import run_script
from sample_lines import SAMPLE

# Beam's extra for Google's cloud takes a gigabyte.
pytestmark = pytest.mark.large

STEPS = {'flatten', 'group_by_key', 'impulse', 'pardo'}


def translated(environment, output, *options):
    pair = ['--source', SAMPLE / 'dev.en', '--target', SAMPLE / 'dev.zh']
    return run_script(
        environment('Dataflow'), 'translate_for_dataflow.py',
        'build', *pair, '--name', 'd', '--shards', 2, *options, '--output', output,
    )  # fmt: skip


@pytest.mark.parametrize(
    ('options', 'most_jobs'),
    [
        (['--vocab-size', 600, '--learner', 'memory', '@shuffle', 'files'], 4),
        (['--vocab-size', 600, '--learner', 'memory', '@shuffle', 'engine'], 3),
        (['--vocab-size', 600, '--learner', 'beam', '--shared-vocab'], None),
        (['--scheme', 'wordpiece', '--vocab-size', 700, '--learner', 'beam'], None),
        (['--scheme', 'bpe', '--vocab-size', 400, '--learner', 'beam'], None),
    ],
    ids=['files', 'engine', 'subword', 'wordpiece', 'bpe'],
)
def test_each_pipeline_is_translated(environment, tmp_path, options, most_jobs):
    told = translated(environment, tmp_path / 'out', *options)
    pipelines = told['pipelines']
    assert told['status'] == 0 and len(pipelines) >= 3
    assert most_jobs is None or len(pipelines) <= most_jobs
    for each in pipelines:
        assert each['state'] == 'DONE' and each['has image']
        assert {urn.split(':')[2] for urn in each['steps']} <= STEPS
