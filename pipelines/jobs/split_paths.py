"""What is given for one dataset of a split: its files, and what is to be done with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.options.corpus_options import split_flag
from tokcore.corpus.formats.corpus_format import CorpusFormat
from tokcore.corpus.formats.registry import corpus_format


@dataclass(frozen=True)
class SplitPaths:
    """A dataset as the command line or a job file has it.

    Attributes:
        split: whose it is.
        format: that of its files, by name.
        paths: for each of the format's roles.
        options: of the format, by name, as far as they are given.
        dataset: its name; empty where it needs none.
        max_examples: as many of its rows are taken; None: all.
        source_prefix: put before its source texts; None: the job's.
        target_prefix: put before its target texts; None: the job's.
        clean: filters that its rows go through, each by its name with options.
    """

    split: str
    format: str
    paths: Mapping[str, Sequence[str]]
    options: Mapping[str, object] = field(default_factory=dict)
    dataset: str = ''
    max_examples: int | None = None
    source_prefix: str | None = None
    target_prefix: str | None = None
    clean: Sequence[str] = ()

    def option(self, name: str) -> str:
        """Returns the name of one of this split's options: `--source`, `--dev-source`."""
        return split_flag(self.split, name)

    @property
    def chosen_format(self) -> CorpusFormat:
        """The format with its options."""
        return corpus_format(self.format)(**self.options)
