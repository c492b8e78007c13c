"""What servers and networks refuse, as a sentence that says what to do about it."""

import http.client

import requests
import urllib3

from pipelines.fetching.paced_session import LEAST_WINDOW_BYTES, WINDOW_SECONDS
from pipelines.fetching.web_addresses import WebAddress
from tokcore.errors import InputError, OperatingSystemError

_REMEDIES = {
    401: 'a name and a password stand before the host, as https://NAME:PASSWORD@HOST/…',
    403: 'check the address, and who may read it',
    404: 'check the address',
    410: 'it is no more: find another address',
    429: 'run again later',
}
_TIMEOUTS = (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)
_NETWORK = 'check the address and the network, and run again'


def refused_by_server(address: WebAddress, status: int) -> InputError:
    """Returns what is said of an answer without the file; from 500 on the server is to blame."""
    phrase = http.client.responses.get(status, 'which is nothing known')
    kind, remedy = InputError, _REMEDIES.get(status, 'check the address')
    if status >= 500:
        kind, remedy = OperatingSystemError, 'run again later'
    return kind(f'cannot fetch {address.name}: the server answers {status}, {phrase}; {remedy}')


def refused_for_length(address: WebAddress, length: str) -> InputError:
    """Returns what is said of a Content-Length that no file has."""
    return OperatingSystemError(
        f'cannot fetch {address.name}: the server tells a length of {len(length):,} digits; check '
        'the address'
    )


def refused_for_pace(address: WebAddress) -> InputError:
    """Returns what is said of a server that sends almost nothing."""
    return OperatingSystemError(
        f'cannot fetch {address.name}: in {WINDOW_SECONDS} seconds the server sent less than '
        f'{LEAST_WINDOW_BYTES >> 10} KiB; check the network, and run again, which goes on from '
        'what came'
    )


def refused_by_network(address: WebAddress, error: Exception) -> InputError:
    """Returns what is said where no whole answer came.

    `error` is of requests or of urllib3, whose messages may hold a password.
    """
    if isinstance(error, requests.exceptions.TooManyRedirects):
        return InputError(
            f'cannot fetch {address.name}: it leads on and on to other addresses; check it'
        )
    return OperatingSystemError(f'cannot fetch {address.name}: {_reason(error)}; {_NETWORK}')


def _reason(error: Exception) -> str:
    """What the system said, in all that one error after another was made of."""
    found = _all_causes(error)
    for each in found:
        if isinstance(each, OSError) and each.errno is not None and each.strerror:
            return each.strerror
    # A refused connection is a kind of timeout to urllib3: what the system says comes first.
    if any(isinstance(each, _TIMEOUTS) for each in found):
        return 'the server does not answer in time'
    return type(error).__name__


def _all_causes(error: Exception) -> list[BaseException]:
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and not any(each is known for known in found):
            found.append(each)
            waiting += [getattr(each, 'reason', None), *each.args, each.__cause__, each.__context__]
    return found
