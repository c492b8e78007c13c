"""What a build or an encode is going to take, by a sample of its text that is read and encoded here.

Sizes follow from the sample. So does the time to encode; what else takes time, and a vocabulary that is yet
to be learned, are taken to be as they were where they were measured.
"""

import dataclasses
import datetime
import math
import tempfile
import time
from collections.abc import Iterator

from pipelines.artifacts.vocabularies import vocabulary_reader
from pipelines.engines.engine import choose_engine
from pipelines.engines.machine import resident_bytes, usable_cores
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.jobs.reading import plan_reading
from pipelines.options.job import TFRECORD
from pipelines.shard_formats.formats import converted_format
from pipelines.shard_formats.shard_format import Column, Shard, line_writer, parse_rows
from pipelines.shuffle.encoded_sample import (
    IDS,
    RECORDS,
    ROWS,
    TEXT,
    THOROUGH_BYTES,
    EncodedSample,
    encode_sample,
)
from pipelines.shuffle.plan import fit_memory
from pipelines.stages.encode import columns_of, vocabulary_records
from pipelines.transforms.encode_blocks import BlockEncoder
from tokcore.encoding.scheme import EncodingOptions
from tokcore.records.manifest import shard_name
from tokcore.schemes import find_scheme

_MOST_ITEMS = 1 << 10
"""Items that a text is cut into, about; with more, the plan of a large text would take long to make."""

_START_SECONDS = 2
"""Of a job, before it reads."""

_SHUFFLED_BYTES = 80 << 20
"""Of records that a thread writes as runs, merges and sums up in a second."""

_COUNTED_BYTES, _ENCODED_BYTES = 228 << 20, 76 << 20
"""Of text in a second and thread, as `deploy/scale.md` has them."""

_TOKEN_BYTES, _RECORD_SHARE = 4, 0.7
"""Bytes of text in a token, and bytes of a record for one of text, where there is no vocabulary yet."""


def cost(job: BuildJob | EncodeJob) -> Iterator[str]:
    """Yields lines that say what a job is going to take.

    Raises:
        InputError: a file cannot be read, or a vocabulary cannot be used.
    """
    runner, reading, dataset = job.execution.engine.runner, job.reading, job.dataset
    scheme, encoding = reading.scheme, dataset.encoding
    paths = job.vocabularies if isinstance(job, EncodeJob) else job.vocabulary_paths('')
    features = dataset.features(paths, reading.corpus.format.sides)
    vocabularies = len({each.vocabulary for each in features})
    learns = isinstance(job, BuildJob) and job.learning is not None
    if learns:  # bytes have as much text, and as many rows
        scheme, encoding = find_scheme('byte'), EncodingOptions()
        features = [dataclasses.replace(each, vocabulary='') for each in features]
    engine = choose_engine([], job.execution.engine.workers if runner.is_local else None)
    execution = dataclasses.replace(job.execution, engine=engine)
    stored = sum(each.file.size for each in reading.corpus.inputs)
    cut = dataclasses.replace(execution, item_bytes=max(THOROUGH_BYTES, stored // _MOST_ITEMS))
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_reading(reading, cut, folder)
        splits, seed = plan.reading.corpus.splits, dataset.seed
        encoder = BlockEncoder(features, splits, seed, reading.on_error, scheme, encoding)
        encode_sample(plan, encoder)  # compiles what is not to be timed
        sample = encode_sample(plan, encoder, is_thorough=True)
        share, seconds = 1.0, sample.seconds
        if not learns and dataset.output_format != TFRECORD:
            read = vocabulary_reader(scheme)
            records = vocabulary_records(paths, read, scheme)
            ends = dataset.ends(features, scheme, read)
            columns = columns_of(scheme, features, records, ends)
            share, converting = _converted(job, sample, columns, folder)
            seconds += converting
    total, need, threads = sample.total, sample.need, min(engine.workers, usable_cores())
    text = _mib(total[TEXT])
    yield f'by a sample of {_mib(sample.text_bytes)} of text, ± two standard errors:'
    yield f'  {_about(sample, ROWS)} rows of {text} ± {_spread(sample, TEXT)} of text'
    if learns:
        need = dataclasses.replace(need, runs=0, shards=round(_RECORD_SHARE * total[TEXT]))
        need = dataclasses.replace(need, runs=need.shards)
        ids = total[TEXT] / _TOKEN_BYTES
        yield f'  ids: not known before the vocabulary; with {_TOKEN_BYTES} bytes a token {ids:,.0f}'
        yield f'  shards: not known either; with {_RECORD_SHARE} bytes a byte {_mib(need.shards)}'
        seconds = total[TEXT] * (1 / _COUNTED_BYTES + 1 / _ENCODED_BYTES)
    else:
        shards = f'{_mib(need.shards * share)} ± {_spread(sample, RECORDS)} of shards'
        yield f'  {_about(sample, IDS)} ids in {shards}'
        text_of_sample = sum(int(rows.sizes[:, -1].sum()) for rows in sample.rows)
        seconds *= total[TEXT] / max(1, text_of_sample)
        seconds += (need.runs + need.shards) / _SHUFFLED_BYTES
    result = need.shards * share + need.index
    yield f'  disk: {_mib(need.bytes)} until it is done, then {_mib(result)}'
    memory = fit_memory(
        execution, reading.longest_line, vocabularies, reading.corpus.may_have_parts
    )
    buffers = min(2 * memory.run_bytes, need.runs)
    yield f'  memory: up to {_mib(memory.needed + buffers + resident_bytes())} with {threads} threads'
    # A compressed file is read by one thread, while others encode.
    files = min(threads, len(reading.corpus.inputs))
    seconds = max((seconds + sample.decompressing) / threads, sample.decompressing / files)
    until = datetime.timedelta(seconds=round(_START_SECONDS + seconds))
    yield f'  time: {until} on this machine, if nothing else runs' + (
        ', and what learning takes,\n  which is some seconds or minutes, by the distinct tokens'
        if learns
        else ''
    )
    yield '  on a cluster: by the formulas of deploy/scale.md'


def _converted(
    job: BuildJob | EncodeJob, sample: EncodedSample, columns: list[Column], folder: str
) -> tuple[float, float]:
    """Writes a sample in the format of the job; returns its size for one of records, and the seconds."""
    began, dataset, scheme = time.perf_counter(), job.dataset, job.reading.scheme
    output_format = converted_format(dataset.output_format, dataset.pack)
    if output_format.needs_pieces:
        read = vocabulary_reader(scheme)
        columns = [
            dataclasses.replace(
                column, lines=line_writer(scheme, scheme.fixed or read(column.vocabulary).entries)
            )
            for column in columns
        ]
    names = [column.name for column in columns]
    shard = Shard(shard_name(dataset.name, 'train', 0, 1), 0)
    parts = (parse_rows(rows, names) for rows in sample.rows if len(rows))
    written = sum(file.bytes for file in output_format.write(parts, shard, folder, columns))
    records = sum(len(rows.records) for rows in sample.rows)
    return written / max(1, records), time.perf_counter() - began


def _mib(size: float) -> str:
    return f'{size / 2**20:,.1f} MiB'


def _about(sample: EncodedSample, kind: int) -> str:
    """Returns an estimated number to four digits, with its spread."""
    number = float(f'{sample.total[kind]:.3e}')
    return f'about {number:,.0f} ± {_spread(sample, kind)}'


def _spread(sample: EncodedSample, kind: int) -> str:
    share = sample.spread[kind] / max(1, sample.total[kind])
    return '? %' if math.isnan(share) else f'{share:.0%}'.replace('%', ' %')
