"""What a job reads, on which its bytes depend, and how it is run, on which none does."""

import dataclasses
from dataclasses import dataclass

from pipelines.engines.engine import Engine
from pipelines.jobs.corpus_files import Corpus
from pipelines.options.corpus_options import option_name
from pipelines.options.job_options import (
    LineOptions,
    RunningOptions,
    ShuffleOptions,
    WorkOptions,
)
from tokcore.encoding.scheme import Scheme
from tokcore.options.option_fields import recorded
from tokcore.schemes import find_scheme


@dataclass(frozen=True)
class Reading(LineOptions):
    """A corpus that was found, and how its files are read as lines.

    Attributes:
        corpus: the files.
        scheme: how lines become tokens and ids.
    """

    corpus: Corpus
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
        of_formats = {
            option_name(split.name, name): value
            for split in self.corpus.splits
            for name, value in split.format.options.items()
        }
        return {**recorded(self), **of_formats}


@dataclass(frozen=True)
class Execution(RunningOptions, WorkOptions, ShuffleOptions):
    """How a job is run.

    Attributes:
        engine: runs its pipelines.
    """

    engine: Engine

    @property
    def through_files(self) -> bool:
        """Whether what is shuffled goes through files."""
        return self.engine.runner.through_files if self.shuffle == 'auto' else self.shuffle == 'files'
