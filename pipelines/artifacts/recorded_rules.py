"""The rules for tokens in the JSON of manifests, and what it means if there are none.

Version 0.1.0 at 6b30307 recorded none: it knew one scheme, so what it made is that scheme's.
"""

from collections.abc import Mapping

from tokcore.encoding.token_rules import Component, TokenRules
from tokcore.schemes import DEFAULT_SCHEME, find_scheme

_FIELDS = ('normalizer', 'pre_tokenizer')


def earlier_rules() -> TokenRules:
    """Returns the rules of what this tool made before it recorded any."""
    return find_scheme(DEFAULT_SCHEME).rules


def put_rules(fields: dict[str, object]) -> None:
    """Replaces `rules` by `normalizer` and `pre_tokenizer` for JSON; by nothing if it is None."""
    rules = fields.pop('rules')
    if rules is not None:
        fields |= {name: rules[name] for name in _FIELDS}


def take_rules(fields: Mapping[str, object]) -> dict[str, object]:
    """Returns fields of JSON with `rules` again in place of the two; None where there are none.

    Raises:
        TypeError, KeyError: they are no such records.
    """
    fields = dict(fields)
    found = [fields.pop(name, None) for name in _FIELDS]
    rules = None if found == [None, None] else TokenRules(*map(Component.from_record, found))
    return {**fields, 'rules': rules}
