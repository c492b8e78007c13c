"""Learns a vocabulary of what a pipeline counted, into a file."""

import os
import typing
from collections.abc import Iterable, Mapping, Sequence

import apache_beam as beam

from pipelines.files import filesystem
from pipelines.transforms.count_tokens import TABLES
from pipelines.transforms.read import Path, checked_output
from tokcore.counts.tables import COUNT_PARTITIONS, concatenate_tables
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.last_word import CorpusEnd, with_last_word
from tokcore.encoding.scheme import Scheme
from tokcore.errors import InputError
from tokcore.learn import learn_from_table, learning_of, vocabulary_files
from tokcore.options import vocabulary_path
from tokcore.schemes import DEFAULT_SCHEME

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from tokcore.keyword_types import LearnKeywords


class LearnVocabulary(beam.PTransform):
    """Learns a vocabulary of the counts of `CountTokens`, and writes its file.

    Returns a PCollection with the file's path. One worker learns, in memory; `pipelines.vocab` runs
    a learner on many workers. The file is the one that `tokbeam vocab` writes, and is replaced if it
    exists. Codes, which hold no ids, get the file of their ids next to them, and with `shrink` a
    vocabulary gets the maps of its ids.

    Examples:
        >>> with beam.Pipeline(runner='FnApiRunner') as pipeline:
        ...     counted = pipeline | pipelines.ReadCorpus('train.en') | pipelines.CountTokens('bpe')
        ...     _ = counted | pipelines.LearnVocabulary('bpe', vocab_size=600, path='tokenizer.json')
        >>> tokcore.load_tokenizer('tokenizer.json')
        BpeTokenizer(vocab_size=600, end=0)
    """

    def __init__(
        self,
        scheme: str | Scheme = DEFAULT_SCHEME,
        *,
        path: Path,
        group: int = 0,
        **options: 'Unpack[LearnKeywords]',
    ):
        """Takes a scheme and how its vocabulary is learned.

        Args:
            scheme: its name, or the scheme itself; the one that the tokens were counted for.
            path: of the vocabulary's file.
            group: which group of sides of `CountTokens` is learned from.
            options: of the scheme and of its learner, as the command has them: `vocab_size`, ...

        Raises:
            InputError: an unknown scheme, or options that cannot have their values or do not go
                together; when it is applied, tokens that were counted for another scheme.
            TypeError: the scheme has no such option, or it has a value of another type.
        """
        super().__init__()
        self.scheme, self.learning = learning_of(scheme, options, 'LearnVocabulary')
        if getattr(self.learning, 'learner', None) == 'beam':
            raise InputError(
                'LearnVocabulary learns in one worker, and learner is beam, which runs pipelines of '
                'its own; call pipelines.vocab for that, or leave it out'
            )
        self.path, self.group = checked_output(path, vocabulary_path, 'LearnVocabulary'), group

    def expand(self, counted):  # Beam warns of a hint that has a dictionary
        tables = counted[TABLES] if isinstance(counted, Mapping) else counted
        scheme = getattr(tables, 'scheme', None)
        if scheme is not None and scheme.rules != self.scheme.rules:
            raise InputError(
                f'the tokens are counted by {scheme.rules}, and LearnVocabulary has '
                f'{self.scheme.rules}; give both transforms the same scheme and its options'
            )
        groups = getattr(tables, 'groups', None)
        if groups is not None and not 0 <= self.group < len(groups):
            raise InputError(
                f'group {self.group} of CountTokens is not one of its {len(groups)} groups'
            )
        end = None
        if self.scheme.counts_last_word:
            end = getattr(tables, 'corpus_end', None)
            if end is None:
                raise TypeError(
                    f'--scheme {self.scheme.name} depends on the end of the corpus; apply '
                    'LearnVocabulary to the output of CountTokens itself'
                )
        paths = (
            tables.pipeline
            | 'Path' >> beam.Create([self.path], reshuffle=False)
            | 'Learn'
            >> beam.Map(
                _learn, self, (groups or ((0,),))[self.group], end, beam.pvalue.AsIter(tables)
            )  # path
        )
        paths.vocabulary = (self.path, self.scheme)  # for `EncodeBlocks`
        return paths


def _learn(
    path: str,
    transform: LearnVocabulary,
    sides: Sequence[int],
    end: CorpusEnd | None,
    tables: Iterable[tuple[int, TokenTable]],
) -> str:
    first = transform.group * COUNT_PARTITIONS
    parts = {key: table for key, table in tables if first <= key < first + COUNT_PARTITIONS}
    # As the command has them: in the order of partitions, and each sorted.
    ordered = [parts[key].sorted() for key in sorted(parts)]
    table = concatenate_tables(ordered) if ordered else TokenTable.from_items(())
    if end is not None:
        table = with_last_word(table, end, sides)
    learned = learn_from_table(transform.scheme, transform.learning, table)
    folder, name = os.path.split(path)
    files = vocabulary_files(learned.vocabulary, transform.scheme, table, name)
    beside = transform.scheme.files_beside(learned.vocabulary, transform.learning)
    files |= {name + ending: data for ending, data in beside.items()}
    for file, data in files.items():
        filesystem.write_bytes(os.path.join(folder, file), data)
    return path
