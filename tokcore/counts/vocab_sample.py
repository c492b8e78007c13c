"""The option `--vocab-sample`: a budget of text for each file, or a share of the rows.

`t2t:100MB` samples lines as Tensor2Tensor's `generate_lines_for_vocab` does with its
`file_byte_budget`; `uniform:0.1` samples a tenth of all rows, by their order keys.
"""

import argparse
import re
from dataclasses import dataclass
from fractions import Fraction

from tokcore.options import LARGEST_MEMORY, format_size, shown

_BUDGET = re.compile(
    r't2t:(?P<number>[0-9]{1,18})(?:e(?P<exponent>[0-9]{1,2})|\s*(?P<unit>B|[kMGT]i?B))?',
    re.IGNORECASE,
)
_SHARE = re.compile(r'uniform:0?\.(?P<digits>[0-9]{1,18})')


@dataclass(frozen=True)
class LineBudget:
    """Every n-th line of each file, until their text has used up a budget.

    Attributes:
        size: the budget, which Tensor2Tensor calls bytes but counts in characters. It and the size
            of a file determine which lines are sampled.
    """

    size: int


@dataclass(frozen=True)
class UniformShare:
    """A share of all rows.

    Attributes:
        share: a decimal between 0 and 1, without zeros at its end.
    """

    share: str

    @property
    def threshold(self) -> int:
        """The order key below which a row is sampled: the share of 2^64, rounded down."""
        return int(Fraction(self.share) * (1 << 64))


def vocab_sample(word: str) -> str:
    """A budget of each file, as `t2t:100MB`, or a share of rows, as `uniform:0.1`.

    A parser of an option. Returns the one spelling that manifests record: `t2t:100000000`. MB are
    millions, so that `t2t:100MB` is Tensor2Tensor's `file_byte_budget=1e8`; MiB are 2^20.
    """
    if match := _BUDGET.fullmatch(word.strip()):
        unit = (match['unit'] or '').lower().removesuffix('b')
        factor = (1024 if unit.endswith('i') else 1000) ** ' kmgt'.index(unit[:1] or ' ')
        size = int(match['number']) * factor * 10 ** int(match['exponent'] or 0)
        if not 1 <= size <= LARGEST_MEMORY:
            raise argparse.ArgumentTypeError(
                f'{shown(word)}: a budget is from 1 to {format_size(LARGEST_MEMORY)}, as t2t:100MB'
            )
        return f't2t:{size}'
    if (match := _SHARE.fullmatch(word.strip())) and match['digits'].strip('0'):
        return f'uniform:0.{match["digits"].rstrip("0")}'
    raise argparse.ArgumentTypeError(
        f'{shown(word)} is not a sample: neither a budget of each file, as t2t:100MB, nor a share of '
        'rows between 0 and 1, as uniform:0.1'
    )


def sample_from_option(value: str) -> LineBudget | UniformShare:
    """Returns the sample that a value of `vocab_sample` stands for."""
    kind, _, amount = value.partition(':')
    return LineBudget(int(amount)) if kind == 't2t' else UniformShare(amount)
