"""From the paths of a corpus to its blocks, for pipelines that are not the command's."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.fetching.web_addresses import is_web_address
from pipelines.files import filesystem
from pipelines.files.filesystem import StoredFile
from pipelines.options.secrets import text_without_secrets
from pipelines.transforms.read_blocks import ReadBlocks
from tokcore.corpus.columnar.tsv import Tsv
from tokcore.corpus.dataset import MAX_LINE_BYTES, CorpusFile, Split
from tokcore.corpus.formats.bitext import Bitext
from tokcore.corpus.formats.corpus_format import index_ranges, plan_items
from tokcore.corpus.formats.lines import Lines
from tokcore.corpus.formats.work_items import ITEM_BYTES
from tokcore.corpus.storage.archive_reading import reading_on
from tokcore.corpus.storage.archives import ArchiveLists, archive_and_member
from tokcore.corpus.storage.compression import compression_of
from tokcore.errors import InputError


@dataclass(frozen=True)
class FoundFile:
    """A file of a corpus.

    Attributes:
        stored: as its filesystem lists it; of a member of an archive, size and time are those of the
            archive.
        file: as those read it that do not know where it is stored.
    """

    stored: StoredFile
    file: CorpusFile

    def named(self, name: str, sha256: str | None) -> 'FoundFile':
        """Returns it by another name, with the SHA-256 of what is stored."""
        return FoundFile(
            dataclasses.replace(self.stored, name=name, sha256=sha256),
            dataclasses.replace(self.file, name=name),
        )


def archive_lists() -> ArchiveLists:
    """Returns new lists of archives, wherever these are stored."""
    return ArchiveLists(filesystem.open_binary)


def find_files(pattern: str, archives: ArchiveLists | None = None) -> list[FoundFile]:
    """Returns the files that a path or a glob names; `a.tgz!glob` those within archives.

    Args:
        pattern: a path or a glob.
        archives: with the same ones, several calls read an archive once.

    Raises:
        InputError: there are none, or one cannot be read.
    """
    if is_web_address(pattern):
        raise InputError(
            f'{text_without_secrets(pattern)} is on the web, and nothing is fetched unless --fetch '
            'allows it; give --fetch, or fetch the file first'
        )
    named = archive_and_member(pattern)
    if named is None or filesystem.exists(pattern):
        return [FoundFile(stored, _corpus_file(stored)) for stored in filesystem.find(pattern)]
    archives = archives or archive_lists()
    paths, members = named
    return [
        FoundFile(dataclasses.replace(stored, path=member.path, name=member.name), member)
        for stored in filesystem.find(paths)
        for member in archives.find(_corpus_file(stored), members)
    ]


def _corpus_file(stored: StoredFile) -> CorpusFile:
    compressed = compression_of(stored.path, filesystem.open_binary)
    return CorpusFile(stored.path, stored.name, stored.size, compressed)


@dataclass(eq=False)
class ReadCorpus(beam.PTransform):
    """Reads the files of one split, plain or gzip, as blocks of whole lines.

    Lines of text, columns of TAB-separated lines, or pairs of lines of two files. The files are found
    when this is made; of pairs, the lines are counted then. As any transform of Beam that begins a
    pipeline, it is good for one pipeline.

    Attributes:
        paths: a path or pattern, or some; any that Beam's `FileSystems` knows.
        targets: for pairs, the files of the other side, in the same order.
        columns: for TAB-separated lines, which columns are read, from 0 on.
        split: the split's name.
        item_bytes: size of a work item, the bytes that a worker reads at a time.
        max_line_bytes: a longer line is a reject.

    Raises:
        InputError: a path that does not exist or cannot be read, or files that do not pair.
    """

    paths: str | Sequence[str]
    targets: str | Sequence[str] = ()
    columns: Sequence[int] = ()
    split: str = 'train'
    item_bytes: int = ITEM_BYTES
    max_line_bytes: int = MAX_LINE_BYTES

    def __post_init__(self):
        sources, targets = _find(self.paths), _find(self.targets)
        if targets and len(targets) != len(sources):
            raise InputError(
                f'{len(sources)} files do not pair with {len(targets)} targets; they pair in the '
                'order given, so give as many of each'
            )
        if targets and self.columns:
            raise InputError('columns are of TAB-separated lines, and pairs of files have none')
        if targets:
            split = Split(self.split, Bitext(), tuple(zip(sources, targets)))
        else:
            chosen = Tsv(tuple(self.columns)) if self.columns else Lines()
            split = Split(self.split, chosen, tuple((each,) for each in sources))
        parts = index_ranges(split, self.item_bytes)
        with reading_on(filesystem.open_binary, [(part.file,) for part in parts]) as open_binary:
            index = [split.format.index(part, open_binary) for part in parts]
        self.splits = (split,)
        """What `CountTokens` and `EncodeBlocks` take as the corpus."""
        self._items = plan_items(split, index, self.item_bytes)

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return root | 'ReadBlocks' >> ReadBlocks(self._items, self.item_bytes, self.max_line_bytes)


def _find(paths: str | Sequence[str]) -> tuple[CorpusFile, ...]:
    patterns = [paths] if isinstance(paths, str) else paths
    archives = archive_lists()
    return tuple(each.file for pattern in patterns for each in find_files(pattern, archives))
