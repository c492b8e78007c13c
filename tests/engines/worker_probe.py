"""A job whose worker says what arrived, prints more than a pipe holds, and errs on demand.

Usage: python -m worker_probe WORD OPTIONS OF BEAM
"""

import logging
import os
import sys
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.options.value_provider import RuntimeValueProvider

from pipelines.engines.engine import choose_engine
from tokcore.errors import InputError


class SayFn(beam.DoFn):
    def process(self, element: tuple[str, int]) -> Iterator[str]:
        word, driver = element
        region = RuntimeValueProvider.get_value('s3_region_name', str, None)
        place = 'the driver' if os.getpid() == driver else 'a worker'
        logging.getLogger(__name__).warning('%s, region %s, in %s', word, region, place)
        print('x' * 1_000_000)
        if word == 'mistake':
            raise InputError('file x has a mistake; mend it')
        yield word


def main(word: str, *flags: str) -> None:
    # Run as a program this module is `__main__`, which no worker can import.
    from worker_probe import SayFn

    element = (word, os.getpid())
    try:
        choose_engine(flags, None).run(
            lambda pipeline: pipeline | beam.Create([element]) | beam.ParDo(SayFn())
        )
    except InputError as error:
        print(f'told: {error}')


if __name__ == '__main__':
    main(*sys.argv[1:])
