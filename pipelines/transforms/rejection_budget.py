"""How many lines may be left out: a job that loses more ends as soon as that is sure."""

import collections
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pipelines.options.rejection_limits import RejectionLimit
from tokcore.corpus.block_stats import LineTally
from tokcore.corpus.range_checksums import RangeChecksum


class ReadStats(Protocol):
    """What is known of a block, or of several."""

    tally: LineTally
    receipts: Sequence[RangeChecksum]


@dataclass
class _Spent:
    reasons: collections.Counter[str] = field(default_factory=collections.Counter)
    lines: int = 0
    text_bytes: int = 0


_SPENT: dict[str, _Spent] = {}
_LOCK = threading.Lock()


@dataclass(frozen=True)
class RejectionBudget:
    """What the workers of one pipeline may leave out; each process keeps its own account.

    Attributes:
        limit: that of the job.
        text_bytes: of the (first) files of all rows, each of which takes one at least; None if that
            is not known.
    """

    limit: RejectionLimit
    text_bytes: int | None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    def spend(self, stats: ReadStats) -> None:
        """Adds what was read.

        Raises:
            InputError: too much is lost, whatever is still to be read.
        """
        with _LOCK:
            spent = _SPENT.setdefault(self.key, _Spent())
            spent.lines += stats.tally.lines
            spent.text_bytes += sum(each.length for each in stats.receipts if each.side == 0)
            if not stats.tally.rejected:
                return
            spent.reasons.update(stats.tally.left_out)
            most = spent.lines
            if self.limit.share is not None:
                if self.text_bytes is None:
                    return
                most += max(0, self.text_bytes - spent.text_bytes)
            if self.limit.is_passed(spent.reasons.total(), most):
                raise self.limit.error(spent.reasons, spent.lines)
