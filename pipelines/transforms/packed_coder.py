"""Values that cross Beam as their own bytes."""

from typing import Any

import apache_beam as beam


class PackedCoder(beam.coders.Coder):
    """For a type with `to_bytes` and `from_bytes`, which equal values give the same bytes."""

    packed: type
    """The type, set by subclasses: Beam makes coders of classes."""

    def encode(self, value: Any) -> bytes:
        return value.to_bytes()

    def decode(self, encoded: bytes) -> Any:
        return self.packed.from_bytes(encoded)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return self.packed
