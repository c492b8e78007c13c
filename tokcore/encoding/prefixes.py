"""Special tokens in prefixes: each of them gets its id, in every scheme.

A prefix is cut at its special tokens: at the leftmost, and of several at one offset at the longest. The
text between two of them is encoded by itself, and the text after the last one together with the row:

    '<web>to <2zh> '  ─▶  the id of <web>, the ids of 'to ', the id of <2zh>, the ids of ' ' + the row

A prefix without special tokens and the row are one text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tokcore.encoding.encoder import EncodedSide, Encoder, side_of_text
from tokcore.encoding.kernels import Model
from tokcore.text.pre_tokenizer import PreTokenizer
from tokcore.text.rows import Side


class PrefixEncoder:
    """An `Encoder` that finds special tokens in prefixes; another one encodes all text."""

    def __init__(self, encoder: Encoder, special_tokens: Callable[[str], Mapping[str, int]]):
        """Takes the encoder of text, and what returns the special tokens of a prefix with their ids."""
        self._encoder = encoder
        self._special_tokens = special_tokens
        self._cut: dict[str, tuple[tuple[int, ...], str]] = {}

    @property
    def parts(self) -> tuple[PreTokenizer, Model]:
        """As of `RowEncoder`."""
        return self._encoder.parts

    def encode_side(
        self,
        side: Side,
        prefix: str = '',
        before: Sequence[int] = (),
        after: Sequence[int] = (),
    ) -> EncodedSide:
        """Returns the ids of each row, as `RowEncoder.encode_side` does."""
        if prefix not in self._cut:
            self._cut[prefix] = self._cut_prefix(prefix)
        ids, text = self._cut[prefix]
        return self._encoder.encode_side(side, text, (*before, *ids), after)

    def _cut_prefix(self, prefix: str) -> tuple[tuple[int, ...], str]:
        """Returns the ids of a prefix up to its last special token, and the text after that."""
        tokens = self._special_tokens(prefix) if prefix else {}
        if not tokens:
            return (), prefix
        # `re` takes the first alternative that matches.
        longest_first = sorted(tokens, key=len, reverse=True)
        ids: list[int] = []
        end = 0
        for match in re.finditer('|'.join(map(re.escape, longest_first)), prefix):
            between = side_of_text(prefix[end : match.start()])
            ids += [*self._encoder.encode_side(between).ids.tolist(), tokens[match[0]]]
            end = match.end()
        return tuple(ids), prefix[end:]
