"""Which pair is merged next, and when it ends: what the originals do differently."""

from dataclasses import dataclass
from typing import Literal

Ties = Literal['smallest-ids', 'largest-pair', 'first']


@dataclass(frozen=True)
class BpeRules:
    """How merges are learned.

    Attributes:
        ties: which of the pairs of largest count. `smallest-ids`: of the smallest ids, first the
            left ones compared (Hugging Face); `largest-pair`: the largest as strings, by code
            points, first the left ones compared (subword-nmt); `first`: that occurs first, words
            scanned in order and each from left to right (the textbook).
        byte_level: whether words begin as bytes, all 256 of which have an id; else as characters,
            those that occur.
        end_of_word: is appended to the last character of each word.
        min_count: pairs that occur less are not merged; nor are those that do not occur.
        max_piece_length: pieces stay shorter than so many bytes or characters, but for those of
            two (the `max_token_length` of tokenizers).
        limit_alphabet: so many characters stay, those of most occurrences and among equals of
            smallest code points, and special tokens too; the others are taken out of words. Not
            for bytes.
        special_tokens: have the first ids. A piece that is one has its id.
        merges: ends it, as the next two do.
        vocab_size: ids in all; those of special tokens, characters and bytes are there whatever it
            is.
        total_symbols: takes characters within words and at ends of words off `merges`, counted as
            subword-nmt does.
    """

    ties: Ties = 'smallest-ids'
    byte_level: bool = True
    end_of_word: str = ''
    min_count: int = 1
    max_piece_length: int | None = None
    limit_alphabet: int | None = None
    special_tokens: tuple[str, ...] = ()
    merges: int | None = None
    vocab_size: int | None = None
    total_symbols: bool = False
