"""The stage that counts pieces: training lines and codes in, a table of pieces and their ids out."""

from collections.abc import Sequence

from pipelines.artifacts.count_tables import read_counts
from pipelines.artifacts.manifest import VocabularyRecord
from pipelines.artifacts.replaced_inputs import refuse_replaced
from pipelines.artifacts.stage_output import StageKey, StageOutput, StageTask
from pipelines.artifacts.vocabulary_reading import ReadVocabulary, file_entry
from pipelines.engines.progress import tell
from pipelines.engines.progress_events import PiecesCounted
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.jobs.job import Execution, Reading
from pipelines.stages.run_stage import Made, run_stage
from pipelines.stages.vocabulary import count_in_attempt
from tokcore.bpe.piece_counts import SPECIAL_TOKENS, count_pieces, entries_file, piece_table
from tokcore.errors import InputError
from tokcore.options.option_fields import recorded


def pieces_stage(
    reading: Reading,
    execution: Execution,
    side: str,
    codes: ReadVocabulary,
    record: VocabularyRecord,
    special_tokens: Sequence[str] | None,
    codes_path: str,
    path: str,
) -> None:
    """Counts the pieces of the training lines into a file, and writes the ids of pieces beside codes.

    Args:
        reading: the corpus, with the scheme of the codes.
        execution: how it is run.
        side: of pairs.
        codes: the vocabulary.
        record: of it, for the manifest.
        special_tokens: what has the first ids; None: `SPECIAL_TOKENS`.
        codes_path: of the vocabulary.
        path: of the table.

    Raises:
        InputError: a line that cannot be used, or another result there.
    """
    output = StageOutput.of_vocabulary(path)
    name = filesystem.split_path(path)[1]
    if filesystem.is_folder(path):
        raise InputError(f'{path} is a folder; give a file as --output')
    special_tokens = SPECIAL_TOKENS if special_tokens is None else tuple(special_tokens)
    scheme = reading.scheme
    entries_path = filesystem.join(
        filesystem.split_path(codes_path)[0], scheme.entries_name(record.name)
    )
    key = StageKey(
        'pieces',
        {
            'scheme': scheme.name,
            'side': side,
            **recorded(scheme),
            **reading.for_manifest(),
            'codes': [record.name, record.bytes, record.crc32c],
            'special_tokens': list(special_tokens),
        },
        reading.corpus.wanted_inputs(),
        scheme.rules,
    )
    read = [*(each.stored.path for each in key.inputs), codes_path, *execution.read_beside]
    refuse_replaced(read, [entries_path])
    count = count_in_attempt(reading, execution, side)

    def make(attempt: Attempt) -> list[Made]:
        counted = count(attempt)
        table = read_counts(counted.counts, scheme.unstorable)
        data = piece_table(count_pieces(codes.entries, table))
        filesystem.write_bytes(filesystem.join(attempt.path, name), data)
        manifest = key.manifest(
            counted.inputs,
            counted.lines,
            vocabularies_used=(record,),
            files=(file_entry(name, data),),
        )
        return [Made(manifest, counted.rejected)]

    [made] = run_stage([StageTask(key, output, [name])], make, execution, given=[codes_path])
    entries = entries_file(_read_table(path), special_tokens)
    _write_entries(entries_path, entries, execution.overwrite)
    if made is not None:
        output.warn_rejected(made.rejected)
        pieces = made.manifest.files[0].rows
        tell(PiecesCounted(pieces, path, entries.count(b'\n'), entries_path))


def _read_table(path: str) -> list[tuple[str, int]]:
    lines = filesystem.read_bytes(path).decode().split('\n')[:-1]
    return [(piece, int(count)) for piece, _, count in (line.rpartition(' ') for line in lines)]


def _write_entries(path: str, entries: bytes, overwrite: bool) -> None:
    there = filesystem.read_if_there(path)
    if there == entries:
        return
    if there is not None and not overwrite:
        raise InputError(
            f'{path} is there already, with other entries; move it away, or give --overwrite to '
            'replace it'
        )
    filesystem.write_bytes(path, entries)
