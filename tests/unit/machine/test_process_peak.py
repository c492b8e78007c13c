"""A process tells what it took itself, not what the process that started it held."""

import subprocess
import sys

HELD = 512 << 20

CHILD = 'from pipelines.machine.process_memory import peak_bytes; print(peak_bytes())'

PARENT = f"""
import subprocess, sys
held = bytearray(b'x') * {HELD}
print(subprocess.run([sys.executable, '-c', sys.argv[1]], check=True, capture_output=True,
                     text=True).stdout)
"""


def test_a_parents_memory_is_not_the_childs():
    command = [sys.executable, '-c', PARENT, CHILD]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 1 << 20 < peak < HELD
