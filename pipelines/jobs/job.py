"""What a job reads, on which its bytes depend, and how it is run, on which none does."""

import dataclasses
from dataclasses import dataclass

from pipelines.engines.engine import Engine
from pipelines.jobs.corpus_files import Corpus, option_name
from tokcore.corpus.dataset import MAX_LINE_BYTES
from tokcore.corpus.formats.work_items import ITEM_BYTES
from tokcore.encoding.scheme import Scheme
from tokcore.schemes import find_scheme

BUFFER_BYTES = 256 << 20
"""Two runs of half of it are in memory at once, one that is filled and one that is written. With
half there are twice as many range reads; twice as much sorts no faster."""


@dataclass(frozen=True)
class Reading:
    """A corpus that was found, and how its files are read as lines.

    Attributes:
        corpus: the files.
        on_error: at a line that cannot be used: 'stop', or 'skip' it.
        max_line_bytes: a longer line cannot be used.
        scheme: how lines become tokens and ids.
    """

    corpus: Corpus
    on_error: str = 'stop'
    max_line_bytes: int = MAX_LINE_BYTES
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)

    @property
    def longest_line(self) -> int:
        """The most bytes that a line of the corpus can have and be read."""
        return min(self.max_line_bytes, self.corpus.most_text_bytes)

    def only(self, split: str) -> 'Reading':
        """Returns the reading of one split."""
        return dataclasses.replace(self, corpus=self.corpus.only(split))

    def for_manifest(self) -> dict[str, object]:
        """Returns the options that say how files are read as lines."""
        options: dict[str, object] = {'on_error': self.on_error}
        for split in self.corpus.splits:
            for name, value in split.format.options.items():
                options[option_name(split.name, name)] = value
        # A newer option: by default manifests stay what they were before it.
        if self.max_line_bytes != MAX_LINE_BYTES:
            options['max_line_size'] = self.max_line_bytes
        return options


@dataclass(frozen=True)
class Execution:
    """How a job is run.

    Attributes:
        engine: runs its pipelines.
        item_bytes: size of a work item.
        overwrite: whether another result may be replaced.
        work: the folder for what survives a killed run; None for `.tokbeam` beside the output.
        shuffle: 'files', sorted runs that are merged (`shuffle.run_merging`); 'engine', the
            runner's `GroupByKey` (`transforms.write_shards`); or 'auto', which asks the runner.
        buffer_bytes: of a process, for the runs that it sorts, if there is room.
        memory_bytes: limit of the whole job; None is what is free.
    """

    engine: Engine
    item_bytes: int = ITEM_BYTES
    overwrite: bool = False
    work: str | None = None
    shuffle: str = 'auto'
    buffer_bytes: int = BUFFER_BYTES
    memory_bytes: int | None = None

    @property
    def through_files(self) -> bool:
        """Whether what is shuffled goes through files."""
        return self.engine.runner.through_files if self.shuffle == 'auto' else self.shuffle == 'files'
