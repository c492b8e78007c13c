"""The number of each format that tokbeam stores, apart from the program's own version.

A number goes up with each change after which a file of the number before would be misread. Nothing
is converted: results and states of another number are refused in one sentence, and half-done work of
another number is not used. `tokbeam.run.json` has no number: what does not fit there is ignored.
"""

from tokcore.checked_json import shown
from tokcore.errors import InputError

DATASET = 5
"""`tokbeam.json` of `build` and `encode`."""

COUNTS = 3
"""`tokbeam.json` of a COUNTS folder, with the Parquet files that it lists."""

VOCABULARY = 3
"""`FILE.tokbeam.json` next to a vocabulary."""

_PIECE_COUNTS = 3
"""`FILE.tokbeam.json` next to the counts of a vocabulary's pieces."""

MANIFESTS = {
    'build': DATASET,
    'encode': DATASET,
    'count': COUNTS,
    'vocab': VOCABULARY,
    'pieces': _PIECE_COUNTS,
}
"""The number of the manifest that each command writes."""

INDEX = 2
"""`index/SHARD`: an entry for each row."""

RECORDS = 1
"""`index/records.json` next to TFRecords of other programs."""

ITERATOR_STATE = 6
"""What `state()` of an iterator over batches returns."""

SHUFFLE = 4
"""`plan.json` of a shuffle, and its sorted runs: any change of the bytes that a plan leads to."""

LEARNER_ROUNDS = 3
"""The files of a learner on Beam, in `learner-…` of the work folder."""

CHECKED_FILE = 1
"""The head of a file that stores its own checksum."""

FETCHED_FILE = 2
"""`.fetched.json` and `.part.json` next to a file from the web."""


def check_format(what: str, number: object, known: int, remedy: str) -> None:
    """Raises InputError, with both numbers, if something is not of the format that is read here."""
    if type(number) is int and number == known:
        return
    raise InputError(
        f'{what} has format {shown(number)}, and this version of tokbeam reads format {known}; {remedy}'
    )
