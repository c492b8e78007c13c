"""Commands of the shell that errors name, so that a user can paste them."""

import shlex

from tokcore.corpus.contents import printing
from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.looks import inside


def converting_command(file: CorpusFile, program: str) -> tuple[str, str]:
    """Returns a command that converts a file by a Python program, and the name of what it makes.

    The program has no double quotes.
    """
    made = shlex.quote(f'{file.path.rpartition("/")[2]}.tsv')
    command = printing(file.path, file.compressed, inside(file))
    return f'{command} | python3 -c "{program}" > {made}', made
