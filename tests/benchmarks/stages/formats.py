"""A file in one of the corpus formats to token counts: read, given as rows, counted."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq

from tokcore.corpus.corpus import (
    BLOCK_BYTES,
    ITEM_BYTES,
    MAX_LINE_BYTES,
    CorpusFile,
    Split,
    WorkItem,
)
from tokcore.corpus.formats import (
    CorpusFormat,
    block_rows,
    corpus_format,
    format_reader,
    index_ranges,
    plan_items,
    read_blocks,
)
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.t2t import T2TPreTokenizer

from ..outcome import Outcome, Ready
from .blocks import get_ready, map_blocks
from .counting import counts_digest

FORMATS: dict[str, Callable[[], CorpusFormat]] = {
    'text': lambda: corpus_format('text')(),
    'tsv': lambda: corpus_format('tsv')((1,)),
    'jsonl': lambda: corpus_format('jsonl')(('text',)),
    'parquet': lambda: corpus_format('parquet')(('text',)),
    'tmx': lambda: corpus_format('tmx')(('en',)),
}

_ROWS_OF_GROUP = 20_000

_NO_XML = re.compile('[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')
_HEADS = {'tmx': '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><body>\n'}
_ENDS = {'tmx': '</body></tmx>\n'}


def write_as(kind: str, lines: Path, path: Path) -> None:
    """Writes lines as a file of a format, with a number for each beside the text."""
    with open(lines, encoding='utf-8', newline='\n') as texts:
        rows = enumerate(text.rstrip('\n').replace('\t', ' ') for text in texts)
        if kind == 'parquet':
            _write_parquet(rows, path)
            return
        with open(path, 'w', encoding='utf-8', newline='\n') as file:
            file.write(_HEADS.get(kind, ''))
            for number, text in rows:
                file.write(_line(kind, number, text))
            file.write(_ENDS.get(kind, ''))


def _line(kind: str, number: int, text: str) -> str:
    if kind == 'jsonl':
        return json.dumps({'id': number, 'text': text}, ensure_ascii=False) + '\n'
    if kind == 'tmx':
        clean = _NO_XML.sub(' ', escape(text))
        variants = f'<tuv xml:lang="fr"><seg>{number}</seg></tuv><tuv xml:lang="en-GB"><seg>{clean}</seg></tuv>'
        return f'  <tu tuid="{number}">\n    <prop type="x">y</prop>\n    {variants}\n  </tu>\n'
    return f'{number}\t{text}\n' if kind == 'tsv' else f'{text}\n'


def _write_parquet(rows: Iterator[tuple[int, str]], path: Path) -> None:
    schema = pa.schema([('id', pa.int64()), ('text', pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        while group := [row for _, row in zip(range(_ROWS_OF_GROUP), rows, strict=False)]:
            columns = [list(column) for column in zip(*group, strict=True)]
            writer.write_table(pa.table(columns, schema))


def count(ready: Ready, *, kind: str, path: str, threads: int) -> Outcome:
    """Counts a file by work items, each of which a thread reads and counts as a whole."""
    get_ready()
    made = FORMATS[kind]()
    file = CorpusFile(path, path, Path(path).stat().st_size, False)
    split = Split('train', made, ((file,),))
    index = [format_reader(made).index(each, _open) for each in index_ranges(split, ITEM_BYTES)]
    items = plan_items(split, index, ITEM_BYTES)
    first = TokenAccumulator()
    sums = [first, *(TokenAccumulator(first.index) for _ in range(threads - 1))]
    _count_items((first, items[:1]))
    first.finish([])
    ready()
    started = time.perf_counter()
    first = TokenAccumulator()
    sums = [first, *(TokenAccumulator(first.index) for _ in range(threads - 1))]
    shares = [(each, items[part::threads]) for part, each in enumerate(sums)]
    for _ in map_blocks(_count_items, shares, threads):
        pass
    table = TokenTable(*first.finish(sums[1:]))
    seconds = time.perf_counter() - started
    facts = {'digest': counts_digest(table), 'tokens': table.total, 'distinct': len(table)}
    return Outcome(seconds, facts)


def _count_items(share: tuple[TokenAccumulator, list[WorkItem]]) -> None:
    sums, items = share
    for item in items:
        for block in read_blocks(item, _open, BLOCK_BYTES, MAX_LINE_BYTES):
            (side,) = block_rows(block, T2T_LINES).sides
            sums.add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())


def _open(path: str):
    return open(path, 'rb')
