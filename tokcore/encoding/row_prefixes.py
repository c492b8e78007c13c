"""What is put before each text of a side, so that the two are encoded as one."""

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import prepend_rows
from tokcore.text.sides import Side


def prepend(side: Side, prefix: str) -> Side:
    """Returns the rows with a prefix before each row's text."""
    if not prefix:
        return side
    text, starts, ends = prepend_rows(
        read_only(side.text),
        read_only(side.starts),
        read_only(side.ends),
        np.frombuffer(prefix.encode(), np.uint8),
    )
    return Side(read_only(text), starts, ends)
