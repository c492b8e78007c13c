"""Archives of members, in memory; and how a file is packed."""

import io
import tarfile
import zipfile
from collections.abc import Iterable

from tokcore.corpus.contents import Compression, compression_of_content, identify


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


def compression_by(beginning: bytes, name: str = '') -> Compression:
    """Returns how a file is packed that begins with these bytes."""
    return compression_of_content(identify(beginning), beginning, name)
