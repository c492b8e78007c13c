"""Where the boot program lies, and the environment in which it finds this Python."""

import os
import sys
from pathlib import Path

DEPLOY_FLINK = Path(__file__).resolve().parents[2] / 'deploy' / 'flink'
BOOT = DEPLOY_FLINK / 'boot'


def worker_environment() -> dict[str, str]:
    """Returns an environment whose `python3` is this interpreter, as in an activated venv.

    Modules beside this one can be imported in it. The process that workers are forked from ends soon
    after them.
    """
    return {
        **os.environ,
        'PATH': _before(os.path.dirname(sys.executable), 'PATH'),
        'PYTHONPATH': _before(os.path.dirname(__file__), 'PYTHONPATH'),
        'TOKBEAM_WORKERS_IDLE': '30',
    }


def _before(folder: str, variable: str) -> str:
    return os.pathsep.join(filter(None, [folder, os.environ.get(variable)]))
