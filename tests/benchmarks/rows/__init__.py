"""The table's rows, by task."""

from dataclasses import replace

from ..contenders import Row
from ..scale import Scale
from .byte_pairs import byte_pair_rows
from .commands import command_rows
from .encoding import encoding_rows
from .formats import format_rows
from .learning import learning_rows
from .models import model_rows
from .reading import reading_rows
from .shuffled import shuffled_rows
from .sizes import size_rows
from .stores import store_rows
from .wordpieces import wordpiece_rows


def all_rows(scale: Scale) -> tuple[Row, ...]:
    """Returns every row, in the table's order."""
    rows = (
        *learning_rows(scale),
        *encoding_rows(scale),
        *format_rows(scale),
        *wordpiece_rows(scale),
        *byte_pair_rows(scale),
        *model_rows(scale),
        *reading_rows(scale),
        *command_rows(scale),
        *shuffled_rows(scale),
        *size_rows(scale),
        *store_rows(scale),
    )
    # A megabyte has no targets: start-up takes more time than the work.
    return rows if scale.has_targets else tuple(replace(row, targets={}) for row in rows)
