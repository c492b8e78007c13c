"""Records of ArrayRecord, as its own reader and as grain's source have them. Argument: their folder.

Prints the payloads in hexadecimal, and the options by which each file says that it was written.
"""

import glob
import json
import sys

import grain
from array_record.python.array_record_module import ArrayRecordReader


def main(folder):
    paths = sorted(glob.glob(f'{folder}/*-train-*.array_record'))
    readers = [ArrayRecordReader(path) for path in paths]
    source = grain.sources.ArrayRecordDataSource(paths)
    print(
        json.dumps(
            {
                'read': [record.hex() for reader in readers for record in reader.read_all()],
                'source': [source[number].hex() for number in range(len(source))],
                'options': [reader.writer_options_string() for reader in readers],
            }
        )
    )


if __name__ == '__main__':
    main(sys.argv[1])
