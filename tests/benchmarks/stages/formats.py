"""A file in one of the corpus formats to token counts."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
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
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.t2t import T2TPreTokenizer

from ..outcome import Outcome, Ready, timed
from .blocks import get_ready
from .counting import count_shares, counts_facts

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
    """Writes lines as a file of a format, each with its number if the format has fields."""
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
    """Counts a file by work items; a thread reads and counts an item as a whole."""
    get_ready()
    source = FORMATS[kind]()
    file = CorpusFile(path, path, Path(path).stat().st_size, False)
    split = Split('train', source, ((file,),))
    reader = format_reader(source)
    index = [reader.index(each, _open) for each in index_ranges(split, ITEM_BYTES)]
    items = plan_items(split, index, ITEM_BYTES)
    count_shares(items[:1], 1, _add_items)
    table, seconds = timed(ready, lambda: count_shares(items, threads, _add_items))
    return Outcome(seconds, counts_facts(table))


def _add_items(sums: TokenAccumulator, items: Sequence[WorkItem]) -> None:
    for item in items:
        for block in read_blocks(item, _open, BLOCK_BYTES, MAX_LINE_BYTES):
            (side,) = block_rows(block, T2T_LINES).sides
            sums.add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())


def _open(path: str):
    return open(path, 'rb')
