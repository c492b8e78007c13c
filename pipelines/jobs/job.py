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
from tokcore.corpus.dataset import Split
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
        splits = self.corpus.splits
        if any(split.dataset or split.prefixes or split.max_examples for split in splits):
            return {**recorded(self), 'datasets': [_dataset_record(split) for split in splits]}
        of_splits = {
            option_name(split.name, name): value
            for split in splits
            for name, value in {**split.format.options, **_filters_record(split)}.items()
        }
        return {**recorded(self), **of_splits}


def _filters_record(split: Split) -> dict[str, object]:
    """Returns what manifests say of filters, where there are any."""
    told = [
        {'filter': each.spec, 'made_of': each.stamp} if each.stamp else each.spec
        for each in split.filters
    ]
    return {'clean': told} if told else {}


def _dataset_record(split: Split) -> dict[str, object]:
    told = {
        'name': split.dataset,
        'max_examples': split.max_examples,
        'prefixes': list(split.prefixes),
    }
    return {
        'split': split.name,
        'format': split.format.name,
        **split.format.options,
        **{name: value for name, value in told.items() if value},
        **_filters_record(split),
    }


@dataclass(frozen=True)
class Execution(RunningOptions, WorkOptions, ShuffleOptions):
    """How a job is run.

    Attributes:
        engine: runs its pipelines.
        read_beside: paths of files that options were read from: a job file, names of labels.
    """

    engine: Engine
    read_beside: tuple[str, ...] = ()

    @property
    def through_files(self) -> bool:
        """Whether what is shuffled goes through files."""
        return self.engine.runner.through_files if self.shuffle == 'auto' else self.shuffle == 'files'
