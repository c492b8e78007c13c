"""Which tokens a line has: the normalizer and the pre-tokenizer, as files record them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tokcore.errors import InputError

NORMALIZER_KEY = 'tokbeam.normalizer'
PRE_TOKENIZER_KEY = 'tokbeam.pre_tokenizer'
"""Where a count file's Parquet schema records them, as JSON."""


@dataclass(frozen=True)
class Component:
    """A part of a scheme as records name it: which one, and what was asked of it."""

    name: str
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return f'{self.name} {json.dumps(self.options, sort_keys=True)}' if self.options else self.name

    def to_record(self) -> dict[str, object]:
        """Returns what JSON holds of it."""
        return {'name': self.name, 'options': dict(self.options)}

    @classmethod
    def from_record(cls, record: object) -> Component:
        """Raises TypeError or KeyError for what `to_record` cannot have given."""
        if not isinstance(record, dict):
            raise TypeError('a normalizer or pre-tokenizer is no JSON object')
        name, options = record['name'], record['options']
        if not isinstance(name, str) or not isinstance(options, dict):
            raise TypeError('a normalizer or pre-tokenizer has no name or options')
        return cls(name, options)


@dataclass(frozen=True)
class TokenRules:
    """All that the tokens of a line depend on."""

    normalizer: Component
    pre_tokenizer: Component

    def __str__(self) -> str:
        return f'normalizer {self.normalizer} and pre-tokenizer {self.pre_tokenizer}'

    def metadata(self) -> dict[str, str]:
        """Returns what a count file's Parquet schema says of them."""
        return {
            NORMALIZER_KEY: json.dumps(self.normalizer.to_record(), sort_keys=True),
            PRE_TOKENIZER_KEY: json.dumps(self.pre_tokenizer.to_record(), sort_keys=True),
        }

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, str]) -> TokenRules | None:
        """Returns the rules of a count file's schema, None if it records none.

        Raises:
            ValueError, TypeError, KeyError: what is there is no such record.
        """
        found = [metadata.get(key) for key in (NORMALIZER_KEY, PRE_TOKENIZER_KEY)]
        if found == [None, None]:
            return None
        return cls(*(Component.from_record(json.loads(each or 'null')) for each in found))


def check_rules(recorded: TokenRules | None, wanted: TokenRules, what: str) -> None:
    """Holds rules that a file records against those that are asked for; None records none.

    Raises:
        InputError: its tokens were found by other rules; both are named.
    """
    if recorded is not None and recorded != wanted:
        raise InputError(
            f'{what} was made with {recorded}, but {wanted} are asked for; count the text again, or '
            'give the --scheme that it was made for'
        )
