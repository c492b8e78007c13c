"""How much of a corpus `where` reads: a stretch of one file."""

import pytest
from jobs import succeed, write
from packed_in_parts import zstd_with_table

from pipelines import source
from pipelines.files.local import LocalFiles
from tokcore.corpus.contents import HEAD_BYTES
from tokcore.corpus.corpus import STRETCH_BYTES

MARGIN = 2 << 20
"""A line that crosses the end of the stretch, and the last piece."""


class NotedReads:
    """A stream whose reads are noted: path, start and end."""

    def __init__(self, stream, path, reads):
        self._stream, self._path, self._reads = stream, path, reads

    def read(self, size=-1, /):
        start = self._stream.tell()
        data = self._stream.read(size)
        self._reads.append((self._path, start, start + len(data)))
        return data

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stream.close()


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Two files of three stretches and a half, one of them compressed in parts."""
    folder = tmp_path_factory.mktemp('large')
    line = 'A line of this length is read with many others like it, which takes its time.'
    lines = [f'{number} {line}\t{number}\n'.encode() for number in range(320_000)]
    text = b''.join(lines)
    assert len(text) > 3.3 * STRETCH_BYTES
    write(folder / 'a.tsv', text)
    parts = [text[at : at + (1 << 20)] for at in range(0, len(text), 1 << 20)]
    write(folder / 'b.tsv.zst', zstd_with_table(parts))
    command = ('build', '--tsv', folder / 'a.tsv', folder / 'b.tsv.zst', '--scheme', 'byte')
    succeed(*command, '--name', 'x', '--shards', 2, '--output', folder / 'out')
    return folder


def test_a_row_is_found_by_reading_one_stretch(folder, monkeypatch):
    reads = []
    opened = LocalFiles.open

    def noting(self, path, *arguments):
        stream = opened(self, path, *arguments)
        return NotedReads(stream, path, reads) if path.startswith(f'{folder}/') else stream

    monkeypatch.setattr(LocalFiles, 'open', noting)
    files = set()
    for number in range(0, 640_000, 100_001):
        reads.clear()
        [row] = source(folder / 'out', 'train', [number])
        assert row.is_stored and row.texts[0].split()[0] == str(row.place.line - 1) == row.texts[1]
        own = [read for read in reads if not read[0].startswith(f'{folder}/out/')]
        [path] = {path for path, *_ in own}
        files.add(path)
        assert path == row.place.files[0].path
        if path.endswith('.zst'):
            assert sum(end - start for _, start, end in own) < 1 << 20  # of 30 MB of text
            continue
        first = row.place.byte // STRETCH_BYTES * STRETCH_BYTES
        of_rows = [
            (start, end) for _, start, end in own if end > HEAD_BYTES
        ]  # others show the type
        assert all(
            first - 1 <= start and end <= first + STRETCH_BYTES + MARGIN for start, end in of_rows
        )
        assert sum(end - start for start, end in of_rows) < STRETCH_BYTES + MARGIN
    assert len(files) == 2
