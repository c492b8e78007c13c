"""The script of each character, as SentencePiece 0.2.3 has it: a table of its own, of no current Unicode.

`scripts.json` has the ranges of code points of each script. Hiragana, Katakana and U+30FC are among those of
Han, since the trainer counts them so. All other characters are Common, digits among them.
"""

import functools
import json
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
    scripts = json.loads(pathlib.Path(__file__).with_name('scripts.json').read_bytes())
    for number, (name, ranges) in enumerate(scripts.items(), COMMON + 1):
        for each in ranges.split():
            first, _, last = each.partition('-')
            script = INHERITED if name == 'Inherited' else number
            table[int(first, 16) : int(last or first, 16) + 1] = script
    return read_only(table)
