"""A job: what a command is to read and to make, as dataclasses, and how it is run.

A job is made once, where options are read, and is then all that a stage gets. What it reads and
makes decides every byte of its result; `key` records that, for the manifest and to know the result
again. Its `Execution` changes no byte.
"""

import dataclasses
import hashlib
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipelines.artifacts.counts import CountFiles, CountsFolder, count_names
from pipelines.artifacts.dev_texts import DevText
from pipelines.artifacts.outputs import StageKey
from pipelines.artifacts.vocabularies import (
    VocabularyReader,
    ends_of_documents,
    folder_for_file,
    folder_for_side,
    name_of_copy,
    tokenizer_paths,
)
from pipelines.engines.engine import Engine
from pipelines.jobs.corpus import Corpus
from pipelines.options.job import (
    DatasetOptions,
    EndOptions,
    LineOptions,
    MemoryOptions,
    PairSide,
    RejectionLimit,
    RunningOptions,
    UnknownOptions,
)
from pipelines.options.vocabulary import SampleOptions, VocabularyLayout, WeightOptions
from pipelines.shard_formats.formats import shard_format
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature, SplitShards
from tokcore.corpus.corpus import ITEM_BYTES, Split
from tokcore.corpus.stretches import CORPUS_INDEX, FileNewlines
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.encoding.scheme import EncodingOptions, LearningOptions, Scheme, TokenRules
from tokcore.filters.leaving_out import list_of
from tokcore.options import recorded
from tokcore.reading.record_index import index_name
from tokcore.records.examples import Feature
from tokcore.records.manifest import (
    REMOVED_NAME,
    Manifest,
    OutputFile,
    VocabularyRecord,
    shard_name,
)
from tokcore.schemes import find_scheme

BUFFER_BYTES = 256 << 20
"""Two runs of half of it are in memory at once, one that is filled and one that is written. With
half there are twice as many range reads; twice as much sorts no faster."""


@dataclass(frozen=True)
class VocabularyPaths:
    """The vocabulary files of the two sides of a pair, or of a text as `targets`.

    Paths are empty if the scheme has no such files.
    """

    targets: str
    inputs: str | None = None

    @property
    def by_side(self) -> dict[str, str]:
        """The paths by side: that of `both`, or those of `inputs` and `targets`."""
        if not self.targets:
            return {}
        if self.inputs is None or self.inputs == self.targets:
            return {'both': self.targets}
        return {'inputs': self.inputs, 'targets': self.targets}


@dataclass(frozen=True)
class CorpusReading(LineOptions):
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

    def only(self, split: str, dataset: str | None = None) -> 'CorpusReading':
        """Returns the reading of one split, or of one of its datasets."""
        return dataclasses.replace(self, corpus=self.corpus.only(split, dataset))


@dataclass(frozen=True)
class EncodeOptions(DatasetOptions, EndOptions):
    """What the shards depend on, as files and examples.

    Attributes:
        encoding: the options of the scheme's encoder.
    """

    encoding: EncodingOptions = EncodingOptions()

    def ends(
        self,
        features: Sequence[EncodedFeature],
        scheme: Scheme,
        read: VocabularyReader | None = None,
    ) -> tuple[EndOfDocument, ...]:
        """Returns the ends of documents, as `ends_of_documents`."""
        paths = {encoded.feature.name: encoded.vocabulary for encoded in features}
        template = self.encoding.template
        return ends_of_documents(paths, scheme, template, self, self.output_format, read)

    def encoder(self, features: Sequence[EncodedFeature], reading: 'CorpusReading') -> BlockEncoder:
        """Returns what encodes the blocks that are read."""
        splits, scheme = reading.corpus.splits, reading.scheme
        return BlockEncoder(features, splits, self.seed, reading.on_error, scheme, self.encoding)

    def file_names(self, corpus: Corpus) -> list[str]:
        """Returns the names of all files of all shards, and of their indexes."""
        features = ('inputs', 'targets') if corpus.is_paired else ('targets',)
        shards = self.shard_names(corpus)
        names = [shard_format(self.output_format).file_names(shard, features) for shard in shards]
        left_out = [REMOVED_NAME] if corpus.left_out else []
        indexes = (index_name(of_shard[0]) for of_shard in names)
        return [*itertools.chain(*names), *indexes, CORPUS_INDEX, *left_out]

    def shard_names(self, corpus: Corpus) -> list[str]:
        """Returns the names of all shards of all splits, as TFRecords."""
        return [
            shard_name(self.name, split, shard, self.shards_of(split))
            for split in corpus.split_names
            for shard in range(self.shards_of(split))
        ]

    def layout(self, corpus: Corpus) -> list[SplitShards]:
        """Returns each split's shards and buckets; buckets follow the size and change no byte."""
        return [
            SplitShards.of_size(split, self.shards_of(split), corpus.text_bytes(split))
            for split in corpus.split_names
        ]

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


@dataclass(frozen=True)
class Execution(RunningOptions, MemoryOptions):
    """How a job is run.

    Attributes:
        engine: runs its pipelines.
        read_beside: paths of files that options were read from: a job file, names of labels.
        text: the job file that stands for the job, for the record of its run; '' if it has none.
        max_rejected: how many lines may be left out; None: any number.
        item_bytes: of text in a work item.
        buffer_bytes: of a worker, for the runs that it sorts.
    """

    engine: Engine
    read_beside: tuple[str, ...] = ()
    text: str = ''
    max_rejected: RejectionLimit | None = None
    item_bytes: int = ITEM_BYTES
    buffer_bytes: int = BUFFER_BYTES


@dataclass(frozen=True, kw_only=True)
class BuildJob:
    """Count the training text, learn vocabularies and encode all splits, into one folder.

    Attributes:
        reading: the corpus; all of it is encoded.
        dataset: what the shards depend on.
        output: an absolute path.
        execution: how it is run.
        learning: how vocabularies are learned; None if the scheme learns nothing.
        vocabularies: which sides have one, and how their files are called.
        sample: what of the training text vocabularies are counted from.
        weights: how its datasets are weighted where they have no weights.

    Examples:
        >>> job = pipelines.build_job(text='train.en', scheme='byte', name='en', shards=1, output='data/en')
        >>> isinstance(job, pipelines.BuildJob), job.dataset.name
        (True, 'en')
        >>> pipelines.build(job).manifest.lines[0].examples
        400
    """

    reading: CorpusReading
    dataset: EncodeOptions
    output: str
    execution: Execution
    learning: LearningOptions | None = None
    vocabularies: VocabularyLayout = VocabularyLayout()
    sample: SampleOptions = SampleOptions()
    weights: WeightOptions = WeightOptions()

    @property
    def weighted(self) -> dict[str, str | None]:
        """The weight of each training dataset by its name; empty if there are none, None by a temperature."""
        corpus = self.reading.corpus
        has_weights = self.weights.temperature is not None or any(corpus.weights)
        if self.learning is None or not has_weights:
            return {}
        return dict(zip(corpus.datasets, corpus.weights))

    @property
    def vocabulary_names(self) -> dict[PairSide, str]:
        """The file name of each side's vocabulary: `both`, or `inputs` and `targets`."""
        sides = self.reading.corpus.format.sides
        return self.vocabularies.names(self.reading.scheme, self.dataset.name, self.learning, sides)

    def vocabulary_paths(self, folder: str) -> VocabularyPaths:
        """Returns the vocabularies' files in a folder, for each side that is encoded."""
        paths = {side: os.path.join(folder, name) for side, name in self.vocabulary_names.items()}
        targets = paths.get('targets', paths.get('both', ''))
        is_paired = self.reading.corpus.is_paired
        return VocabularyPaths(targets, paths.get('inputs', targets) if is_paired else None)

    @property
    def counts_folders(self) -> dict[str, CountsFolder]:
        """For each vocabulary, by its side, the folder with its counts."""
        names = self.vocabulary_names
        return {
            side: CountsFolder(
                os.path.join(self.output, f'counts.{side}' if len(names) > 1 else 'counts'),
                side if self.reading.corpus.is_paired else 'text',
                root=self.output,
            )
            for side in names
        }

    @property
    def file_names(self) -> list[str]:
        """The files of the result: vocabularies with what belongs to them, and shards."""
        names = list(self.vocabulary_names.values())
        ids = [self.reading.scheme.entries_name(name) for name in names]
        endings = self.learning.endings_beside if self.learning else ()
        ids += [name + ending for name in names for ending in endings]
        tokenizers = [
            path
            for side in self.vocabulary_names
            for path in tokenizer_paths(folder_for_side(side), self.reading.scheme)
        ]
        shards = self.dataset.file_names(self.reading.corpus)
        return [*names, *(name for name in ids if name is not None), *tokenizers, *shards]

    def key(self) -> StageKey:
        """Returns what the result depends on."""
        reading, dataset = self.reading, self.dataset
        options = {
            **recorded(dataset, dataset.encoding, reading.scheme, reading),
            **_options_of_corpus(reading.corpus),
            **(self.learning.for_manifest() if self.learning else {}),
            **recorded(self.vocabularies, self.sample, self.weights),
            'scheme': reading.scheme.name,
        }
        if any(self.weighted.values()):
            options['weights'] = self.weighted
        return StageKey('build', options, reading.corpus.wanted_inputs(), reading.scheme.rules)


@dataclass(frozen=True, kw_only=True)
class CountJob:
    """Count the tokens of the training text into one or more COUNTS folders.

    Attributes:
        reading: the corpus; of several splits the first is the training text.
        folders: what is counted, and where to.
        execution: how it is run.
        sample: what of the text is counted.
    """

    reading: CorpusReading
    folders: Sequence[CountsFolder]
    execution: Execution
    sample: SampleOptions = SampleOptions()

    @property
    def parts(self) -> 'list[CountJob]':
        """The jobs that make it up: of each dataset, as if it were alone; or this one."""
        names = dict.fromkeys(folder.dataset for folder in self.folders if folder.dataset)
        return [
            dataclasses.replace(
                self,
                reading=dataclasses.replace(self.reading, corpus=self.reading.corpus.apart(name)),
                folders=[folder for folder in self.folders if folder.dataset == name],
            )
            for name in names
        ] or [self]

    @property
    def output(self) -> str:
        """The folder that the user named."""
        return self.folders[0].root or self.folders[0].path

    @property
    def file_names(self) -> list[str]:
        """The files of the result."""
        return [f'{folder.path}/{name}' for folder in self.folders for name in count_names()]

    def key(self, folder: CountsFolder) -> StageKey:
        """Returns what the counts of one of the folders depend on."""
        corpus = self.reading.corpus
        of_splits = _options_of_corpus(corpus)
        options = {'side': folder.side, **recorded(self.reading, self.sample), **of_splits}
        rules = (folder.scheme or self.reading.scheme).rules
        return StageKey('count', options, corpus.wanted_inputs(), rules)


@dataclass(frozen=True, kw_only=True)
class MergeJob:
    """Add up COUNTS folders into a new one.

    Attributes:
        folders: as the user named them.
        output: an absolute path.
        execution: how it is run.
    """

    folders: Sequence[str]
    output: str
    execution: Execution

    def key(self, counts: CountFiles, manifests: Sequence[Manifest], rules: TokenRules) -> StageKey:
        """Returns what the sum depends on.

        Args:
            counts: the files of all folders.
            manifests: of the folders.
            rules: by which all of them were counted.
        """
        sides = [manifest.options.get('side') for manifest in manifests]
        options = {'merged': len(self.folders), 'side': sides}
        return StageKey('count', options, counts.wanted_inputs(), rules)


@dataclass(frozen=True, kw_only=True)
class PiecesJob:
    """Count the pieces that codes make of the training text into a file, and write ids next to the codes.

    Attributes:
        reading: the corpus, with the scheme of the codes.
        side: which side of pairs is counted; 'text' of a text.
        codes_path: an absolute path.
        special_tokens: what has the first ids.
        threshold: the least count of pieces that have ids.
        output: the file, an absolute path.
        execution: how it is run.
    """

    reading: CorpusReading
    side: str
    codes_path: str
    special_tokens: Sequence[str]
    threshold: int
    output: str
    execution: Execution
    sample: ClassVar[SampleOptions] = SampleOptions()

    def key(self, record: VocabularyRecord) -> StageKey:
        """Returns what the table of pieces depends on; `record` is of the codes."""
        corpus, scheme = self.reading.corpus, self.reading.scheme
        options = {
            'scheme': scheme.name,
            'side': self.side,
            **recorded(scheme, self.reading),
            **_options_of_corpus(corpus),
            'codes': [*_identity(record)],
            'special_tokens': list(self.special_tokens),
            **({'vocabulary_threshold': self.threshold} if self.threshold > 1 else {}),
        }
        return StageKey('pieces', options, corpus.wanted_inputs(), scheme.rules)


@dataclass(frozen=True)
class TextToCount:
    """A training text to learn from: its corpus, the side of pairs, and the sample of its lines."""

    reading: CorpusReading
    side: str
    sample: SampleOptions = SampleOptions()


@dataclass(frozen=True, kw_only=True)
class VocabJob:
    """Learn a vocabulary into a file.

    Attributes:
        source: a text, or counts of one.
        scheme: whose vocabulary it is.
        learning: how it is learned.
        output: the file, an absolute path.
        execution: how it is run.
        parity: the development texts of the languages that are counted, for parity-aware BPE.
    """

    source: TextToCount | CountFiles
    scheme: Scheme
    learning: LearningOptions
    output: str
    execution: Execution
    parity: tuple[DevText, ...] = ()

    @property
    def tokenizer_folder(self) -> str:
        """Where the files for Hugging Face's libraries go, seen from the folder of the output."""
        return folder_for_file(os.path.basename(self.output), self.scheme)

    @property
    def file_names(self) -> list[str]:
        """The files of the result, seen from the folder of the output: the vocabulary is the first."""
        name = os.path.basename(self.output)
        others = tokenizer_paths(self.tokenizer_folder, self.scheme)
        beside = [name + ending for ending in self.learning.endings_beside]
        return [name, *beside, *(other for other in others if other != name)]

    def key(self) -> StageKey:
        """Returns what the vocabulary depends on."""
        if isinstance(self.source, CountFiles):
            read: CountFiles | Corpus = self.source
            of_text = {**recorded(self.scheme), **self.source.weighting}
            if self.parity:
                of_text |= {'parity': [text.record for text in self.parity]}
        else:
            read = self.source.reading.corpus
            of_splits = _options_of_corpus(self.source.reading.corpus)
            recorded_text = recorded(self.scheme, self.source.reading, self.source.sample)
            of_text = {'side': self.source.side, **recorded_text, **of_splits}
        options = {'scheme': self.scheme.name, **of_text, **self.learning.for_manifest()}
        return StageKey('vocab', options, read.wanted_inputs(), self.scheme.rules)


@dataclass(frozen=True)
class PreviousDataset:
    """A dataset that a job updates: its shards are merged with those of what is added, which alone is read.

    Attributes:
        folder: an absolute path.
        manifest: of it.
        corpus: of it, without the rows that are removed now.
        newlines: of each of its inputs, as its index has them.
    """

    folder: str
    manifest: Manifest
    corpus: Corpus
    newlines: Sequence[FileNewlines]


@dataclass(frozen=True, kw_only=True)
class EncodeJob:
    """Encode a corpus with vocabularies that exist.

    Attributes:
        reading: the corpus.
        vocabularies: their files.
        dataset: what the shards depend on.
        output: a folder, an absolute path.
        execution: how it is run.
        unknown: how much of the text the vocabularies must know.
        states_special_tokens: whether the user states what special tokens in text become.
        previous: the dataset that is updated, if there is one.
    """

    reading: CorpusReading
    vocabularies: VocabularyPaths
    dataset: EncodeOptions
    output: str
    execution: Execution
    unknown: UnknownOptions = UnknownOptions()
    states_special_tokens: bool = True
    previous: PreviousDataset | None = None
    sample: ClassVar[SampleOptions] = SampleOptions()

    @property
    def file_names(self) -> list[str]:
        """The files of the result: the shards, and copies of the vocabularies' files."""
        copies = itertools.starmap(name_of_copy, self.vocabularies.by_side.items())
        return [*copies, *self.dataset.file_names(self.reading.corpus)]

    def key(self, records: Sequence[VocabularyRecord]) -> StageKey:
        """Returns what the shards depend on; `records` are of the vocabularies."""
        vocabularies = [
            [
                record.side,
                *_identity(record),
                *(part for file in record.beside for part in _identity(file)),
            ]
            for record in records
        ]
        reading, dataset = self.reading, self.dataset
        options = {
            **recorded(dataset, dataset.encoding, reading.scheme, reading),
            **_options_of_corpus(reading.corpus),
            'vocabularies': vocabularies,
            'scheme': reading.scheme.name,
        }
        previous = self.previous.manifest.root or '' if self.previous else ''
        inputs, rules = reading.corpus.wanted_inputs(), reading.scheme.rules
        return StageKey('encode', options, inputs, rules, previous=previous)


Job = BuildJob | CountJob | MergeJob | PiecesJob | VocabJob | EncodeJob


def _options_of_corpus(corpus: Corpus) -> dict[str, object]:
    """Returns how files are read, by split, or by dataset where the job names datasets, and what is left out."""
    splits, options = corpus.splits, dict[str, object]()
    if corpus.left_out:
        options['leave_out'] = hashlib.sha256(list_of(corpus.left_out)).hexdigest()
    if any(split.dataset or split.prefixes or split.max_examples for split in splits):
        return options | {'datasets': [_dataset_record(split) for split in splits]}
    return options | {
        name if split.name == 'train' else f'{split.name}_{name}': value
        for split in splits
        for name, value in {**split.format.options, **_filters_record(split)}.items()
    }


def _filters_record(split: Split) -> dict[str, object]:
    """Returns what manifests say of filters, where there are any."""
    filters = [
        {'filter': row_filter.spec, 'made_of': row_filter.stamp}
        if row_filter.stamp
        else row_filter.spec
        for row_filter in split.filters
    ]
    return {'clean': filters} if filters else {}


def _dataset_record(split: Split) -> dict[str, object]:
    optional = {
        'name': split.dataset,
        'max_examples': split.max_examples,
        'prefixes': list(split.prefixes),
    }
    return {
        'split': split.name,
        'format': split.format.name,
        'files': len(split.files),
        **split.format.options,
        **{name: value for name, value in optional.items() if value},
        **_filters_record(split),
    }


def _identity(file: VocabularyRecord | OutputFile) -> tuple[str, int, str]:
    return os.path.basename(file.name), file.bytes, file.crc32c
