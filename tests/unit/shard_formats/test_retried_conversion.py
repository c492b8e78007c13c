"""Shards that are converted are deleted, and a bundle that is retried still says what they became."""

import apache_beam as beam

from pipelines import EncodeBlocks, ReadCorpus, WriteShards
from pipelines.shard_formats.formats import ConvertShards, converted_format
from pipelines.shard_formats.shard_format import Column, Shard
from pipelines.transforms.stats import WriteStats, WrittenFile, read_stats
from tokcore import find_scheme

SHARD = 'd-train-00000-of-00001'


def test_a_bundle_that_is_retried_returns_what_its_shards_became(tmp_path):
    (tmp_path / 'text').write_text('the cat\nsat\n')
    folder = tmp_path / 'shards'
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        blocks = pipeline | ReadCorpus(tmp_path / 'text')
        encoded = blocks | EncodeBlocks(scheme='byte', shards=1)
        encoded | WriteShards('d', folder, index=True)
    assert (folder / SHARD).exists()
    scheme = find_scheme('byte')
    columns = [Column.of('targets', scheme.fixed.vocab_size, scheme.fixed.special_ids)]
    files = {}
    for attempt in ('first', 'retried'):
        report = str(tmp_path / attempt)
        with beam.Pipeline(runner='FnApiRunner') as pipeline:
            shards = pipeline | beam.Create([Shard(SHARD, 0)])
            converted = shards | ConvertShards(
                str(folder), converted_format('text'), columns, scheme
            )
            converted | WriteStats(report)
        files[attempt] = [*read_stats(report, WrittenFile)]
        assert not (folder / SHARD).exists()
        for file in files[attempt]:
            assert (folder / file.name).stat().st_size == file.bytes
    assert len(files['first']) == 2  # of rows, and their index
    assert files['retried'] == files['first']
