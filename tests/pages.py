"""Code blocks of the README and of `docs/`, and how they are run: page by page, in the order of the page.

A block below a comment `<!-- needs … -->` is not run with the others; the comment says what runs it.
"""

import contextlib
import dataclasses
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from jobs import succeed

ROOT = Path(__file__).parents[1]

_FENCE = re.compile(r'(?:^<!-- (needs .*?) -->\n)?^```(\w+)\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_RUN = ('bash', 'python', 'toml')
_SHOWN = ('text',)
_OPERATORS = {*'|&;<>()$*?~`'}


@dataclasses.dataclass(frozen=True)
class CodeBlock:
    language: str
    code: str
    needs: str | None  # why it is not run here


def blocks_of(page: str) -> list[CodeBlock]:
    text = (ROOT / page).read_text()
    return [
        CodeBlock(language, code, needs or None) for needs, language, code in _FENCE.findall(text)
    ]


def is_installation(block: CodeBlock) -> bool:
    """Whether `.ci/run` runs it, in an environment of its own."""
    return block.language == 'bash' and block.code.startswith(('pip install', 'python3 -m venv'))


def run_blocks(page, names):
    """Runs the blocks of a page in the working folder; Python's names are those in `names`."""
    for block in blocks_of(page):
        assert block.language in (*_RUN, *_SHOWN), block
        if block.needs or is_installation(block) or block.language in _SHOWN:
            continue
        if block.language == 'bash':
            run_shell(block.code)
        elif block.language == 'python':
            exec(compile(block.code, page, 'exec'), names)
        else:
            Path('job.toml').write_text(block.code)
            succeed('build', 'job.toml', '--vocab-size', 2000)


def run_shell(code):
    """Runs a block line by line, up to the first command that fails.

    `tokbeam` by itself, or with its output in a file, runs in this process, which has imported
    Beam; lines with pipes and the like are run by a shell.
    """
    for line in code.replace('\\\n', ' ').splitlines():
        unquoted = ' '.join(
            word for word in shlex.shlex(line, punctuation_chars=True) if word[0] not in '\'"'
        )
        operators = _OPERATORS.intersection(unquoted)
        words = shlex.split(line, comments=True)
        if not unquoted.startswith('tokbeam ') or not operators <= {'>'}:
            run_in_shell(line)
        elif operators:
            *words, operator, path = words
            assert operator == '>'
            with open(path, 'w', encoding='utf-8') as printed, contextlib.redirect_stdout(printed):
                succeed(*words[1:])
        else:
            succeed(*words[1:])


def run_in_shell(code):
    tokbeam = f'tokbeam() {{ {shlex.quote(sys.executable)} -m pipelines "$@"; }}\n'
    process = subprocess.run(
        ['bash', '-e', '-o', 'pipefail', '-c', tokbeam + code],
        capture_output=True,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
    )
    assert process.returncode == 0, process.stderr
