"""Archives of members, in memory."""

import io
import tarfile
import zipfile
from collections.abc import Iterable


def tar_of(members: Iterable[tuple[str, bytes]], mode: str = 'w') -> bytes:
    """Returns a tar of names and contents, in their order; the mode `w:gz` compresses it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def zip_of(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Returns a zip of names and contents, in their order."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return packed.getvalue()
