"""Which file a vocabulary is in: the path itself, or a file of the folder that it is of."""

import logging

from pipelines.files import filesystem
from tokcore.encoding.hub_folders import vocabulary_in_folder

_LOGGER = logging.getLogger(__name__)


def vocabulary_path(path: str) -> str:
    """Returns the absolute path of a vocabulary's file; of a folder, that of the file in it.

    Raises:
        InputError: nothing here opens such a path, or the folder does not tell which file it is.
    """
    whole = filesystem.absolute(path)
    if not filesystem.is_folder(whole):
        return whole
    names = filesystem.entries(whole)
    file, others = vocabulary_in_folder(whole, names, filesystem.read_if_there)
    besides = f'; {" and ".join(others)} there is not read' if others else ''
    _LOGGER.info('the vocabulary is %s%s', file, besides)
    return file
