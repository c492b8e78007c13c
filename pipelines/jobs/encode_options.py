"""What is asked for of an encoding: the dataset's files, and what an example holds."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.jobs.corpus_files import Corpus, option_name
from pipelines.jobs.job import Reading
from pipelines.transforms.encode_blocks import EncodedFeature, SplitShards
from pipelines.transforms.write_shards import shard_name
from tokcore.records.example_encoding import Feature

_BUCKET_BYTES = 16 << 20
"""Planned size of a bucket: sorting it takes a few times as much, and a shard of usual size is a
handful. Half would double the elements of the shuffle, twice the memory of every writer."""


@dataclass(frozen=True)
class VocabularyPaths:
    """The vocabulary files of the two sides of a pair, or of a text as `targets`."""

    targets: str
    inputs: str | None = None

    @property
    def given(self) -> list[str]:
        """The paths, each once."""
        return list(dict.fromkeys(path for path in (self.inputs, self.targets) if path))


@dataclass(frozen=True)
class EncodeOptions:
    """What the shards depend on, beside what is read and the vocabularies."""

    name: str
    shards: Mapping[str, int]  # of each split
    seed: int = 0
    source_prefix: str = ''
    target_prefix: str = ''

    def for_manifest(self, reading: Reading) -> dict[str, object]:
        return {
            'name': self.name,
            'seed': self.seed,
            'source_prefix': self.source_prefix,
            'target_prefix': self.target_prefix,
            **{
                option_name(split.name, 'shards'): self.shards[split.name]
                for split in reading.corpus.splits
            },
            **reading.for_manifest(),
        }

    def shard_names(self, corpus: Corpus) -> list[str]:
        """Returns the names of all shards of all splits."""
        return [
            shard_name(self.name, split.name, shard, self.shards[split.name])
            for split in corpus.splits
            for shard in range(self.shards[split.name])
        ]

    def layout(self, corpus: Corpus) -> list[SplitShards]:
        """Returns each split's shards and buckets; buckets follow the size and change no byte."""
        layout = []
        for split in corpus.splits:
            shards = self.shards[split.name]
            buckets = -(-corpus.text_bytes(split.name) // shards // _BUCKET_BYTES)
            layout.append(SplitShards(split.name, shards, max(1, buckets)))
        return layout

    def features(self, vocabularies: VocabularyPaths) -> list[EncodedFeature]:
        """Returns what an example holds: the targets, and of a pair the inputs before them."""
        if vocabularies.inputs is None:
            targets = Feature('targets', 0, self.target_prefix)
            return [EncodedFeature(targets, vocabularies.targets)]
        return [
            EncodedFeature(Feature('inputs', 0, self.source_prefix), vocabularies.inputs),
            EncodedFeature(Feature('targets', 1, self.target_prefix), vocabularies.targets),
        ]
