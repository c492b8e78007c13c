"""Commands of the shell that errors name, so that a user can paste them."""

import shlex

from tokcore.corpus.archives import is_zip
from tokcore.corpus.corpus import CorpusFile, MemberFile
from tokcore.corpus.storage import BZIP2, XZ, ZSTD

_UNPACKERS = {False: 'cat', True: 'gzip -dc', BZIP2: 'bzip2 -dc', XZ: 'xz -dc', ZSTD: 'zstd -dc'}


def print_command(file: CorpusFile) -> str:
    """Returns the command that prints the text of a file.

    >>> print_command(CorpusFile('a b.gz', 'a b.gz', 10, True))
    "gzip -dc 'a b.gz'"
    """
    if not isinstance(file, MemberFile):
        return f'{_UNPACKERS[file.compressed]} {shlex.quote(file.path)}'
    printing = 'unzip -p' if is_zip(file.archive) else 'tar -xOf'
    member = file.path[len(file.archive.path) + 1 :]
    command = f'{printing} {shlex.quote(file.archive.path)} {shlex.quote(member)}'
    return f'{command} | {_UNPACKERS[file.compressed]}' if file.compressed else command


def converting_command(file: CorpusFile, program: str) -> tuple[str, str]:
    """Returns a command that converts a file by a Python program, and the name of what it makes.

    The program has no double quotes.
    """
    made = shlex.quote(f'{file.path.rpartition("/")[2]}.tsv')
    return f'{print_command(file)} | python3 -c "{program}" > {made}', made
