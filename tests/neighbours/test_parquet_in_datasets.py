"""`datasets` 5 opens our shards in Parquet."""

from environments import run_script
from jobs import succeed
from sample_lines import SAMPLE

from tokcore import open_dataset


def test_rows_are_those_of_the_dataset(environment, tmp_path):
    python = environment('datasets 5')
    folder = tmp_path / 'parquet'
    succeed(
        'build', '--source', SAMPLE / 'train.en', '--target', SAMPLE / 'train.zh', '--name', 'd',
        '--vocab-size', 2048, '--shared-vocab', '--shards', 3, '--output-format', 'parquet',
        '--output', folder,
    )  # fmt: skip
    rows = [
        {name: ids.tolist() for name, ids in row.items()}
        for row in open_dataset(folder).examples('train')
    ]
    told = run_script(python, 'open_parquet.py', *sorted(folder.glob('d-train-*.parquet')))
    assert told['version'].split('.')[0] == '5'
    assert told['rows'] == rows
    assert told['batch'] == rows[0]['targets']
