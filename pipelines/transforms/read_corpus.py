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
from tokcore.corpus.storage.archives import ARCHIVE, archive_and_member, member_names
from tokcore.corpus.storage.compression import compression_of
from tokcore.errors import InputError


def corpus_file(stored: StoredFile) -> CorpusFile:
    """Returns a file as those read it that do not know where it is stored.

    Raises:
        InputError: it cannot be read.
    """
    is_member = archive_and_member(stored.path) and not filesystem.exists(stored.path)
    compressed = ARCHIVE if is_member else compression_of(stored.path, filesystem.open_binary)
    return CorpusFile(stored.path, stored.name, stored.size, compressed)


def find_files(pattern: str) -> list[StoredFile]:
    """Returns the files that a path or a glob names; `a.tgz!glob` those within archives.

    A member's size and time are its archive's.

    Raises:
        InputError: there are none, or an archive cannot be read.
    """
    if is_web_address(pattern):
        raise InputError(
            f'{text_without_secrets(pattern)} is on the web, and nothing is fetched unless --fetch '
            'allows it; give --fetch, or fetch the file first'
        )
    named = archive_and_member(pattern)
    if named is None or filesystem.exists(pattern):
        return filesystem.find(pattern)
    archives, members = named
    return [
        dataclasses.replace(stored, path=f'{stored.path}!{member}', name=f'{stored.name}!{member}')
        for stored in filesystem.find(archives)
        for member in member_names(corpus_file(stored), members, filesystem.open_binary)
    ]


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
        index = [
            split.format.index(each, filesystem.open_binary)
            for each in index_ranges(split, self.item_bytes)
        ]
        self.splits = (split,)
        """What `CountTokens` and `EncodeBlocks` take as the corpus."""
        self._items = plan_items(split, index, self.item_bytes)

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return root | 'ReadBlocks' >> ReadBlocks(self._items, self.item_bytes, self.max_line_bytes)


def _find(paths: str | Sequence[str]) -> tuple[CorpusFile, ...]:
    patterns = [paths] if isinstance(paths, str) else paths
    return tuple(corpus_file(each) for pattern in patterns for each in find_files(pattern))
