"""Parity-aware BPE: at each merge, the language whose text is the longest chooses the pair.

All merges are made in the tokens and the development texts of all languages. The next pair is the most
frequent one of the language whose development text has the most symbols.

The rule is that of Foroutan et al., "Parity-Aware Byte-Pair Encoding" (arXiv 2508.04796), the variant
`base`, as `ParityBpeTrainer` of tokenizers 0.23.3 has it.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from tokcore.bpe.options import BpeRules
from tokcore.bpe.trainer import LearnedMerges, Learning, Trainer, symbols_of_bytes
from tokcore.counts.token_table import TokenTable
from tokcore.options import LARGEST_INT64

_PAUSE = 1 << 10
"""Merges between calls of `on_merges`."""


def learn_parity_merges(
    tables: Sequence[TokenTable],
    dev_tables: Sequence[TokenTable],
    rules: BpeRules,
    on_merges: Callable[[int], None] | None = None,
) -> LearnedMerges:
    """Learns merges from the tokens of several languages, fairly by their development texts.

    Of languages whose texts have equally many symbols, the first one chooses; of pairs that are
    equally frequent in it, the one whose left string is the largest in the byte-level alphabet, then the
    right string. A language that has no pair of `rules.min_count` any more never chooses again.

    Args:
        tables: distinct tokens to learn from and their counts, of each language.
        dev_tables: those of the development texts, in the same order.
        rules: of words of bytes; `ties` is not used.
        on_merges: is called with the number of merges so far.

    Returns:
        the merges, with the counts that the language which chose a pair has of it.

    Raises:
        OverflowError, InputError: as `learn_merges`.
    """
    # Ties are decided by strings of the byte-level alphabet, in which a blank is larger than a letter.
    first = symbols_of_bytes(rules)
    strings = (
        entry.encode() if string else b'' for entry, string in zip(first.entries, first.strings)
    )
    first = dataclasses.replace(first, strings=tuple(strings))
    learning = Learning(first, dataclasses.replace(rules, ties='largest-pair', byte_level=False))
    most = LARGEST_INT64 if rules.merges is None else rules.merges
    most_symbols = LARGEST_INT64 if rules.vocab_size is None else rules.vocab_size
    training, development = (
        [Trainer(first.words(table), learning, 1, most) for table in each]
        for each in (tables, dev_tables)
    )
    for trainer in (*training, *development):
        trainer.list_all()
    lengths = [int(table.counts @ np.diff(table.offsets)) for table in dev_tables]
    choosing = [*range(len(lengths))]
    pairs: list[int] = []
    counts: list[int] = []
    while choosing and len(pairs) < most and training[0].size < most_symbols:
        language = max(choosing, key=lengths.__getitem__)  # the first one of several
        pair, count = training[language].most_frequent()
        if count < learning.min_count:
            choosing.remove(language)
            continue
        for trainer in training:
            trainer.merge(pair)
        for index, trainer in enumerate(development):
            lengths[index] -= trainer.merge(pair)
        pairs.append(pair)
        counts.append(count)
        if on_merges is not None and len(pairs) % _PAUSE == 0:
            on_merges(len(pairs))
    learning.strings += training[0].added
    learning.pairs, learning.counts = np.array(pairs, np.int64), np.array(counts, np.int64)
    return learning.learned()
