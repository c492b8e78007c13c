"""Compiling the kernels of samples of lines at once, before workers start."""

import io

from tokcore.corpus.dataset import Block, BlockText, CorpusFile, Split, WorkItem
from tokcore.corpus.formats.lines import Lines
from tokcore.corpus.sampling.line_numbers import numbered_blocks
from tokcore.corpus.sampling.sampled_rows import LineSample
from tokcore.corpus.sampling.taken_lines import sample_file
from tokcore.text.t2t_lines import T2T_LINES

_TEXT = 'one Ä\r\ntwo\n'.encode()


def compile_sampling_kernels() -> None:
    """Samples a file of two lines, and takes them from its only block."""
    file = CorpusFile('warm-up', 'warm-up', len(_TEXT), compressed=False)
    found = sample_file(file, len(_TEXT), lambda path: io.BytesIO(_TEXT), len(_TEXT))
    split = Split('train', Lines(), ((file,),))
    item = WorkItem(split.name, split.format, 0, (), first_line=0)
    blocks = iter([Block(split.name, split.format, 0, (BlockText(0, _TEXT),))])
    sample = LineSample({(0, 0): found.taken})
    for block in numbered_blocks(item, blocks):
        sample.rows(block, (split,), T2T_LINES, frozenset({0}))
