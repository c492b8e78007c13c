"""What is told of files from the web."""

import logging
from dataclasses import dataclass

from pipelines.engines.progress import News


@dataclass(frozen=True)
class FileFetched(News):
    """A file is whole in the work folder."""

    name: str
    bytes: int
    path: str

    def __str__(self) -> str:
        return f'fetched {self.name}: {self.bytes} bytes, in {self.path}'


@dataclass(frozen=True)
class FetchResumed(News):
    """A file was begun before, and the rest of it is asked for."""

    name: str
    bytes: int

    def __str__(self) -> str:
        return f'going on with {self.name} after {self.bytes} bytes'


@dataclass(frozen=True)
class FileChanged(News):
    """A file of the work folder is not the one that came, or not the one that is asked for now."""

    level = logging.WARNING

    name: str
    path: str

    def __str__(self) -> str:
        return f'{self.path} is not as it was fetched, or not what is asked for; {self.name} is fetched again'


@dataclass(frozen=True)
class FetchAwaited(News):
    """Another run fetches the same file into the same work folder."""

    level = logging.WARNING

    said: str

    def __str__(self) -> str:
        return f'waiting: {self.said}'
