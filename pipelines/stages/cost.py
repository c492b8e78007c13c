"""What a build or an encode is going to take, by a sample of its text that is read and encoded here.

Sizes follow from the sample, and so does the time to encode. For all else, and for a vocabulary that is yet to
be learned, figures of a measured machine stand.
"""

import dataclasses
import datetime
import tempfile
import time
from collections.abc import Iterator, Sequence

from pipelines.artifacts.vocabularies import vocabulary_reader
from pipelines.engines.machine import resident_bytes, usable_cores
from pipelines.jobs.job import BuildJob, EncodeJob, VocabularyPaths
from pipelines.jobs.reading import plan_reading
from pipelines.options.job import TFRECORD
from pipelines.shard_formats.formats import converted_format
from pipelines.shard_formats.shard_format import Shard, line_writer, parse_rows
from pipelines.shuffle.encoded_sample import (
    IDS,
    RECORDS,
    ROWS,
    TEXT,
    THOROUGH_BYTES,
    EncodedSample,
    encode_sample,
)  # fmt: skip
from pipelines.shuffle.plan import fit_memory
from pipelines.stages.encode import columns_of, vocabulary_records
from pipelines.transforms.encode_blocks import EncodedFeature
from tokcore.encoding.scheme import EncodingOptions
from tokcore.reading.record_index import entry_type
from tokcore.records.manifest import shard_name
from tokcore.records.tfrecord import sort_rows
from tokcore.schemes import find_scheme

_MOST_ITEMS = 1 << 10
"""Items that a text is cut into, about; with more, the plan of a large text would take long to make."""

_START_SECONDS, _LEARNING_SECONDS = 4, 2
"""What a job takes with hardly any text, and what it takes more if it counts and learns."""

_SHUFFLED_BYTES, _DECOMPRESSED_BYTES = 80 << 20, 150 << 20
"""What a thread does in a second: bytes of records to runs or to shards, and text of a compressed file."""

_TIMES_BYTES = 2.5
"""How much longer than to encode a text as bytes it takes to count it and to encode it with a vocabulary."""

_TOKEN_BYTES, _RECORD_SHARE = 4, 0.7
"""Bytes of text in a token, and bytes of a record for one of text, where there is no vocabulary yet."""


def cost(job: BuildJob | EncodeJob) -> Iterator[str]:
    """Yields lines that say what a job is going to take.

    Raises:
        InputError: a file cannot be read, or a vocabulary cannot be used.
    """
    reading, dataset = job.reading, job.dataset
    paths = job.vocabularies if isinstance(job, EncodeJob) else job.vocabulary_paths('')
    features = dataset.features(paths, reading.corpus.format.sides)
    vocabularies = len({each.vocabulary for each in features})
    learns = isinstance(job, BuildJob) and job.learning is not None
    if learns:  # as bytes there are as many rows, and as much text
        reading = dataclasses.replace(reading, scheme=find_scheme('byte'))
        dataset = dataclasses.replace(dataset, encoding=EncodingOptions())
        features = [dataclasses.replace(each, vocabulary='') for each in features]
    engine = job.execution.engine.near(0)
    execution = dataclasses.replace(job.execution, engine=engine)
    stored = sum(each.file.size for each in reading.corpus.inputs)
    cut = dataclasses.replace(execution, item_bytes=max(THOROUGH_BYTES, stored // _MOST_ITEMS))
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_reading(reading, cut, folder)
        encoder = dataset.encoder(features, plan.reading)
        encode_sample(plan, encoder)  # compiles kernels, which is not to be timed
        sample = encode_sample(plan, encoder, is_thorough=True)
        began = time.perf_counter()
        share = 1.0
        if not learns and dataset.output_format != TFRECORD:
            share = _stored_share(job, paths, features, sample, folder)
        to_convert = time.perf_counter() - began
    total, need, threads = sample.total, sample.need, min(engine.workers, usable_cores())
    has_offsets = dataset.output_format == TFRECORD
    index, text = total[ROWS] * entry_type(len(features), has_offsets, True).itemsize, total[TEXT]
    yield f'by a sample of {_size(sample.text_bytes)} of text, ± two standard errors:'
    yield f'  {_about(sample, ROWS)} rows of {_size(text)} ± {_spread(sample, TEXT)} of text'
    if learns:
        size = round(_RECORD_SHARE * text)
        need = dataclasses.replace(need, runs=size, shards=size)
        yield '  ids and shards depend on the vocabulary that is yet to be learned;'
        yield f'  with {_TOKEN_BYTES} bytes a token: {text / _TOKEN_BYTES:,.0f} ids in {_size(size)} of shards'
    else:
        shards = _size(need.shards * share)
        yield f'  {_about(sample, IDS)} ids in {shards} ± {_spread(sample, RECORDS)} of shards'
    memory = fit_memory(
        execution, reading.longest_line, vocabularies, reading.corpus.may_have_parts
    )
    needed = memory.needed + min(2 * memory.run_bytes, need.runs) + resident_bytes()
    yield f'  disk: {_size(need.bytes)} at most, {_size(need.shards * share + index)} at the end'
    yield f'  memory: up to {_size(needed)} to encode with {memory.workers} threads'
    times = text / max(1, sum(int(rows.sizes[:, -1].sum()) for rows in sample.rows)) / threads
    seconds = times * sample.seconds * (_TIMES_BYTES if learns else 1)
    seconds += (need.runs + need.shards) / _SHUFFLED_BYTES / threads
    if any(each.file.compressed for each in reading.corpus.inputs):
        # A file is read by one thread, while others encode.
        files = min(threads, len(reading.corpus.inputs))
        seconds = max(seconds, text / _DECOMPRESSED_BYTES / files)
    seconds += _START_SECONDS + _LEARNING_SECONDS * learns + times * to_convert
    until = datetime.timedelta(seconds=round(seconds))
    yield f'  time: {until} here, if nothing else runs{", and what learning takes" if learns else ""}'
    yield '  on a cluster: see the formulas of deploy/scale.md'


def _stored_share(
    job: BuildJob | EncodeJob,
    paths: VocabularyPaths,
    features: Sequence[EncodedFeature],
    sample: EncodedSample,
    folder: str,
) -> float:
    """Writes a sample in the format of the job; returns how large that is for one byte of records."""
    dataset, scheme = job.dataset, job.reading.scheme
    read, ends = vocabulary_reader(scheme), dataset.ends(features, scheme)
    columns = columns_of(scheme, features, vocabulary_records(paths, read, scheme), ends)
    output_format = converted_format(dataset.output_format, dataset.pack)
    if output_format.needs_pieces:
        columns = [
            dataclasses.replace(
                each, lines=line_writer(scheme, scheme.fixed or read(each.vocabulary).entries)
            )
            for each in columns
        ]
    framed, shard = sort_rows(sample.rows), Shard(shard_name(dataset.name, 'train', 0, 1), 0)
    rows = parse_rows(framed, [each.name for each in columns])
    files = output_format.write(iter([rows]), shard, folder, columns)
    return sum(file.bytes for file in files) / max(1, len(framed.records))


def _size(size: float) -> str:
    return f'{size / 2**20:,.1f} MiB' if size >= 1 << 20 else f'{size / 2**10:,.0f} KiB'


def _about(sample: EncodedSample, kind: int) -> str:
    """Returns an estimated number to four digits, with its spread."""
    return f'about {float(f"{sample.total[kind]:.3e}"):,.0f} ± {_spread(sample, kind)}'


def _spread(sample: EncodedSample, kind: int) -> str:
    share = 100 * sample.spread[kind] / max(1, sample.total[kind])
    return f'{share:.0f} %'.replace('nan', '?')
