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


class MissedTokens(NamedTuple):
    """Tokens that the cache did not have: numbers[:count], of so many bytes in all."""

    numbers: np.ndarray  # uint64
    count: int
    nbytes: int


@kernel_family('model')
def segment_tokens(tokens, missed, model, work):
    """Segments the `MissedTokens` among the `ScannedTokens`; see `Model.workspace` for how many.

    Returns (work, missed, left). `work`, as given or with larger arrays, has the ids of the m-th of
    them in ids[id_bounds[m]:id_bounds[m + 1]]. Where one cannot be spelt, `missed` says which and
    `left`, as the model counts, how much of it; otherwise `left` is 0. A body is a `kernel`, since
    it makes room, and one call segments some hundred tokens.
    """


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
