"""Beam in IPython and Jupyter.

There Beam looks through the user's variables before each transform, to put the number of the cell into its
label. That needs pandas below 3, and loads JavaScript into the cell. Only Interactive Beam shows the label,
so it is left as it is where the user has not imported that.
"""

import functools
import logging
import sys


def _is_of_use(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith('apitools not found')


# Beam warns of a package for Google's stores, in each program that has none of them.
logging.getLogger().addFilter(_is_of_use)
try:
    import apache_beam.pipeline
finally:
    logging.getLogger().removeFilter(_is_of_use)

_INTERACTIVE = 'apache_beam.runners.interactive.interactive_environment'

# A later Beam that does not look any more has no such function.
if hasattr(apache_beam.pipeline, 'alter_label_if_ipython'):
    _alter_label = apache_beam.pipeline.alter_label_if_ipython

    @functools.wraps(_alter_label)
    def _only_if_interactive(transform: object, inputs: object) -> None:
        if _INTERACTIVE in sys.modules:
            _alter_label(transform, inputs)

    apache_beam.pipeline.alter_label_if_ipython = _only_if_interactive
