"""Addresses of inputs on the web: `https://host/texts.tgz#sha256=HEX!news/a.en`.

What follows `#` is for the one that fetches; what follows `!` is the member of an archive, or a
pattern of some. The checksum may also stand at the end, behind the member.
"""

import hashlib
import re
import urllib.parse
from dataclasses import dataclass

from pipelines.options.secrets import HIDDEN, url_without_secrets
from tokcore.corpus.storage.archives import archive_and_member
from tokcore.errors import InputError

_BEGINNING = re.compile(r'https?://', re.IGNORECASE)
_CHECKSUM = re.compile(r'#sha256=([0-9A-Fa-f]{64})(?=!|$)')
_ENDING = re.compile(r'\.(?:tar(?:\.(?:gz|bz2|xz|zst))?|tgz|tbz2?|txz|tzst|zip)$', re.IGNORECASE)
_ODD = re.compile(r'[^A-Za-z0-9._-]')

_MOST_NAME = 100
"""Of the bytes of a file's name, the last ones: its ending tells how it is stored."""


@dataclass(frozen=True)
class WebAddress:
    """Where a file is to be fetched.

    Attributes:
        url: as it is asked for, with a name and a password if there are some.
        name: the same as it may be written down: without these, and values of secret parameters.
        member: of an archive, or a pattern of members; None for the file itself.
        sha256: that the file is to have, in lower case; None if that is not said.
    """

    url: str
    name: str
    member: str | None
    sha256: str | None

    @property
    def key(self) -> str:
        """16 hexadecimal digits that tell its file from others; passwords are no part of it."""
        return hashlib.sha256(_without_user(self.url).encode()).hexdigest()[:16]

    @property
    def file_name(self) -> str:
        """The last part of its path, as a plain name that does not begin with a dot.

        Parameters of the path that are secrets are left out.
        """
        last = urllib.parse.urlsplit(self.name).path.rpartition('/')[2]
        last = ';'.join(part for part in last.split(';') if HIDDEN not in part)
        name = _ODD.sub('_', urllib.parse.unquote(last)).lstrip('.')[-_MOST_NAME:].lstrip('.')
        ending = _ENDING.search(self.url)
        if self.member is not None and ending and not _ENDING.search(name):
            name += ending[0]  # by which archives are known
        return name or 'file'


def is_web_address(path: str) -> bool:
    """Tells whether a path is one that has to be fetched."""
    return bool(_BEGINNING.match(path))


def web_address(path: str) -> WebAddress:
    """Returns what an address says.

    Raises:
        InputError: it is none that can be fetched, or has something else behind `#`.
    """
    found = _CHECKSUM.search(path)
    rest = path if found is None else path[: found.start()] + path[found.end() :]
    url, member = archive_and_member(rest) or (rest, None)
    shown = url_without_secrets(path.partition('#')[0])  # what follows may be a secret itself
    if '#' in url or '#sha256=' in (member or ''):
        raise InputError(
            f'{shown}#…: what follows # is to be sha256= and 64 hexadecimal digits; mend it, or '
            'leave it out'
        )
    try:
        parts = urllib.parse.urlsplit(url)
        # Reading the port raises if it is none.
        if not parts.hostname or parts.port == 0 or not url.isprintable() or ' ' in url:
            raise ValueError
    except ValueError:  # its message may hold a password
        raise InputError(
            f'{shown} is no address of a file on the web (there is no host, or a port or character '
            'that cannot be); mend it'
        ) from None
    name = url_without_secrets(_without_user(url))
    return WebAddress(url, name, member, found[1].lower() if found else None)


def _without_user(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition('@')[2], fragment='').geturl()
