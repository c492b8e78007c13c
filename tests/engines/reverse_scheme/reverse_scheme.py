"""A scheme for the tests: words between spaces, reversed, the frequent ones with ids of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverse_vocabulary import ReverseVocabulary

from tokcore.encoding.scheme import Learned, LearningOptions, Scheme
from tokcore.errors import InputError
from tokcore.options import option, positive
from tokcore.text.normalizers import T2T_LINES


@dataclass(frozen=True)
class ReverseOptions(LearningOptions):
    """What is asked of its learner."""

    rarest: int = option(
        'words that are counted less often have no id (default: 1)',
        positive,
        'N',
        default=1,
        changes_bytes=True,
    )


@dataclass(frozen=True)
class ReverseScheme(Scheme):
    """`<pad> <unk> <s> </s>` first, then words by their counts; between `<s>` and `</s>` a row."""

    name = 'reverse'
    file_suffix = 'reversed'
    options = ReverseOptions
    default_template = '<s> $A </s>'

    @property
    def normalizer(self):
        return T2T_LINES

    @property
    def pre_tokenizer(self):
        from space_pre_tokenizer import SpacePreTokenizer

        return SpacePreTokenizer()

    def learn(self, table, options: ReverseOptions, report) -> Learned:
        frequent = sorted(
            ((-count, word) for word, count in table.items() if count >= options.rarest)
        )
        words = [word[::-1] for _, word in frequent]
        return Learned(ReverseVocabulary.of(words[: max(0, options.vocab_size - 4)]))

    def parse(self, data: bytes, path: str, read=None) -> ReverseVocabulary:
        entries = tuple(data.decode().split('\n')[:-1])
        if entries[:4] != ReverseVocabulary.of(()).entries:
            raise InputError(f'{path} is not a vocabulary of the reverse scheme; give another file')
        return ReverseVocabulary(entries)

    def tokens(self, text: str) -> Iterable[str]:
        return [word for word in text.split(' ') if word]

    def vocabulary_of(self, characters: Sequence[str]) -> ReverseVocabulary:
        return ReverseVocabulary.of(sorted(set(characters)))


SCHEME = ReverseScheme()
