"""What is refused by its content: many NULs, and a mark of UTF-16.

Other text with NULs may look like UTF-16 by chance, so for it only status 0 or 2 is required.
"""

from collections.abc import Iterable

READ, REFUSED, EITHER = 'read', 'refused', 'either'
_HEAD_BYTES = 64 << 10


def verdict(text: bytes) -> str:
    """Returns what becomes of a file with this text, of a format of lines."""
    head = text[:_HEAD_BYTES]
    nuls = head.count(0)
    if head.startswith((b'\xff\xfe', b'\xfe\xff')) or (nuls > 16 and 1000 * nuls > len(head)):
        return REFUSED
    # A text of which not all is UTF-8 may begin as anything.
    return EITHER if nuls or not head[:4].isascii() else READ


def joint_verdict(texts: Iterable[bytes]) -> str:
    """Returns what becomes of a corpus of some files."""
    verdicts = set(map(verdict, texts))
    return REFUSED if REFUSED in verdicts else EITHER if EITHER in verdicts else READ
