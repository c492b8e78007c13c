"""Special tokens as options: one more, or a list in place of a scheme's own."""

import argparse
from collections.abc import Iterable, Sequence

from tokcore.options.values import shown, text


def special_token(value: str) -> str:
    """A token of a vocabulary file: a line of it, without white space."""
    if text(value).split() != [value]:
        raise argparse.ArgumentTypeError(f'{shown(value)} is empty or has white space in it')
    return value


def special_tokens(value: str) -> tuple[str, ...]:
    """Several tokens with commas between them, all different; none if there is nothing."""
    tokens = tuple(map(special_token, value.split(','))) if value else ()
    if len(set(tokens)) != len(tokens):
        raise argparse.ArgumentTypeError(f'{shown(value)} names a token twice')
    return tokens


def with_added(
    given: Sequence[str] | None, own: Sequence[str], added: Iterable[str]
) -> tuple[str, ...]:
    """Returns a scheme's own tokens, or those given in their place, and those added, each once."""
    return tuple(dict.fromkeys([*(own if given is None else given), *added]))
