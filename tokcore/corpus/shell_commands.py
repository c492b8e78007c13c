"""Commands of the shell that errors name, so that a user can paste them."""

import shlex

from tokcore.corpus.archives import is_zip
from tokcore.corpus.contents import Inside, printing
from tokcore.corpus.corpus import CorpusFile, MemberFile


def converting_command(file: CorpusFile, program: str) -> tuple[str, str]:
    """Returns a command that converts a file by a Python program, and the name of what it makes.

    The program has no double quotes.
    """
    inside = None
    if isinstance(file, MemberFile):
        inside = Inside(file.archive.path, is_zip(file.archive))
    made = shlex.quote(f'{file.path.rpartition("/")[2]}.tsv')
    command = printing(file.path, file.compressed, inside)
    return f'{command} | python3 -c "{program}" > {made}', made
