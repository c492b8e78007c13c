"""Files of the Hugging Face Hub, `hf://datasets/OWNER/NAME[@REVISION]/PATH`, through `huggingface_hub`.

A revision is resolved once, to a commit, which the names of files then have. Files are fetched into the cache
of `huggingface_hub` and read there. The lists of a commit's files are kept too, so that without a network a
pattern names the same files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import http.client
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO

from pipelines.engines.progress import advance, stage_running, track_work
from pipelines.files.local import LocalFiles, StoredFile, StoreFiles
from pipelines.files.system_errors import system_error
from tokcore.corpus.fields import fetchers
from tokcore.encoding.hub_folders import NEIGHBOURS
from tokcore.errors import InputError, OperatingSystemError, missing_package
from tokcore.regular_files import open_regular

_LOGGER = logging.getLogger(__name__)

_ADDRESS = re.compile(
    r'hf://(?P<datasets>datasets/)?(?P<repository>(?!datasets/)[^/@]+/[^/@]+)'
    r'(?:@(?P<revision>refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/(?P<path>.*))?',
    re.DOTALL,
)
_IN_CACHE = re.compile(
    r'.*/(datasets|models)--(.+?)--([^/]+)/snapshots/([0-9a-f]{40})/(.+)', re.DOTALL
)
_COMMIT = re.compile(r'[0-9a-f]{40}')
_WILDCARD = re.compile(r'[*?\[]')

_FETCHING = 'fetching'
_AT_ONCE = 8
"""Files; as many as huggingface_hub fetches at once."""

_LOG_IN = 'log in (hf auth login, or HF_TOKEN)'
_REMEDIES = {
    401: f'check the address, or {_LOG_IN} if its repository is private or gated',
    403: f'accept the terms of its repository on the Hub if it is gated, and {_LOG_IN}',
    404: 'check the owner, the name and the revision',
    429: f'run again later, or {_LOG_IN}, which allows more requests',
}

_commits: dict[_Address, str] = {}
_folder: list[str] = []


def is_hub_address(path: str) -> bool:
    """Returns whether a path is one of the Hub."""
    return path.startswith('hf://')


def forget_commits() -> None:
    """Has revisions resolved again, for the next job."""
    _commits.clear()


def fetch_into(folder: str | None) -> None:
    """Has files fetched into a folder that workers reach; None: into the cache of huggingface_hub."""
    _folder[:] = [] if folder is None else [folder]


@dataclass(frozen=True)
class _Address:
    """A file, a folder or a pattern in a repository."""

    repo_type: str
    repo_id: str
    revision: str
    path: str = ''

    def __str__(self) -> str:
        kind = 'datasets/' if self.repo_type == 'dataset' else ''
        return f'hf://{kind}{self.repo_id}@{self.revision}/{self.path}'.rstrip('/')

    def at(self, path: str) -> _Address:
        """Returns another path in the repository."""
        return dataclasses.replace(self, path=path)

    @property
    def repository(self) -> dict[str, str]:
        """The arguments by which the client knows the repository."""
        return {'repo_id': self.repo_id, 'repo_type': self.repo_type, 'revision': self.revision}

    def in_cache(self, *names: str) -> str:
        """Returns a path in the cache of the client, of which the documentation describes the layout."""
        folder = f'{self.repo_type}s--{self.repo_id.replace("/", "--")}'
        return os.path.join(_cache(), folder, *names)

    @property
    def local_path(self) -> str:
        return os.path.join(self.in_cache('snapshots', self.revision), self.path)


class HubFiles(StoreFiles):
    """What `Files` are asked for where an input is named; nothing is written to the Hub."""

    def absolute(self, path: str) -> str:
        return str(_pinned(path))

    def exists(self, path: str) -> bool:
        try:
            return _is_there(_pinned(path))
        except OperatingSystemError:  # without a network, only what was fetched is there
            return False

    def stat(self, path: str) -> StoredFile | None:
        address = _pinned(path)
        return _fetched([address])[0] if _is_there(address) else None

    def match(self, pattern: str, above: str) -> list[StoredFile]:
        return _fetched(_matching(_pinned(pattern)))

    def entries(self, folder: str) -> list[str]:
        address = _pinned(folder)
        try:
            return sorted(path.rpartition('/')[2] for path in _paths(address, False))
        except OperatingSystemError:
            names = LocalFiles().entries(address.local_path)
            if not names:
                raise
            return names

    def open(self, path: str, size: int | None = None, ahead: int = 0) -> BinaryIO:
        return open_regular(_fetched([_pinned(path)])[0].path)


def _fetched_labels(path: str) -> tuple[str, str]:
    [file] = _fetched([_pinned(path)])
    return file.path, file.name


fetchers['hf://'] = _fetched_labels


def fetched_vocabulary(path: str) -> str:
    """Returns where the file of a vocabulary is, fetched with the files next to it that belong to it."""
    file = _pinned(path)
    folder, _, name = file.path.rpartition('/')
    stem = name.partition('.')[0]
    names = HubFiles().entries(str(file.at(folder)))
    neighbours = [each for each in names if each in NEIGHBOURS or each.partition('.')[0] == stem]
    _fetched([file.at(f'{folder}/{each}'.lstrip('/')) for each in neighbours])
    return _fetched([file])[0].path


def address_in_cache(path: str) -> str | None:
    """Returns the address of a file in a cache of the Hub; None for any other path.

    >>> address_in_cache('/c/models--a--b/snapshots/0123456789abcdef0123456789abcdef01234567/vocab.txt')
    'hf://a/b@0123456789abcdef0123456789abcdef01234567/vocab.txt'
    """
    match = _IN_CACHE.fullmatch(path)
    if match is None:
        return None
    kind, owner, name, commit, inside = match.groups()
    return str(_Address(kind.removesuffix('s'), f'{owner}/{name}', commit, inside))


def to_be_fetched(path: str) -> list[str]:
    """Returns the addresses of the files that a path, a pattern or `ARCHIVE!MEMBER` has fetched."""
    address = _pinned(path)
    if not _is_there(address):
        address = _pinned(path.partition('!')[0])
    files = [address] if _is_there(address) else _matching(address)
    return [str(file) for file in files if not os.path.isfile(file.local_path)]


def _pinned(path: str) -> _Address:
    """Returns an address with the commit of its revision."""
    hub = _client(path)
    match = _ADDRESS.fullmatch(path)
    if match is None or not _is_plain((match['path'] or '').rstrip('/')):
        raise InputError(
            f'{path} is not an address of the Hub; give hf://datasets/OWNER/NAME/PATH, or hf://OWNER/NAME '
            'of a tokenizer, with @REVISION after NAME if it is not the main branch'
        )
    kind = 'dataset' if match['datasets'] else 'model'
    revision = (match['revision'] or hub.constants.DEFAULT_REVISION).replace('%2F', '/')
    if revision.startswith('~'):  # as DuckDB has it
        raise InputError(f'{path}: give the revision as @refs/convert/{revision[1:]}')
    repository = _Address(kind, match['repository'], revision)
    if not _COMMIT.fullmatch(revision):
        if repository not in _commits:
            _commits[repository] = _commit(repository, path)
        repository = dataclasses.replace(repository, revision=_commits[repository])
    return repository.at((match['path'] or '').rstrip('/'))


def _is_plain(path: str) -> bool:
    """Returns whether a path leads nowhere outside of its repository."""
    return not path or not {'', '.', '..'} & set(path.split('/'))


def _commit(repository: _Address, path: str) -> str:
    """Asks the Hub for the commit of a revision; without a network it is the one of the last time."""
    kept = repository.in_cache('refs', *repository.revision.split('/'))
    try:
        with _refusals(path) as hub:
            commit = hub.HfApi().repo_info(**repository.repository, expand=['sha']).sha
    except OperatingSystemError as error:
        if not os.path.isfile(kept):
            raise
        with open_regular(kept) as file:
            commit = file.read().decode()
        _LOGGER.warning('%s; %s was its commit the last time, and is taken', error, commit)
        return commit
    _keep(kept, commit)
    return commit


def _around(address: _Address) -> tuple[_Address, bool]:
    """Returns the folder in which a file, or all files of a pattern, are, and whether at any depth."""
    wildcard = _WILDCARD.search(address.path)
    above = address.path[: wildcard.start()] if wildcard else address.path
    return address.at(above.rpartition('/')[0]), wildcard is not None


def _is_there(address: _Address) -> bool:
    """Returns whether a commit has a file."""
    if address.path and os.path.isfile(address.local_path):
        return True
    return address.path in _paths(*_around(address))


def _matching(pattern: _Address) -> list[_Address]:
    """Returns the files of a commit that a pattern matches, by the bytes of their paths."""
    from apache_beam.io.filesystem import FileSystem

    matches = re.compile(FileSystem.translate_pattern(pattern.path)).match
    found = filter(matches, _paths(*_around(pattern)))
    return [pattern.at(path) for path in sorted(found, key=str.encode)]


@functools.cache
def _paths(folder: _Address, at_any_depth: bool) -> frozenset[str]:
    """Returns the paths of the files in a folder of a commit, as the Hub or an earlier run lists them."""
    key = hashlib.sha256(f'{folder} {at_any_depth}'.encode()).hexdigest()
    hub = _client(str(folder))
    # As `cached_assets_path` has it, which makes the folder: here only a list that is kept does.
    assets = hub.constants.HF_ASSETS_CACHE
    kept = os.path.join(assets, 'tokbeam', 'lists', 'default', f'{key}.json')
    missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
    with missing, open_regular(kept) as file:
        return frozenset(json.load(file))
    entries: Iterable[Any] = ()
    with _refusals(str(folder)), contextlib.suppress(hub.errors.EntryNotFoundError):
        place = {'path_in_repo': folder.path or None, 'recursive': at_any_depth}
        entries = list(hub.HfApi().list_repo_tree(**folder.repository, **place))
    files = [entry.path for entry in entries if isinstance(entry, hub.hf_api.RepoFile)]
    paths = frozenset(filter(_is_plain, files))
    _keep(kept, json.dumps(sorted(paths)))
    return paths


def _fetched(files: Sequence[_Address]) -> list[StoredFile]:
    """Returns files as they are in the cache, named by their addresses; fetches those that are not."""
    missing = [file for file in files if not os.path.isfile(file.local_path)]
    if missing:
        pool = ThreadPoolExecutor(_AT_ONCE)
        with stage_running('fetch'), track_work('fetch', _FETCHING, len(missing), 'files'):
            try:
                with _without_bars(str(missing[0])):
                    for _ in pool.map(_fetch, missing):
                        advance(_FETCHING, 1)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        more = f' and {len(missing) - 1:,} more' if missing[1:] else ''
        _LOGGER.info('fetched %s%s into %s, for later runs too', missing[0], more, _cache())
    states = [os.stat(file.local_path) for file in files]
    return [
        StoredFile(file.local_path, str(file), state.st_size, state.st_mtime)
        for file, state in zip(files, states, strict=True)
    ]


def _fetch(file: _Address) -> None:
    with _refusals(str(file)) as hub:
        hub.hf_hub_download(**file.repository, filename=file.path, cache_dir=_cache())


def _cache() -> str:
    for folder in _folder:
        if '://' in folder:
            raise InputError(
                f'{folder} is not a folder of this machine, which files of the Hub are fetched to; give '
                'such a folder by --work, or copy the files to the store'
            )
        return folder
    return _client('').constants.HF_HUB_CACHE


def _keep(path: str, text: str) -> None:
    """Writes what a run without a network needs; a job goes on without it."""
    try:
        with LocalFiles().create(path) as file:
            file.write(text.encode())
    except OSError as error:
        _LOGGER.warning('%s cannot be written for runs without a network: %s', path, error)


def _client(address: str) -> Any:
    """Imports the client."""
    try:
        import huggingface_hub.hf_api
    except ModuleNotFoundError as error:
        raise missing_package(address, 'hf') from error
    return huggingface_hub


@contextlib.contextmanager
def _without_bars(address: str) -> Iterator[None]:
    """Hides the bars of the client, one for each file; the job has its own."""
    utils = _client(address).utils
    are_hidden = utils.are_progress_bars_disabled()
    utils.disable_progress_bars()
    try:
        yield
    finally:
        if not are_hidden:
            utils.enable_progress_bars()


@contextlib.contextmanager
def _refusals(address: str) -> Iterator[Any]:
    """Provides the client, whose errors become sentences about an address."""
    hub = _client(address)
    # Below 1 it raises errors of requests, which are OSErrors, and from 1 on those of httpx.
    of_network = hub.errors.HfHubHTTPError.__bases__[0]
    try:
        yield hub
    except hub.errors.LocalEntryNotFoundError as error:
        raise _refusal(error.__cause__ or error, address) from error
    except (OSError, ValueError, of_network) as error:
        raise _refusal(error, address) from error


def _refusal(error: BaseException, address: str) -> InputError:
    status = getattr(getattr(error, 'response', None), 'status_code', None)
    if status is not None:
        phrase = http.client.responses.get(status, 'which is nothing known')
        kind, remedy = InputError, _REMEDIES.get(status, 'check the address')
        if status == 429 or status >= 500:
            kind, remedy = OperatingSystemError, _REMEDIES.get(status, 'run again later')
        return kind(f'cannot fetch {address}: the Hub answers {status}, {phrase}; {remedy}')
    if isinstance(error, OSError) and error.errno:
        return system_error(error, f'fetch {address}')
    errors = _client(address).errors
    if isinstance(error, errors.HFValidationError):
        return InputError(f'{address} is not an address of the Hub: {error}; mend it')
    from pipelines.files.transfer import network_reason  # its import is slow

    is_offline = isinstance(error, errors.OfflineModeIsEnabled)
    reason = 'HF_HUB_OFFLINE is set' if is_offline else network_reason(error)
    return OperatingSystemError(
        f'cannot fetch {address}: {reason}, and it is not in {_cache()}; check the network, and run again'
    )
