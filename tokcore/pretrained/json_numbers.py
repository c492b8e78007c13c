"""Numbers of a JSON file as `tokenizers` reads them.

Its JSON reader (serde_json, without the feature `float_roundtrip`) multiplies or divides the digits
by a power of ten, both in double precision. So a number of more than 15 digits may differ in its last
bit from the nearest one, and with it which of two ways to cut a text has the larger score.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r'(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?')
_LARGEST_DIGITS = (1 << 64) - 1
_LARGEST_POWER = 308


def rust_float(text: str) -> float:
    """Returns the number that is written so, as `json.loads` takes it for `parse_float`."""
    match = _NUMBER.fullmatch(text)
    if match is None:  # NaN and infinities are no JSON
        return float(text)
    sign, whole, fraction, exponent = match.groups()
    fraction = fraction or ''
    digits, power = int(whole + fraction), int(exponent or 0) - len(fraction)
    while digits > _LARGEST_DIGITS and power < int(exponent or 0):
        # Digits after the point that do not fit are left out.
        digits //= 10
        power += 1
    if digits > _LARGEST_DIGITS:
        return float(text)
    value = float(digits)
    while value and power < -_LARGEST_POWER:
        value /= 1e308
        power += _LARGEST_POWER
    if value and power < 0:
        value /= float(f'1e{-power}')
    elif value:
        value *= float(f'1e{power}')
    return -value if sign else value
