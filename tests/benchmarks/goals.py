"""The geometric means over corpora that are aimed for; rows carry what no corpus may be under."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .comparing import RowResult

MEANS = {
    ('search', 'Tensor2Tensor'): 150,
    ('count', 're.findall + Counter'): 12,
    ('learn', 'gigabpe'): 0.95,
    ('learn', 'SentencePiece BPE'): 6,
    ('learn', 'tokenizers BPE'): 15,
    ('ids', 'nanotoken'): 1.5,
    ('ids', 'gigatoken'): 1.5,
    ('ids', 'SentencePiece BPE'): 8,
    ('ids', 'tokenizers BPE'): 25,
    ('ids', 'tokenizers WordPiece'): 25,
    ('records', 'Tensor2Tensor'): 60,
    ('wordpiece-ids', 'nanotoken'): 1.5,
    ('wordpiece-ids', 'tokenizers WordPiece'): 40,
    ('merges', 'gigabpe'): 1.0,
    ('merges', 'rustbpe'): 5,
    ('merges', 'tokenizers BPE'): 10,
    ('bpe-ids', 'gigatoken'): 1.2,
    ('bpe-ids', 'tokenizers BPE'): 20,
    ('bpe-ids', 'tiktoken'): 5,
    ('model-ids', 'gigatoken'): 0.95,
    ('model-ids', 'tokenizers 1.0'): 1,
    ('model-ids', 'tiktoken'): 1,
    ('unigram-ids', 'SentencePiece Unigram'): 5,
}
"""By group of rows and peer; over the rows that have a target for that peer."""


@dataclass(frozen=True)
class MeanRatio:
    """A peer's ratios over the corpora of a group, against what is aimed for."""

    group: str
    peer: str
    mean: float
    least: float
    rows: int
    target: float

    @property
    def reached(self) -> bool:
        return self.mean >= self.target


def mean_ratios(results: Sequence[RowResult]) -> list[MeanRatio]:
    """Returns the means of all groups that have a ratio, in the order of `MEANS`."""
    means = []
    for (group, peer), target in MEANS.items():
        ratios = [
            comparison.ratio
            for result in results
            for comparison in result.comparisons
            if result.row.group == group
            and comparison.peer is not None
            and comparison.peer.label == peer
            and comparison.target is not None
            and comparison.ratio is not None
        ]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            means.append(MeanRatio(group, peer, mean, min(ratios), len(ratios), target))
    return means
