"""Archives that contain a corpus among other members."""

import bz2
import gzip
import io
import lzma
import random
import stat
import tarfile
import zipfile

import zstandard

MEMBERS = ('in/it', '../up', '/absolute', 'a b!c', 'é')
_OTHERS = ('other', 'in/other', '../../etc/passwd', 'link')


def pack_tar(dice: random.Random, text: bytes, member: str) -> bytes:
    """Returns a tar with the text as a member, between others, with links and folders."""
    sink = io.BytesIO()
    kind = dice.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    with tarfile.open(fileobj=sink, mode='w', format=kind) as tar:
        for name in _drawn_order(dice, member):
            info = tarfile.TarInfo(name)
            content = text if name == member else dice.randbytes(dice.choice([0, 5, 3000]))
            if name == 'link':
                info.type, info.linkname, content = tarfile.SYMTYPE, '/etc/passwd', b''
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return sink.getvalue()


def pack_zip(dice: random.Random, text: bytes, member: str) -> bytes:
    """Returns a zip with the text as a member, between others."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, 'w') as packed:
        for name in _drawn_order(dice, member):
            info = zipfile.ZipInfo(name)
            info.compress_type = dice.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
            if name == 'link':
                info.create_system = 3
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            content = text if name == member else dice.randbytes(dice.choice([0, 5, 3000]))
            packed.writestr(info, content)
    return sink.getvalue()


def _drawn_order(dice: random.Random, member: str) -> list[str]:
    names = [member, *dice.sample(_OTHERS, dice.randint(0, len(_OTHERS)))]
    dice.shuffle(names)
    return names


PACKERS = {
    '.tar': pack_tar,
    '.tar.gz': lambda dice, text, member: gzip.compress(pack_tar(dice, text, member), mtime=0),
    '.tgz': lambda dice, text, member: gzip.compress(pack_tar(dice, text, member), mtime=0),
    '.tar.bz2': lambda dice, text, member: bz2.compress(pack_tar(dice, text, member)),
    '.tar.xz': lambda dice, text, member: lzma.compress(pack_tar(dice, text, member), preset=0),
    '.tar.zst': lambda dice, text, member: zstandard.compress(pack_tar(dice, text, member)),
    '.zip': pack_zip,
}
