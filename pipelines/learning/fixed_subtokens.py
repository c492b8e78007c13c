"""What every vocabulary of a search has, whatever its min-count: reserved tokens and alphabet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokcore.subword.learner import RESERVED_TOKENS
from tokcore.text.escaping import alphabet_of, escape_token


@dataclass(frozen=True)
class FixedSubtokens:
    """The subtokens that a learner need not learn."""

    reserved: tuple[str, ...]  # escaped, in the order of their ids
    alphabet: str  # every character of all tokens, and of escaping, ascending

    @classmethod
    def of(cls, reserved_tokens: Sequence[str], characters: Iterable[str]) -> 'FixedSubtokens':
        """Returns those of a learner.

        Args:
            reserved_tokens: those beyond `RESERVED_TOKENS`.
            characters: those of the tokens to learn from.
        """
        reserved = RESERVED_TOKENS + tuple(reserved_tokens)
        alphabet = alphabet_of([*reserved, *characters])
        escaped = tuple(escape_token(token, alphabet) for token in reserved)
        return cls(escaped, ''.join(sorted(alphabet)))

    def __len__(self) -> int:
        return len(self.reserved) + len(self.alphabet)
