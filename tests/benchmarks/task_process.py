"""The process that one run of one contender has to itself.

It is given a task function and its options, and writes two lines on its standard output: `ready` as
soon as everything is imported, read and warmed up, and the outcome as JSON. Whatever a peer prints
goes to standard error.

A task function takes `ready`, which it calls before it starts its clock, and its options.
"""

import importlib
import json
import os
import sys

_OUR_PACKAGES = ('tokcore', 'pipelines', 'tests')


def main() -> int:
    order = json.loads(sys.argv[1])
    keep_to(order['cores'], order['lane'])
    reply = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)

    def ready() -> None:
        print('ready', file=reply, flush=True)

    module, _, function = order['task'].partition(':')
    try:
        task = getattr(importlib.import_module(f'.{module}', __package__), function)
        outcome = task(ready, **order['options'])
    except ImportError as error:
        if (error.name or '').partition('.')[0] in _OUR_PACKAGES:
            raise  # a mistake in this repository
        print(json.dumps({'missing': str(error)}), file=reply, flush=True)
        return 0
    result = {'seconds': outcome.seconds, 'facts': dict(outcome.facts)}
    print(json.dumps(result), file=reply, flush=True)
    return 0


def keep_to(cores: int | None, lane: int) -> None:
    """Holds the libraries' thread pools, and the process itself, to so many cores of a lane."""
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'
    os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
    os.environ['TOKENIZERS_PARALLELISM'] = 'false' if cores == 1 else 'true'
    if cores is None:
        return
    for variable in ('RAYON_NUM_THREADS', 'OMP_NUM_THREADS', 'NUMBA_NUM_THREADS'):
        os.environ[variable] = str(cores)
    if hasattr(os, 'sched_setaffinity'):  # not on macOS and Windows
        # From the last one on: interrupts are mostly served by the first.
        from_last = sorted(os.sched_getaffinity(0), reverse=True)
        os.sched_setaffinity(0, from_last[lane * cores : (lane + 1) * cores])


if __name__ == '__main__':
    sys.exit(main())
