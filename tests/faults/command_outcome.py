"""How a command ended, as its user sees it."""

import re
from dataclasses import dataclass

# What a run says of its progress before it meets a mistake; only a build or a late stage says any.
_PROGRESS = re.compile(
    r'tokbeam: (compiling kernels |compiled in |(count|encode|vocab\S*|compile kernels): |.*: (learning|learned|round \d+:|still above) |.* has \d+ entries)'
)


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it wrote to stderr."""

    status: int
    stderr: str

    @property
    def complaints(self) -> list[str]:
        """The lines of stderr that neither tell progress nor warn."""
        lines = [line for line in self.stderr.splitlines() if not _PROGRESS.match(line)]
        return [line for line in lines if not line.startswith('tokbeam: warning: ')]

    def assert_refused(self, *fragments: object) -> None:
        """A user's mistake: status 2 and one sentence that holds all fragments, no traceback."""
        assert self.status == 2, self.stderr
        assert 'Traceback' not in self.stderr, self.stderr
        assert len(self.complaints) == 1, self.stderr
        [sentence] = self.complaints
        assert sentence.startswith('tokbeam: ')
        for fragment in fragments:
            assert str(fragment) in sentence
