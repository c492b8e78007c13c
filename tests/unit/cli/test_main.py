"""What a command does before its own work."""

import gc
import subprocess
import sys

from pipelines.cli.main import main

_PROBE = """
import gc, sys
from pipelines.cli.main import main
status = main(['count', '--text', sys.argv[1], '--output', sys.argv[2]])
print(status, gc.get_freeze_count() > 100_000, gc.isenabled())
"""


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
