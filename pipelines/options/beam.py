"""Options that are passed on to Beam: which it knows, which of them are secret.

Beam's own parser prints its usage and ends the process; here each mistake is one sentence before
any work. What only a job server knows stands after `--` and is passed on unread. The values of
keys, tokens and passwords are recognised by the option's name, also inside command lines, JSON and
URLs, and are never written down.
"""

import contextlib
import io
import re
import typing
import urllib.parse
from collections.abc import Sequence

from pipelines.options.reading import Parser
from tokcore.errors import InputError
from tokcore.options import did_you_mean, shown

if typing.TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

# What Beam's actions raise for a value, in addition to argparse's own errors.
_WRONG_VALUE = (ValueError, TypeError, AttributeError, AssertionError)

HIDDEN = '***'

_WORDS = r"""(?:
    pass(?:word|wd|phrase|code)
    | secret | credential | authorization | connection_?string | sess(?:ion)?_?id
    | (?<![a-z])(?:auth|jwt|hmac)(?![a-z])
    | (?:(?<![a-z])|(?<=api)|(?<=access)|(?<=account)|(?<=auth)|(?<=private)|(?<=shared))
      (?:keys?|tokens?|pwd|sas|sig|signature)(?![a-z])
)"""
_NAME = re.compile(_WORDS, re.VERBOSE)
_MANY = re.compile(r'(?:keys|tokens)(?![a-z])')
_NUMBER = re.compile(r'[0-9]{1,9}')

_CAMEL_CASE = re.compile(r'(?<=[a-z0-9])(?=[A-Z])')

# In a text: a name, perhaps in quotes, and what parts it from its value; then the value.
_NAMED = re.compile(r"""(?<![\w.-])(-{0,2}[A-Za-z][\w.-]*)(\\*["']?\s*[=:]\s*|(?<=\w)\s+)""")
_VALUE = re.compile(
    r"""\\*"(?:[^"\\]|\\.)*"? | \\*'[^']*'? | [\[{].* | [^\s,;&"'\]})\\]+""",
    re.VERBOSE | re.DOTALL,
)
_BEARER = re.compile(r'\b(Bearer|Basic)\s+[\w.~+/=-]+')
_USER_IN_URL = re.compile(
    r"""(?<=://)(?:
        [^/\s]*                                   # a name alone may be a token
        | [^/\s:@]{0,256}:(?!\d+/)[^\s@]{0,256}   # a slash in a password, which is no port
    )@""",
    re.VERBOSE,
)
_URL = re.compile(r"""https?://[^\s"'<>\\]+""", re.IGNORECASE)
_BETWEEN_PARTS = re.compile(r'([/?&;#!,]+)')
_MOST_QUOTING = 3
"""As often a part of an address may be percent-encoded and still be looked into."""

_VARIABLES = {
    '--s3_access_key_id': 'AWS_ACCESS_KEY_ID',
    '--s3_secret_access_key': 'AWS_SECRET_ACCESS_KEY',
    '--s3_session_token': 'AWS_SESSION_TOKEN',
}
"""By options of Beam: the variables of the environment with the same meaning."""

_NO_SECRETS = {'--dataflow_kms_key', '--no_auth'}
"""Options of Beam that only look as if they had a secret."""


def check_names(names: Sequence[str], own: Sequence[str], command: str) -> None:
    """Refuses options that neither a command nor Beam knows.

    Raises:
        InputError: one is unknown; the error suggests the nearest known name.
    """
    beam_names = list(_beam_parser()._option_string_actions)
    for name in names:
        if name in beam_names:
            continue
        sentence = f'{command} has no option {shown(name)[1:-1]}, nor has Beam'
        hint = did_you_mean(name, [*own, *beam_names])
        raise InputError(
            f'{"; ".join(filter(None, [sentence, hint]))} (what only a job server knows stands after --)'
        )


def check_flags(flags: Sequence[str], job_server: Sequence[str], command: str) -> None:
    """Refuses words that belong to no option, and values that Beam does not take.

    Args:
        flags: what a command's own parser does not know.
        job_server: what stands after `--`.
        command: its name.

    Raises:
        InputError: there is one.
    """
    without = dict(zip(flags, without_secrets(flags)))
    for flag, masked in without.items():
        try:
            flag.encode()
        except UnicodeEncodeError:
            raise InputError(f'{shown(masked)} is not UTF-8, as options of Beam must be') from None
    with _refused([*flags, *job_server]):
        parser = _beam_parser()
        _, left = parser.parse_known_args(list(flags))
        parser.parse_known_args([*flags, *job_server])
    if left:
        word, inputs = without[left[0]], ''
        if not word.startswith('-'):
            inputs = '; files are given by options, as --text FILE, or --source FILE --target FILE'
        raise InputError(
            f'{shown(word)} belongs to no option{inputs} (see tokbeam {command} --help)'
        )


def beam_options(flags: Sequence[str]) -> 'PipelineOptions':
    """Returns options as Beam holds them.

    Raises:
        InputError: Beam does not take them, or would print its help.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    said = io.StringIO()
    try:
        with _refused(flags), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            options = PipelineOptions(list(flags))
            # As the runner will ask for them, so that it is not the first to meet a mistake.
            options.get_all_options(retain_unknown_options=True)
    except SystemExit:
        reason = said.getvalue().partition('error: ')[2] or 'they ask for its help'
        raise InputError(f'Beam does not take its options: {_one_line(reason, flags)}') from None
    return options


@contextlib.contextmanager
def _refused(flags: Sequence[str]):
    try:
        yield
    except _WRONG_VALUE as error:
        reason = str(error) or type(error).__name__
        raise InputError(f'Beam does not take its options: {_one_line(reason, flags)}') from error


def _one_line(reason: str, flags: Sequence[str]) -> str:
    return text_without_secrets(' '.join(reason.split()), flags)


def _beam_parser() -> Parser:
    from apache_beam.options.pipeline_options import PipelineOptions

    beam_parser = Parser(prog='tokbeam', add_help=False)
    for options_class in PipelineOptions.__subclasses__():
        # Beam's own parser is one of argparse with two methods that none of these calls need.
        options_class._add_argparse_args(beam_parser)  # type: ignore[arg-type]
    return beam_parser


def without_secrets(flags: Sequence[str]) -> tuple[str, ...]:
    """Returns options as they may be written down: what looks like a secret is `***`.

    `['--s3_secret_access_key=HUSH', '--parallelism', '2']` gives
    `('--s3_secret_access_key=***', '--parallelism', '2')`. A value may be an argument of its own.
    """
    shown, name = [], ''
    for flag in flags:
        if flag.startswith('--') and len(flag) > 2:
            name, has_value, value = flag.partition('=')
            shown.append(name + has_value + _shown(name, value))
            name = '' if has_value else name
        else:
            shown.append(_shown(name, flag))
    return tuple(shown)


def refuse_secrets(flags: Sequence[str], runner: str) -> None:
    """Refuses secrets in the options of a job that runs elsewhere: a cluster shows them to whoever asks.

    Raises:
        InputError: an option has one.
    """
    name = ''
    for flag, masked in zip(flags, without_secrets(flags), strict=True):
        name = flag.partition('=')[0] if flag.startswith('--') else name
        if flag != masked and name not in _NO_SECRETS:
            variable = _VARIABLES.get(name, 'it')
            raise InputError(
                f'{shown(name)[1:-1]} has a secret, and the options of a job of --runner {runner} can be '
                f'read by everybody who reaches its cluster or its logs; leave it out, and set '
                f'{variable} in the environment of this command and of the workers'
            )


def text_without_secrets(text: str, flags: Sequence[str] = ()) -> str:
    """Returns a text as it may be shown: without what looks like a secret, in it or in options."""
    for flag, masked in zip(flags, without_secrets(flags)):
        value = flag.partition('=')[2] if flag.startswith('--') else flag
        if flag != masked and value:
            text = text.replace(value, HIDDEN)
    return _shown_text(text)


def url_without_secrets(url: str) -> str:
    """Returns an address as it may be written down, with `***` for each part that holds a secret.

    A part is a name and password before the host, a segment of the path, one of its parameters, or
    one of the query: `https://me:HUSH@h/a;token=HUSH?b=1&sig=HUSH` gives
    `https://***@h/a;token=***?b=1&sig=***`. What is percent-encoded is looked into.
    """
    url = _USER_IN_URL.sub(f'{HIDDEN}@', url)
    return ''.join(map(_shown_part, _BETWEEN_PARTS.split(url)))


def _shown(name: str, value: str) -> str:
    return HIDDEN if _is_secret(name, value) and value else _shown_text(value)


def _is_secret(name: str, value: str = '') -> bool:
    words = _CAMEL_CASE.sub('_', name).lower()
    # A number of keys or tokens is a setting.
    return any(
        not (_MANY.fullmatch(match[0]) and _NUMBER.fullmatch(value))
        for match in _NAME.finditer(words)
    )


def _shown_text(text: str) -> str:
    text = _USER_IN_URL.sub(f'{HIDDEN}@', text)
    text = _URL.sub(lambda match: url_without_secrets(match[0]), text)
    return _shown_named(text)


def _shown_part(part: str) -> str:
    plain = part
    for _ in range(_MOST_QUOTING):
        plain = urllib.parse.unquote(plain)
    name, has_value, value = plain.partition('=')
    if not (value and _is_secret(name, value)) and _shown_named(plain) == plain:
        return part
    # A value in which there are separators, encoded, would not be hidden to its end.
    name, has_value, _ = part.partition('=')
    return f'{name}={HIDDEN}' if has_value else HIDDEN


def _shown_named(text: str) -> str:
    text = _BEARER.sub(rf'\1 {HIDDEN}', text)
    parts, end = [], 0
    for named in _NAMED.finditer(text):
        name, parting = named.groups()
        # Only an option's value may follow its name after a space.
        if named.start() < end or not (parting.strip() or name.startswith('-')):
            continue
        value = _VALUE.match(text, named.end()) if _is_secret(name) else None
        if value and _is_secret(name, value[0]):
            parts += [text[end : value.start()], HIDDEN]
            end = value.end()
    return ''.join(parts) + text[end:]
