"""How large everything is: to be believed, or cheap enough to see that every row still works."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes that rows are made of."""

    small_vocabulary: int = 8192
    large_vocabulary: int = 32768
    chinese_vocabulary: int = 16384
    """In place of the small one where the alphabet is too large for it."""
    large_bytes: int = 2_000_000_000
    plotted_sizes: tuple[int, ...] = (31_000_000, 125_000_000, 500_000_000, 1_000_000_000)
    plotted_tokens: tuple[int, ...] = (1_000_000, 2_000_000, 4_000_000, 10_000_000)
    plotted_documents: tuple[int, ...] = (10, 25, 50, 100)
    """Each of a million characters without a blank."""
    generated_bytes: int | None = None
    """None for real corpora where there are any."""
    shuffled_tokens: tuple[tuple[int, int], ...] = ((2_000, 600), (20_000, 3_000), (100_000, 8_000))
    """Tables for the learner on Beam, each with the entries wanted."""
    wordpiece_bytes: int = 1_000_000
    """TensorFlow Text learns from so much in ten seconds or more."""
    opened_rows: int = 10_000_000
    limits_bytes: int = 256 << 20
    """A table of this size is in no cache."""
    codes_bytes: int = 2_000_000
    codes_merges: int = 4000
    """subword-nmt learns so many from so much, some 20,000 lines, in a minute."""
    long_runs: int = 3
    """Rounds of whole commands on corpora, of the builds whose ratio to each other counts, and of
    peers' rows that have no target and take long."""
    every: int = 8
    """Tensor2Tensor learns from each n-th token of the tables that would take it hours."""
    has_targets: bool = True
    column_every: int = 1
    """And from all of the two columns of pairs."""


FULL = Scale()
SMOKE = Scale(
    small_vocabulary=3000,
    large_vocabulary=4096,
    chinese_vocabulary=3500,
    large_bytes=3_000_000,
    plotted_sizes=(1_000_000, 3_000_000),
    plotted_tokens=(5_000, 10_000),
    plotted_documents=(1, 2),
    shuffled_tokens=((500, 200),),
    generated_bytes=1_000_000,
    wordpiece_bytes=50_000,
    opened_rows=10_000,
    limits_bytes=4 << 20,
    codes_bytes=50_000,
    codes_merges=200,
    long_runs=1,
    every=64,
    column_every=64,
    has_targets=False,
)
