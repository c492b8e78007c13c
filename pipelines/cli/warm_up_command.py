"""`warm-up`: compiles kernels ahead of the first job."""

import argparse
from collections.abc import Sequence

from pipelines.artifacts.vocabularies import scheme_of
from pipelines.cli.terminal import print_lines
from pipelines.engines.compiling import compile_ahead
from tokcore.kernels.jit import unkept_reason
from tokcore.warm_up import PARTS, missing_parts


def warm_up(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Compiles all that jobs of a scheme need; returns 1 if it could not be kept."""
    scheme = scheme_of([], options.scheme, vars(options))
    compile_ahead(scheme, [*PARTS])
    if missing_parts(scheme, [*PARTS]) or unkept_reason():
        return 1
    print_lines([f'the kernels of --scheme {scheme.name} are compiled'])
    return 0
