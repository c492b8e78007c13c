"""Drawn files, options and paths through every command: status 0 and the right result, or 2.

More of them: `FUZZ_CASES=60 pytest -m fuzz tests/faults/campaigns/test_fuzzing.py`. Any number of any
kind, and what a case did: `python -m tests.faults.fuzzing --help`.
"""

import pytest
from fuzzing.campaign import KINDS, play
from stopped_runs import SEED, cases

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]


# Whole jobs, several in a case; TensorFlow, which takes a second; and cases without a command.
_USUAL = {'limits': 8, 'links': 8, 'text batches': 8, 'tokenizer files': 100}
_CASES = 20


@pytest.mark.parametrize('kind', KINDS)
def test_every_command_keeps_its_promises(lanes, tmp_path, kind):
    if kind == 'text batches':
        pytest.importorskip('tensorflow')
    played = list(play(lanes, [kind], SEED, len(cases(usual=_USUAL.get(kind, _CASES))), tmp_path))
    found = [str(each) for each in played if each.found]
    assert not found, '\n\n'.join(found)
