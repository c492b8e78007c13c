"""Unicode properties as arrays over all code points, for kernels that look characters up.

They come from this Python's `unicodedata`, so they differ between Python versions; what is made
with them records `UNICODE_VERSION`.
"""

import functools
import unicodedata

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.errors import InputError

UNICODE_VERSION: str = unicodedata.unidata_version


def check_unicode(version: str | None, what: str, here: str = 'this Python') -> None:
    """Refuses what was made with the Unicode tables of another Python.

    Which characters are letters differs between Python versions, so tokens would be cut in another
    way. None, nothing being recorded, passes.

    Raises:
        InputError: the versions differ.
    """
    if version is not None and version != UNICODE_VERSION:
        raise InputError(
            f'{what} has Unicode {version} but {here} has {UNICODE_VERSION}; use the Python '
            'version that it was made with, or make it again'
        )


CODE_POINTS = 0x110000



@functools.cache
def category_table() -> np.ndarray:
    """Returns uint8[0x110000, 2]: the two letters of each code point's general category."""
    letters = ''.join(map(unicodedata.category, map(chr, range(CODE_POINTS))))
    return read_only(np.frombuffer(letters.encode('ascii'), np.uint8).reshape(CODE_POINTS, 2))


@functools.cache
def alphanumeric_table() -> np.ndarray:
    """Returns uint8[0x110000], 1 for letters and numbers (categories L* and N*), 0 for the rest.

    This is Tensor2Tensor's `_ALPHANUMERIC_CHAR_SET`: combining marks (M*) are not in it.
    """
    major = category_table()[:, 0]
    return read_only(((major == ord('L')) | (major == ord('N'))).astype(np.uint8))


@functools.cache
def whitespace_table() -> np.ndarray:
    """Returns uint8[0x110000], 1 for what `str.strip` strips, 0 for the rest."""
    letters = category_table()
    # All whitespace is a separator or a control character, and these are few.
    control = (letters[:, 0] == ord('C')) & (letters[:, 1] == ord('c'))
    table = np.zeros(CODE_POINTS, np.uint8)
    for code_point in np.flatnonzero((letters[:, 0] == ord('Z')) | control).tolist():
        table[code_point] = chr(code_point).isspace()
    return read_only(table)
