"""The development texts by which parity-aware BPE chooses the language of each merge."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.artifacts.counts import CountFiles
from pipelines.files import filesystem
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import BpeScheme
from tokcore.corpus.contents import refuse
from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.looks import Looks
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned, LearningOptions, Scheme
from tokcore.errors import InputError
from tokcore.learn import count_files
from tokcore.learning.size_search import Progress


def read_dev_texts(
    patterns: Sequence[str], counts: Sequence[str], scheme: Scheme, learning: LearningOptions
) -> DevTexts:
    """Reads the files of `--parity`, whose tokens are counted where a vocabulary is learned.

    Raises:
        InputError: there are not as many texts as counts, a file cannot be read, or other options do
            not go with them.
    """
    if not isinstance(scheme, BpeScheme):
        raise InputError(f'--parity goes with --scheme bpe, not with {scheme.name}; leave it out')
    assert isinstance(learning, BpeOptions)
    scheme.check_parity(learning)
    if len(patterns) != len(counts):
        raise InputError(
            f'--counts names {len(counts)} languages, and --parity {len(patterns)}; give a text for each, in the '
            'same order'
        )
    stored = [filesystem.find(pattern) for pattern in patterns]
    content = {
        file.path: filesystem.read_bytes(file.path) for language in stored for file in language
    }
    looks = Looks(lambda path: io.BytesIO(content[path]))
    texts = []
    for language in stored:
        files = []
        for file in language:
            seen = looks.at(file.path)
            refuse(file.path, seen)
            files.append(CorpusFile(file.path, file.name, file.size, seen.compression))
        texts.append(tuple(files))
    return DevTexts(tuple(texts), content)


@dataclass(frozen=True)
class DevTexts:
    """A development text of each language.

    Attributes:
        texts: the files of each.
        content: the bytes of the files by their paths, read once.
    """

    texts: tuple[tuple[CorpusFile, ...], ...]
    content: Mapping[str, bytes]

    @property
    def paths(self) -> list[str]:
        """The paths of all files."""
        return [*self.content]

    def record(self, counts: CountFiles) -> list[dict[str, object]]:
        """Returns what a vocabulary depends on: of each language the number of files, and the text."""
        return [
            {
                'counts': files,
                'text': [hashlib.sha256(self.content[file.path]).hexdigest() for file in language],
            }
            for files, language in zip(counts.arguments, self.texts, strict=True)
        ]

    def learn(
        self,
        tables: Sequence[TokenTable],
        scheme: Scheme,
        options: LearningOptions,
        report: Progress,
    ) -> Learned:
        """Learns a vocabulary from the counts of each language.

        Raises:
            InputError: a text has no token, or is not UTF-8.
        """
        assert isinstance(scheme, BpeScheme) and isinstance(options, BpeOptions)
        dev_tables = []
        for language in self.texts:
            table = count_files(language, scheme, lambda path: io.BytesIO(self.content[path]))
            if len(table) == 0:
                raise InputError(f'no token in {language[0].path}; --parity needs a text')
            dev_tables.append(table)
        return scheme.learn_with_parity(tables, dev_tables, options, report)
