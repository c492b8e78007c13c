"""Which file a vocabulary is in: the path itself, or a file of the folder that it is of."""

import logging

from pipelines.files import filesystem
from pipelines.files.hub import fetched_vocabulary, is_hub_address
from tokcore.encoding.hub_folders import FolderVocabulary, vocabulary_in_folder

_LOGGER = logging.getLogger(__name__)


def find_vocabulary(path: str, side: str | None = None) -> FolderVocabulary:
    """Returns a vocabulary's file by its absolute path; of a folder, the file in it.

    One of the Hub is fetched, and the path is that in its cache.

    Args:
        path: of a file or a folder.
        side: of a dataset with two vocabularies, that of the `inputs` or of the `targets`.

    Raises:
        InputError: nothing here opens such a path, or the folder leaves open which file it is.
    """
    whole = filesystem.absolute(path)
    found = FolderVocabulary(whole, [])
    if filesystem.is_folder(whole):
        names = filesystem.entries(whole)
        found = vocabulary_in_folder(whole, names, filesystem.read_if_there, side)
        besides = f'; {" and ".join(found.unread)} there is not read' if found.unread else ''
        _LOGGER.info('the vocabulary is %s%s', found.path, besides)
    return found._replace(path=fetched_vocabulary(found.path)) if is_hub_address(whole) else found


def vocabulary_path(path: str, side: str | None = None) -> str:
    """Returns the absolute path of a vocabulary's file, as `find_vocabulary` finds it."""
    return find_vocabulary(path, side).path
