"""What a model is: it gives the ids of tokens.

Any number of ids may stand for a token, one for all of it too: a vocabulary of whole words gives a
word's id, or the unknown one's. Ids are told by the token's bytes alone and without regard to its
neighbours, for those of short tokens are kept in the token cache.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from tokcore.compiled.kernel_families import kernel_family
from tokcore.text.pre_tokenizer import RowPart

NO_ROOM = -1


class MissedTokens(NamedTuple):
    """Tokens that the cache did not have: numbers[:count], of so many bytes in all."""

    numbers: np.ndarray  # uint64
    count: int
    nbytes: int


@kernel_family('model')
def segment_tokens(tokens, missed, model, work):
    """Segments the `MissedTokens` among the `ScannedTokens`; see `Model.workspace` for how many.

    Puts the ids of the m-th of them into work.ids, from work.id_bounds[m] up to id_bounds[m + 1].
    Returns (number, left). Where one cannot be spelt, `number` says which of the missed and `left`,
    as the model counts, how much of it; otherwise `left` is 0, or `NO_ROOM` if `work` is too small.
    """


@kernel_family('model')
def larger_workspace(missed, model, work):
    """Returns a workspace of the type of `work` that has room to segment these `MissedTokens`."""


class Model(Protocol):
    """Gives the ids of tokens. Threads share it, and what kernels write is not kept in it."""

    @property
    def size(self) -> int:
        """All ids are below."""

    @property
    def state(self) -> NamedTuple:
        """What is read only, of the type that selects the body of `segment_tokens`."""

    def workspace(self, tokens: int) -> NamedTuple:
        """Returns arrays that a body writes, to segment so many tokens at once.

        Among them are `ids` (int32, of any size) and `id_bounds` (uint64[tokens + 1]).
        """

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        """Yields the ids (integers) of a long token, as many as come at once.

        Raises ValueError with a sentence, as `unspelled`, if it cannot be spelt.
        """

    def unspelled(self, token: str, left: int) -> str:
        """Returns a sentence about a token that cannot be spelt, `left` as of `segment_tokens`."""
