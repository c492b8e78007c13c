"""What a bundle puts out, added up and kept within a bound, and told as a metric.

Flink 1.x makes one bundle of all that a slot has to do in a stage, and hangs, with no error, where
it puts out more than about 1 GB.
"""

from apache_beam.metrics import Metrics

BUNDLE_BYTES = 'bundle_bytes'
"""The distribution, over bundles, of the bytes put out."""

MOST_BUNDLE_BYTES = 512 << 20
"""What a bundle may put out: half of what hangs. For the learner it costs one pass over the counts
for each 0.5 GB of distinct suffixes."""


class OversizedBundleError(RuntimeError):
    """A bundle would put out more than it may."""


class BundleOutput:
    """The bytes of one bundle after another.

    Args:
        namespace: of the metric.
        most: the bytes that a bundle may put out.
    """

    def __init__(self, namespace: str, most: int = MOST_BUNDLE_BYTES):
        self._most = most
        self._bytes = Metrics.distribution(namespace, BUNDLE_BYTES)
        self._sent = 0

    def begin(self) -> None:
        self._sent = 0

    def fits(self, size: int, share: float = 1) -> bool:
        """Returns whether so many bytes more stay within a share of the bound."""
        return self._sent + size <= share * self._most

    def add(self, size: int) -> None:
        """Counts what is about to be put out. Raises OversizedBundleError if it is too much."""
        self.refuse_excess(size)
        self._sent += size

    def refuse_excess(self, size: int) -> None:
        """Raises OversizedBundleError if so many bytes more would be too much."""
        if not self.fits(size):
            raise OversizedBundleError(
                f'a bundle would put out {self._sent + size} bytes, more than {self._most}'
            )

    def end(self) -> None:
        """Tells the bundle's bytes."""
        self._bytes.update(self._sent)
