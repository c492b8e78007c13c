"""A COUNTS folder: what it counts, its files, and what its manifest lists of them."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.artifacts.manifest import Manifest, OutputFile
from pipelines.engines.progress import tell
from pipelines.engines.progress_events import CountsMade, VocabularySampled
from pipelines.transforms.count_tokens import WrittenCounts, counts_name, write_counts_file
from tokcore.counts.block_counting import COUNT_PARTITIONS
from tokcore.counts.merging import TokenTable
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.token_rules import TokenRules

SIDES = {'inputs': (0,), 'targets': (1,), 'both': (0, 1)}
"""What `--side` chooses of a pair."""


@dataclass(frozen=True)
class CountsFolder:
    """One COUNTS folder to be made: which side of the pairs it counts, or 'text'.

    Attributes:
        path: of the folder.
        side: a key of `SIDES`, or 'text'.
        scheme: whose tokens are counted; None for that of all that is read.
        root: the user's folder, if the tool has named this one in it: it is no link then.
    """

    path: str
    side: str
    scheme: Scheme | None = None
    root: str | None = None

    @property
    def sides(self) -> tuple[int, ...]:
        return SIDES.get(self.side, (0,))


@dataclass(frozen=True)
class CountedTable:
    """The files of one COUNTS folder and the running tokens in them."""

    tokens: int
    files: tuple[OutputFile, ...]


def count_names() -> tuple[str, ...]:
    """Returns the file names of a COUNTS folder."""
    return tuple(counts_name(partition) for partition in range(COUNT_PARTITIONS))


def counted_table(
    files: Iterable[WrittenCounts], path: str, rules: TokenRules
) -> CountedTable:
    """Returns a COUNTS folder from what was written of it; empty partitions are written here."""
    written = {each.name: each for each in files}
    for partition, name in enumerate(count_names()):
        if name not in written:
            written[name] = write_counts_file(
                path, partition, TokenTable.from_items(()), rules
            )
    listed = tuple(OutputFile.of(written[name]) for name in count_names())
    return CountedTable(sum(each.tokens for each in written.values()), listed)


def log_counts(manifest: Manifest, path: str) -> None:
    """Tells what was counted."""
    distinct = sum(file.rows for file in manifest.files)
    tell(CountsMade(manifest.tokens, distinct, path))


def tell_sample(manifest: Manifest) -> None:
    """Tells what a vocabulary was counted from, if that was a sample."""
    sample = manifest.sample
    if sample:
        parts = [('' if len(sample) == 1 else each.side, each.taken, each.lines) for each in sample]
        tell(VocabularySampled(sample[0].how, tuple(parts)))
