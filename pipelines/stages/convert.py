"""Makes a finished dataset again in another format, from its shards alone.

Nothing is shuffled or encoded: shard by shard the rows are read, checked and written. The files are those
that `build` or `encode` with that `--output-format` makes, byte for byte; counts are not copied.
"""

import dataclasses
import functools
import itertools
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

import google_crc32c
import tomli_w

from pipelines.artifacts.manifest import RunRecord, read_dataset_manifest, read_run
from pipelines.artifacts.outputs import (
    StageKey,
    StageOutput,
    StageTask,
    publish,
    up_to_date,
)
from pipelines.artifacts.vocabularies import ends_of_documents
from pipelines.engines.progress import advance, stage_running, track_work
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.jobs.recorded import recorded_corpus
from pipelines.options.job import (
    JOINED,
    NANOGPT,
    STREAM_FORMATS,
    TFRECORD,
    EndOptions,
    one_shard,
)
from pipelines.shard_formats.formats import converted_format
from pipelines.shard_formats.shard_format import (
    Column,
    ConvertedFormat,
    Shard,
    most_ids,
    shards_in_order,
)
from pipelines.shard_formats.tfrecord import ids_around
from pipelines.transforms.write_shards import write_converted_index
from tokcore.checked_json import WrongValue, checked
from tokcore.corpus.stretches import CORPUS_INDEX
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import ROW
from tokcore.errors import InputError
from tokcore.options import NO_END, recorded
from tokcore.reading.manifest import recorded_format, recorded_scheme
from tokcore.reading.record_index import index_name
from tokcore.reading.shards import EncodedRows, stream_rows
from tokcore.records.manifest import (
    Manifest,
    OutputFile,
    VocabularyRecord,
    file_of_shard,
    shard_name,
    with_root,
)
from tokcore.schemes import DEFAULT_SCHEME

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_STAGE, _CONVERTING = 'convert', 'converting'


def convert_dataset(
    source: str,
    output_format: str,
    output: str,
    workers: int,
    overwrite: bool = False,
    pack: int | None = None,
    ending: EndOptions = EndOptions(),
) -> Manifest | None:
    """Converts a dataset of TFRecords; returns the new manifest, None if the result was there.

    Args:
        source: the folder, an absolute path.
        output_format: one of `CONVERTED_FORMATS`.
        output: another folder, an absolute path.
        workers: shards that are converted at once.
        overwrite: whether another result may be replaced.
        pack: ids of a packed row at most, where rows are packed.
        ending: what ends documents, in place of what the dataset says.

    Raises:
        InputError: the folder is not a dataset of TFRecords whose features are text, or a file of it is
            damaged; or the output holds another result, or which token ends documents is not known.
    """
    started = time.monotonic()
    from_, to = StageOutput.of_dataset(source), StageOutput.of_dataset(output)
    before = read_dataset_manifest(source)
    made_as = before.options.get('output_format', TFRECORD)
    if made_as != TFRECORD:
        raise InputError(
            f'{source} holds its rows as {made_as:.60}, and TFRecords are converted; give the '
            'folder of these'
        )
    run = read_run(from_.run_path) or RunRecord(())
    scheme, columns = recorded_columns(from_.manifest_path, before)
    if output_format == JOINED:
        ids_around(columns)
        if before.options.get('template') != ROW:
            raise InputError(
                f'{source} may have ids around the text of its rows, and joined rows have their own; '
                f"make the dataset with --template '{ROW}', or with --output-format joined"
            )
    to_format = converted_format(output_format, pack)
    names = [column.name for column in columns]
    beside: list[OutputFile | VocabularyRecord] = [*before.vocabularies, *before.removed]
    beside += [file for record in before.vocabularies for file in record.beside]
    changed: dict[str, object] = {'output_format': output_format, **recorded(ending)}
    changed |= {} if pack is None else {'pack': pack}
    shards = shards_in_order(before.files)
    read_by_shard = [[file] for file in before.files]
    to_format.require(names)
    if output_format == NANOGPT:
        changed |= {key: one for key, one in one_shard({}).items() if key in before.options}
        shards, read_by_shard = _whole_splits(before)
    files = [to_format.file_names(shard.name, names) for shard in shards]
    indexes = [index_name(of_shard[0]) for of_shard in files]
    of_corpus = [file for file in before.index if file.name == CORPUS_INDEX]
    options = _changed(before.options, changed)
    ends = before.end_of_document
    is_joined = output_format in STREAM_FORMATS and options.get('end') != NO_END
    if recorded(ending) or (is_joined and len(ends) < len(columns)):
        paths = {column.name: os.path.join(source, column.vocabulary) for column in columns}
        template = checked(options.get('template'), str | None, 'template')
        ends = ends_of_documents(paths, scheme, template, ending, output_format)
    to_format.require_ids(most_ids(before.vocabularies, ends))
    columns = [column.with_end(ends) for column in columns]
    inputs = recorded_corpus(before, run).wanted_inputs()
    key = StageKey(before.stage, options, inputs, before.rules, before.unicode)
    copied = [file.name for file in (*beside, *of_corpus)]
    task = StageTask(key, to, [*copied, *itertools.chain(*files), *indexes])
    read = [from_.manifest_path, from_.run_path]
    read += [os.path.join(source, file.name) for file in before.outputs]
    with to.claim() as claim:
        done, replaced = up_to_date(task, claim, overwrite, read)
        if done is not None:
            return None
        with (
            Attempt(to.folder, to.names, claim.folder) as attempt,
            stage_running(_STAGE),
            track_work(_STAGE, _CONVERTING, sum(file.bytes for file in before.files)),
        ):
            for file in (*beside, *of_corpus, *before.rejected):
                _copy(source, file, attempt.path)
            convert = functools.partial(_convert, source, attempt.path, to_format, columns)
            with ThreadPoolExecutor(workers) as pool:
                made = list(pool.map(convert, read_by_shard, shards))
            manifest = dataclasses.replace(
                before,
                options=options,
                end_of_document=ends,
                files=tuple(file for part, _ in made for file in part),
                index=(*(index for _, index in made), *of_corpus),
            )
            manifest = with_root(manifest)
            again = dataclasses.replace(
                run,
                seconds={_STAGE: round(time.monotonic() - started, 3)},
                runner=(),
                job=_job_of(run.job, changed),
                requests={},
            )
            publish(task, claim, attempt, manifest, again, before.rejected, replaced)
    return manifest


def _changed(options: Mapping[str, object], changed: Mapping[str, object]) -> dict[str, object]:
    """Returns options with others in place of some."""
    return {**{name: options[name] for name in options if name not in changed}, **changed}


def recorded_columns(path: str, manifest: Manifest) -> tuple[Scheme, list[Column]]:
    """Returns the scheme, and the features with what the manifest records of their vocabularies."""
    records = manifest.vocabularies
    try:
        roles = {text.role for text in manifest.inputs}
        corpus_format = recorded_format(roles, manifest.options)
        scheme_name = checked(manifest.options.get('scheme', DEFAULT_SCHEME), str, 'scheme')
        scheme = recorded_scheme(path, scheme_name, records)
    except (ValueError, WrongValue) as error:
        raise InputError(
            f'{path} does not say what its rows are ({error!s:.200}); make the dataset again'
        ) from error
    if corpus_format.extra_fields:
        names = ', '.join(field.name for field in corpus_format.extra_fields)
        raise InputError(
            f'{path} is of rows with {names} beside the text, which TFRecords alone hold; make the '
            'dataset without --keep and --label to convert it'
        )
    by_side = {record.side: record for record in records}
    columns = []
    for feature in corpus_format.sides:
        record = by_side.get(feature, by_side.get('both'))
        if record is not None:
            columns.append(Column.recorded(feature, record, record.name))
        elif scheme.fixed is not None:
            columns.append(Column.of(feature, scheme.fixed.vocab_size, scheme.fixed.special_ids))
        else:
            raise InputError(f'{path} records no vocabulary of {feature}; make the dataset again')
    return scheme, columns


def _copy(source: str, file: OutputFile | VocabularyRecord, folder: str) -> None:
    path = os.path.join(source, file.name)
    data = filesystem.read_bytes(path)
    crc32c = f'{google_crc32c.value(data):08x}'
    if (len(data), crc32c) != (file.bytes, file.crc32c):
        raise _not_as_stated(path, len(data), crc32c, file)
    filesystem.write_bytes(os.path.join(folder, file.name), data)


def _whole_splits(before: Manifest) -> tuple[list[Shard], list[list[OutputFile]]]:
    """Returns the one shard that each split becomes, and the files that have its rows."""
    by_split: dict[str, list[OutputFile]] = {}
    for file in before.files:
        shard = file_of_shard(file.name)
        assert shard is not None  # as in `shards_in_order`
        by_split.setdefault(shard.split, []).append(file)
    dataset = checked(before.options.get('name'), str, 'name')
    shards = [Shard(shard_name(dataset, split, 0, 1), 0) for split in by_split]
    return shards, [*by_split.values()]


def _convert(
    source: str,
    folder: str,
    to_format: ConvertedFormat,
    columns: Sequence[Column],
    files: Sequence[OutputFile],
    shard: Shard,
) -> tuple[list[OutputFile], OutputFile]:
    """Makes a shard of the rows of these files, one file after another, and its index."""
    path = source

    def rows() -> Iterator[EncodedRows]:
        nonlocal path
        for file in files:
            path, count = os.path.join(source, file.name), 0
            with filesystem.open_binary(path) as stream:
                counted = _CountedStream(stream)
                for part in stream_rows(counted, [column.name for column in columns], path):
                    count += len(part)
                    yield part
            size, crc32c = counted.bytes, f'{counted.crc32c:08x}'
            if (size, crc32c) != (file.bytes, file.crc32c):
                raise _not_as_stated(path, size, crc32c, file)
            if count != file.rows:
                raise InputError(
                    f'{path} has {count} records, and the manifest states '
                    f'{file.rows}; make the dataset again'
                )

    try:
        written = list(to_format.write(rows(), shard, folder, columns))
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f'{path} cannot be converted: {error}; `tokbeam verify {source}` names what is wrong'
        ) from error
    count = sum(file.rows for file in files)
    for output in written:
        if output.examples != count:
            raise RuntimeError(f'{output.name} has {output.examples} of {count} rows')
    indexes = [os.path.join(source, index_name(file.name)) for file in files]
    index = write_converted_index(indexes, written[0], len(columns), folder)
    return [output.listed() for output in written], index.listed()


def _not_as_stated(
    path: str, size: int, crc32c: str, file: OutputFile | VocabularyRecord
) -> InputError:
    return InputError(
        f'{path} has {size} bytes with CRC-32C {crc32c}, and the manifest states {file.bytes} with '
        f'{file.crc32c}; make the dataset again'
    )


class _CountedStream:
    """A file whose bytes are counted and summed as they are read."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self.bytes = self.crc32c = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.bytes += len(data)
        self.crc32c = google_crc32c.extend(self.crc32c, data)
        advance(_CONVERTING, len(data))
        return data


def _job_of(job: str, changed: Mapping[str, object]) -> str:
    """Returns the recorded job of a dataset with other options of its output; '' if it has none."""
    if not job:
        return ''
    tables = tomllib.loads(job)
    tables['output'] = _changed(tables.get('output', {}), changed)
    return tomli_w.dumps(tables)
