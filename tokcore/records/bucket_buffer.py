"""Collects rows by bucket until there is enough to send, within a limit of memory.

Blocks are cut finely, so what one block has for one bucket is small. Waiting for several blocks
makes fewer and larger pieces, and flushing the fullest bucket first keeps them as large as can be.
"""

from tokcore.records.framing import FramedRows, join_rows, split_by_bucket

# Some thirty blocks of 8 MiB: with 1,000 buckets a piece is 256 KiB, large against the cost of an
# element. Half makes pieces half as large; twice matters where each worker thread has a buffer.
DEFAULT_BYTE_LIMIT = 256 << 20

PART_OVERHEAD = 512
"""Bytes that the objects around a part's three arrays take, most of it with many buckets."""


class BucketBuffer:
    """Rows waiting by bucket, `(key * buckets) >> 64`, in the order in which they were added.

    Raises ValueError if the number of buckets is not within 1 to 2^32, or the limit is negative.
    """

    def __init__(self, buckets: int, byte_limit: int = DEFAULT_BYTE_LIMIT):
        if byte_limit < 0:
            raise ValueError(f'a limit of {byte_limit} bytes is negative')
        if not 1 <= buckets <= 1 << 32:
            raise ValueError(f'{buckets} buckets are not within 1 to 2^32')
        self._buckets = buckets
        self._byte_limit = byte_limit
        self._parts: dict[int, list[FramedRows]] = {}
        self._sizes: dict[int, int] = {}
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the waiting rows take."""
        return self._nbytes

    def add(self, rows: FramedRows) -> list[tuple[int, FramedRows]]:
        """Takes rows and returns what must go: the fullest buckets, until the rest fits the limit.

        The fullest comes first, of equal ones the lower number.
        """
        for bucket, part in split_by_bucket(rows, self._buckets):
            self._parts.setdefault(bucket, []).append(part)
            size = part.nbytes + PART_OVERHEAD
            self._sizes[bucket] = self._sizes.get(bucket, 0) + size
            self._nbytes += size
        if self._nbytes <= self._byte_limit:
            return []
        flushed = []
        for bucket in sorted(self._sizes, key=lambda bucket: (-self._sizes[bucket], bucket)):
            flushed.append(self._flush(bucket))
            if self._nbytes <= self._byte_limit:
                break
        return flushed

    def flush_all(self) -> list[tuple[int, FramedRows]]:
        """Returns all that waits, by bucket number; the buffer is empty afterwards."""
        return [self._flush(bucket) for bucket in sorted(self._sizes)]

    def _flush(self, bucket: int) -> tuple[int, FramedRows]:
        self._nbytes -= self._sizes.pop(bucket)
        return bucket, join_rows(self._parts.pop(bucket))
