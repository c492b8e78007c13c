"""What is asked for of an encoding: the dataset's files, and what an example holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.jobs.corpus_files import Corpus
from pipelines.jobs.job import Reading
from pipelines.options.corpus_options import SPLITS, option_name
from pipelines.options.job_options import DatasetOptions
from pipelines.transforms.convert_shards import converted_names
from pipelines.transforms.encode_blocks import EncodedFeature, SplitShards
from pipelines.transforms.write_shards import shard_name
from tokcore.encoding.scheme_options import EncodingOptions
from tokcore.options.option_fields import recorded
from tokcore.records.example_encoding import Feature

_BUCKET_BYTES = 16 << 20
"""Planned size of a bucket: sorting it takes a few times as much, and a shard of usual size is a
handful. Half would double the elements of the shuffle, twice the memory of every writer."""


@dataclass(frozen=True)
class VocabularyPaths:
    """The vocabulary files of the two sides of a pair, or of a text as `targets`.

    Paths are empty if the scheme has no such files.
    """

    targets: str
    inputs: str | None = None

    @property
    def given(self) -> list[str]:
        """The paths, each once."""
        return list(dict.fromkeys(path for path in (self.inputs, self.targets) if path))


@dataclass(frozen=True)
class EncodeOptions(DatasetOptions):
    """What the shards depend on, as files and examples.

    Attributes:
        encoding: what is asked of the scheme's encoder.
    """

    encoding: EncodingOptions = EncodingOptions()

    def for_manifest(self, reading: Reading) -> dict[str, object]:
        """Returns what the shards depend on, beside the vocabularies: of the splits there are."""
        there = reading.corpus.split_names
        absent = {option_name(split, 'shards') for split in SPLITS if split not in there}
        own = {name: value for name, value in recorded(self).items() if name not in absent}
        own |= recorded(self.encoding) | recorded(reading.scheme)
        return {**own, **reading.for_manifest()}

    def file_names(self, corpus: Corpus) -> list[str]:
        """Returns the names of all files of all shards."""
        features = ('inputs', 'targets') if corpus.is_paired else ('targets',)
        return [
            name
            for shard in self.shard_names(corpus)
            for name in converted_names(shard, self.output_format, features)
        ]

    def shard_names(self, corpus: Corpus) -> list[str]:
        """Returns the names of all shards of all splits, as TFRecords."""
        return [
            shard_name(self.name, split, shard, self.shards_of(split))
            for split in corpus.split_names
            for shard in range(self.shards_of(split))
        ]

    def layout(self, corpus: Corpus) -> list[SplitShards]:
        """Returns each split's shards and buckets; buckets follow the size and change no byte."""
        layout = []
        for split in corpus.split_names:
            shards = self.shards_of(split)
            buckets = -(-corpus.text_bytes(split) // shards // _BUCKET_BYTES)
            layout.append(SplitShards(split, shards, max(1, buckets)))
        return layout

    def features(
        self, vocabularies: VocabularyPaths, sides: Sequence[str] = ('targets',)
    ) -> list[EncodedFeature]:
        """Returns what an example holds: the targets, and of a pair the inputs before them.

        A text is what its side says, inputs where the targets are a label.
        """
        if vocabularies.inputs is None:
            is_labelled = sides[0] == 'inputs'
            prefix = self.source_prefix if is_labelled else self.target_prefix
            return [EncodedFeature(Feature(sides[0], 0, prefix), vocabularies.targets)]
        return [
            EncodedFeature(Feature('inputs', 0, self.source_prefix), vocabularies.inputs),
            EncodedFeature(Feature('targets', 1, self.target_prefix), vocabularies.targets),
        ]
