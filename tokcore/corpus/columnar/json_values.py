"""One line of JSON to the values of its fields, or to the reason why it has none."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tokcore.corpus.columnar.reasons import (
    INVALID_JSON,
    LONE_SURROGATE,
    MISSING_FIELD,
    NOT_A_STRING,
)
from tokcore.corpus.features.field_paths import FieldPath, field_path
from tokcore.corpus.features.kept_fields import FLOAT, INT, WRONG_TYPE, KeptField
from tokcore.corpus.rows import INVALID_UTF8

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Unusable:
    """Why a line is no row: the reason, and where in it its UTF-8 breaks."""

    reason: str
    place: int = 0


@dataclass(frozen=True)
class WantedFields:
    """The fields of an object: those of text, then those that go along."""

    texts: Sequence[FieldPath]
    kept: Sequence[KeptField]

    @property
    def paths(self) -> list[FieldPath]:
        return [*self.texts, *(field_path(each.field) for each in self.kept)]

    @property
    def types(self) -> list[pa.DataType]:
        numbers = {INT: pa.int64(), FLOAT: pa.float64()}
        kept = [pa.string() if each.labels else numbers.get(each.kind, pa.string()) for each in self.kept]
        return [pa.string()] * len(self.texts) + kept


def values_by_python(line: bytes, wanted: WantedFields) -> list[object] | Unusable:
    """Returns the values of one line, bytes or numbers, or why it has none: the rule for all lines."""
    try:
        found = json.loads(line.decode('utf-8').strip(' \t\r'))
    except UnicodeDecodeError as error:
        return Unusable(INVALID_UTF8, error.start)
    except (ValueError, RecursionError):
        return Unusable(INVALID_JSON)
    if not isinstance(found, dict):
        return Unusable(INVALID_JSON)
    values = []
    for number, path in enumerate(wanted.paths):
        value = found
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return Unusable(MISSING_FIELD)
            value = value[name]
        is_text = number < len(wanted.texts)
        kept = None if is_text else wanted.kept[number - len(wanted.texts)]
        value = _fitting(value, kept)
        if value is None:
            return Unusable(NOT_A_STRING if is_text else WRONG_TYPE)
        if isinstance(value, str):
            try:
                value = value.encode()
            except UnicodeEncodeError:
                return Unusable(LONE_SURROGATE)
        values.append(value)
    return values


def _fitting(value: object, kept: KeptField | None) -> object | None:
    """Returns a value as its field is to have it, or None if it does not fit."""
    if kept is None or kept.labels or kept.kind not in (INT, FLOAT):
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if kept.kind == INT:
        return value if isinstance(value, int) and _SMALLEST <= value <= _LARGEST else None
    try:
        return float(value) if math.isfinite(float(value)) else None
    except OverflowError:
        return None
