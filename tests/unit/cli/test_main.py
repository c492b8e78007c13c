"""What a command does before its own work."""

import gc
import subprocess
import sys

import pytest

from pipelines.cli.main import main

_PROBE = """
import gc, sys
from pipelines.cli.main import main
status = main(['count', '--text', sys.argv[1], '--output', sys.argv[2]])
print(status, gc.get_freeze_count() > 100_000, gc.isenabled())
"""

_IMPORTED = """
import contextlib, sys
import pipelines.cli.main as command
with contextlib.suppress(SystemExit):
    sys.argv[1:] and command.main(sys.argv[1:])
print(*({'numpy', 'numba', 'apache_beam'} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.slow
def test_the_collector_passes_over_what_is_imported_and_over_nothing_else(tmp_path, capsys):
    arguments = [str(tmp_path / 'missing'), str(tmp_path / 'out')]
    probe = [sys.executable, '-c', _PROBE, *arguments]
    ended = subprocess.run(probe, check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ['2', 'True', 'True']
    # Once it is imported, a second call has nothing of its own to be passed over.
    command = ['count', '--text', arguments[0], '--output', arguments[1]]
    assert main(command) == 2
    frozen = gc.get_freeze_count()
    assert main(command) == 2
    assert gc.get_freeze_count() <= frozen and gc.isenabled()
    assert 'does not exist' in capsys.readouterr().err


@pytest.mark.parametrize('arguments', [[], ['--help'], ['build', '--help']], ids=' '.join)
def test_it_waits_for_neither_arrays_nor_kernels_before_it_knows_what_to_do(arguments):
    """Threads that numpy begins would take signals too, which are blocked for later ones."""
    ended = subprocess.run(
        [sys.executable, '-c', _IMPORTED, *arguments], capture_output=True, text=True, check=True
    )
    assert ended.stderr.strip() == ''
