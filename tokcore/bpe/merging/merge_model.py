"""Symbols and merges as a model of the block engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tokcore.bpe.merging.merging_tokens import SHORT, MergeState, MergeWork, segment_by_merges
from tokcore.bpe.merging.pair_table import pair_table
from tokcore.bpe.merging.token_symbols import MOST_SYMBOLS, Units
from tokcore.bpe.merging.whole_tokens import WholeTokens, whole_tokens
from tokcore.compiled.compilation import read_only
from tokcore.encoding.model import MissedTokens
from tokcore.text.pre_tokenizer import RowPart, ScannedTokens

NO_WHOLE_TOKENS: dict[bytes, int] = {}

_SHOWN = 60  # characters of a token that an error shows


class MergeModel:
    """A `Model`: a token's symbols, of which the pair of lowest rank is merged until there is none.

    A long token takes some 50 bytes of memory for each of its own while it is segmented.
    """

    def __init__(
        self,
        merges: np.ndarray,
        units: Units,
        *,
        size: int,
        whole: dict[bytes, int] | WholeTokens = NO_WHOLE_TOKENS,
        outputs: np.ndarray | None = None,
        at_once: bool = False,
        describe: Callable[[str, int], str] | None = None,
    ):
        """Takes symbols by number.

        Args:
            merges: int64[merges, 3], left and right and what they become, by rank; of equal pairs
                the last one counts.
            units: what a token is made of.
            size: all ids are below.
            whole: the symbols of tokens that are not merged.
            outputs: int32[symbols], the id of each symbol, or `NO_ENTRY`; None: they are ids.
            at_once: all pairs of the lowest rank are merged before others are looked at.
            describe: says of a token, and which symbol of it, that there is no id for it.
        """
        self.size = size
        self._describe = describe
        left, right, new = merges.reshape(-1, 3).T.astype(np.uint64)
        ranks = np.arange(len(new), dtype=np.uint64) << np.uint64(32)
        pairs = pair_table(left, right, ranks | new)
        outputs = np.empty(0, np.int32) if outputs is None else outputs
        self.state = MergeState(
            pairs,
            units,
            whole if isinstance(whole, WholeTokens) else whole_tokens(whole),
            read_only(outputs),
            int(at_once),
        )

    def workspace(self, tokens: int) -> MergeWork:
        return _workspace(MOST_SYMBOLS * SHORT, tokens)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        nbytes = part.end - part.start
        work = _workspace(MOST_SYMBOLS * nbytes + 1, 1)
        start, end, number = (
            np.array([each], np.uint64) for each in (part.start, part.end, 0)
        )
        token = ScannedTokens(part.text, start, end, np.empty(0, np.int64))
        _, left = segment_by_merges(token, MissedTokens(number, 1, nbytes), self.state, work)
        if left:
            text = part.text[part.start : part.end].tobytes().decode('utf-8', 'replace')
            raise ValueError(self.unspelled(text, int(left)))
        yield work.ids[: int(work.id_bounds[1])]

    def unspelled(self, token: str, left: int) -> str:
        if self._describe is None:
            raise AssertionError(f'{token[:_SHOWN]!r} is a token like others')
        return self._describe(token, left - 1)


def _workspace(symbols: int, tokens: int) -> MergeWork:
    return MergeWork(
        np.empty(symbols, np.int32),
        np.empty(tokens + 1, np.uint64),
        np.empty(symbols, np.uint64),
        np.empty(symbols, np.uint32),
        np.empty(symbols, np.uint32),
        np.empty(3 * symbols, np.uint64),
        np.empty(symbols, np.uint64),
    )


def merge_numbers(merges: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """Returns merges as `MergeModel` takes them: int64[merges, 3]."""
    return np.array(merges, np.int64).reshape(-1, 3)
