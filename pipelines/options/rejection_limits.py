"""How many lines may be left out, as it is typed."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tokcore.errors import InputError
from tokcore.options.values import shown

_LIMIT = re.compile(r'([0-9]{1,18})|([0-9]{1,3}(?:\.[0-9]{1,6})?)%')


@dataclass(frozen=True)
class RejectionLimit:
    """A number of lines, or a share of those read."""

    typed: str
    lines: int | None = None
    share: Fraction | None = None

    def __str__(self) -> str:
        return self.typed

    def is_passed(self, rejected: int, lines: int) -> bool:
        """Tells whether so many of so many lines are too many."""
        return rejected > (self.lines if self.lines is not None else self.share * lines)

    def refuse(self, rejected: Mapping[str, int], lines: int) -> None:
        """Raises InputError if those left out, by reason, are too many of so many lines."""
        if self.is_passed(sum(rejected.values()), lines):
            raise self.error(rejected, lines)

    def error(self, reasons: Mapping[str, int], lines: int) -> InputError:
        """Returns the error of a job that has lost so many lines, by reason, of those it read."""
        by_number = sorted(reasons.items(), key=lambda each: -each[1])
        told = ', '.join(f'{count} {reason}' for reason, count in by_number)
        return InputError(
            f'{sum(reasons.values())} of {lines} lines read could not '
            f'be used ({told}), more than --max-rejected {self}; mend the files, or give more'
        )


def rejection_limit(word: str) -> RejectionLimit:
    """A number of lines, as `100`, or a share of all, as `0.5%`; a kind of option."""
    match = _LIMIT.fullmatch(word)
    if match and match[1]:
        return RejectionLimit(word, lines=int(match[1]))
    if match and Fraction(match[2]) <= 100:
        return RejectionLimit(word, share=Fraction(match[2]) / 100)
    raise argparse.ArgumentTypeError(
        f'{shown(word)} is neither a number of lines, as 100, nor a share, as 0.5%'
    )
