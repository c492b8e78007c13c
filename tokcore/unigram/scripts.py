"""The script of each character, as SentencePiece 0.2.3 has it: a table of its own, of no current Unicode.

`scripts.txt` has a line for each script, with its ranges of code points. Hiragana, Katakana and U+30FC are
in the line of Han, since the trainer counts them so. All other characters are Common, digits among them.
"""

import functools
import pathlib

import numpy as np

from tokcore.kernels.jit import read_only
from tokcore.text.unicode import CODE_POINTS

COMMON = 1

INHERITED = 255
"""Such a character has the script of the one before it."""


@functools.cache
def script_table() -> np.ndarray:
    """Returns the number of the script of each code point: uint8[0x110000], read-only."""
    table = np.full(CODE_POINTS, COMMON, np.uint8)
    lines = pathlib.Path(__file__).with_name('scripts.txt').read_text('ascii').splitlines()
    for number, line in enumerate(lines, COMMON + 1):
        name, *ranges = line.split()
        for each in ranges:
            first, _, last = each.partition('-')
            number_of = INHERITED if name == 'Inherited' else number
            table[int(first, 16) : int(last or first, 16) + 1] = number_of
    return read_only(table)
