"""JSON files of vocabularies: parsed once while it is found out what they are.

Their numbers are those that `tokenizers` reads. Its JSON reader (serde_json, without the feature
`float_roundtrip`) multiplies or divides the digits by a power of ten, both in double precision. So a
number of more than 15 digits may differ in its last bit from the nearest one, and with it which of
two ways to cut a text has the larger score.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from tokcore.bpe.parsed_files import parsed_file
from tokcore.encoding.vocabulary import without_mark
from tokcore.errors import InputError

_NUMBER = re.compile(r'(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?')
_LARGEST_DIGITS = (1 << 64) - 1
_LARGEST_POWER = 308


def read_json(data: bytes, path: str) -> dict[str, Any]:
    """Returns the object of a JSON file, which is not to be changed.

    Of a file that was parsed before (`parsed_file`), its entries and merges are left out.

    Raises:
        InputError: it is not a JSON object.
    """
    try:
        value = _parsed(without_mark(data))
    except (ValueError, RecursionError) as error:
        raise InputError(f'{path} is not JSON ({error}); give a tokenizer.json') from None
    if not isinstance(value, dict):
        raise InputError(f'{path} is not a JSON object; give a tokenizer.json')
    return value


def json_object(data: bytes) -> dict[str, Any] | None:
    """Returns the same; None if the file is not a JSON object."""
    data = without_mark(data)
    if data.lstrip()[:1] != b'{':
        return None
    try:
        return _parsed(data)
    except (ValueError, RecursionError):
        return None


def forget_json() -> None:
    """Frees the object that was parsed last, when its vocabulary has been made."""
    _parsed.cache_clear()


def rest_of_tokenizer(file: Mapping[str, Any]) -> bytes:
    """Returns a tokenizer.json of BPE without its entries and merges."""
    return json.dumps({**file, 'model': {**file['model'], 'vocab': {}, 'merges': []}}).encode()


# Several schemes look at a file before one makes its vocabulary, and it may have 40 MB.
@functools.lru_cache(maxsize=1)
def _parsed(data: bytes) -> Any:
    parsed = parsed_file(data)
    if parsed is not None:
        return json.loads(parsed.rest)
    return json.loads(data, parse_float=rust_float)


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
