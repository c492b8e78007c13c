"""A tokenizer from a file of another tool: normalizer, pre-tokenizer, model, template and decoder."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary, EntriesWithAddedTokens, Spelling
from tokcore.encoding.vocabulary import NO_TEMPLATE, SpecialIds, Template, special_ids_by_name

if typing.TYPE_CHECKING:
    from tokcore.encoding.kernels import Model
    from tokcore.foreign_tokenizers.normalizers import TextStep
    from tokcore.foreign_tokenizers.pre_tokenizers import Cutting
    from tokcore.text.rows import Side

JoinTokens = Callable[[list[str]], list[str]]
"""A step of a decoder: makes other strings of the strings of tokens."""


@dataclass(frozen=True)
class PretrainedVocabulary(EntriesWithAddedTokens):
    """A `Vocabulary` with all that its file says of text.

    Attributes:
        data: the file, which `dump` returns.
        entries: ids by entry, as the file spells them.
        added: the added tokens.
        make_model: makes the model.
        steps: the normalizer.
        cutting: what the pre-tokenizers do.
        decoder: what makes text of tokens; None: the bytes of byte-level entries are joined.
        template: the ids around a row.
        unk_token: the entry for what has none.
        joiner: what entries begin with that do not begin a word.
        suffix: what entries end with that end a word.
        trims: for each post-processor that trims offsets, whether a space was added to the text.
        is_sentencepiece: whether offsets are as SentencePiece has them.
        joins_surrogates: whether surrogates in strings are joined, as tiktoken does, or refused.
        normalizes_added: whether `normalized` added tokens are looked for in their normalized form.
        path: of the file.
        pattern: what the file was read with.
    """

    data: bytes
    entries: Mapping[str, int]
    added: tuple[AddedToken, ...]
    make_model: Callable[[], Model]
    cutting: Cutting
    steps: tuple[TextStep, ...] = ()
    decoder: tuple[JoinTokens, ...] | None = None
    template: Template = NO_TEMPLATE
    unk_token: str | None = None
    joiner: str = ''
    suffix: str = ''
    trims: tuple[bool, ...] = ()
    is_sentencepiece: bool = False
    joins_surrogates: bool = False
    normalizes_added: bool = True
    path: str = ''
    pattern: str | None = None

    @functools.cached_property
    def model(self) -> Model:
        return self.make_model()

    @property
    def spelling(self) -> Spelling:
        mark = self.cutting.spaces.strip(' ') or '▁'
        return Spelling(self.cutting.byte_level, mark, self.joiner, self.suffix)

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        # Only special tokens have a role by name.
        named = {token.content: token.id for token in self.added if token.special}
        ids = special_ids_by_name(named.get)
        unknown = None if self.unk_token is None else self.entries.get(self.unk_token)
        return ids if unknown is None else ids._replace(unknown=unknown)

    @property
    def has_unlisted_ids(self) -> bool:
        """Whether the model has special tokens that its file, of ranks, does not list."""
        return self.pattern is not None

    @functools.cached_property
    def _byte_level(self) -> BpeVocabulary:
        return BpeVocabulary(self.entries, (), self.added)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids; ids out of range have none."""
        if self.decoder is None:
            return self._byte_level.decode_bytes(ids)
        return self.decode(ids).encode('utf-8', 'surrogatepass')

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, with U+FFFD for invalid UTF-8."""
        if self.decoder is None:
            return self._byte_level.decode(ids)
        pieces = self.pieces
        tokens = [pieces[id_] for id_ in ids if 0 <= id_ < len(pieces)]
        for step in self.decoder:
            tokens = step(tokens)
        return ''.join(tokens)

    def normalized(self, side: Side) -> Side:
        """Returns rows as the normalizer makes them."""
        for step in self.steps:
            side = step.rewrite(side)
        return side

    def dump(self) -> bytes:
        """Returns the file."""
        return self.data
