"""What is asked of every learner, as options."""

from dataclasses import dataclass

from tokcore.options.option_fields import option, recorded
from tokcore.options.values import positive


@dataclass(frozen=True)
class LearningOptions:
    """How a vocabulary is learned; a scheme's own options are fields of a subclass."""

    vocab_size: int = option('entries to aim for, {range}', positive, 'N', changes_bytes=True)

    @property
    def on_beam(self) -> str:
        """Where a learner on Beam is said to learn."""
        return 'on Beam'

    def for_manifest(self) -> dict[str, object]:
        """Returns what the vocabulary's bytes depend on; all learners give the same."""
        return recorded(self)
