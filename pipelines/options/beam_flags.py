"""Options that go to Beam: known to it or to a job server, and of values that it takes.

Beam's own parser prints its usage and ends the process; here each mistake is a sentence before any
work. What a job server alone knows stands after `--` and is passed on unread.
"""

import contextlib
import difflib
import io
import typing
from collections.abc import Sequence

from pipelines.options.secrets import text_without_secrets, without_secrets
from pipelines.options.strict_parser import Parser
from tokcore.errors import InputError
from tokcore.options.values import shown

if typing.TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

# What Beam's actions raise for a value, beside what argparse tells as an error.
_WRONG_VALUE = (ValueError, TypeError, AttributeError, AssertionError)


def check_names(names: Sequence[str], own: Sequence[str], command: str) -> None:
    """Refuses options that neither a command nor Beam knows.

    Args:
        names: of options, with their dashes.
        own: those of the command.
        command: its name.

    Raises:
        InputError: one is unknown; the nearest known name is told.
    """
    beam_names = list(_beam_parser()._option_string_actions)
    for name in names:
        if name in beam_names:
            continue
        near = difflib.get_close_matches(name, [*own, *beam_names], 1)
        hint = f'; did you mean {near[0]}?' if near else ''
        raise InputError(
            f'{command} has no option {shown(name)[1:-1]}, nor has Beam{hint} '
            '(what only a job server knows stands after --)'
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
    for flag, may_be_shown in zip(flags, without_secrets(flags)):
        try:
            flag.encode()
        except UnicodeEncodeError:
            raise InputError(
                f'{shown(may_be_shown)} is not UTF-8, as options of Beam must be'
            ) from None
    with _told([*flags, *job_server]):
        parser = _beam_parser()
        _, left = parser.parse_known_args(list(flags))
        parser.parse_known_args([*flags, *job_server])
    if left:
        word = dict(zip(flags, without_secrets(flags)))[left[0]]
        raise InputError(f'{shown(word)} belongs to no option; see tokbeam {command} --help')


def beam_options(flags: Sequence[str]) -> 'PipelineOptions':
    """Returns options as Beam holds them.

    Raises:
        InputError: Beam does not take them, or would print its help.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    said = io.StringIO()
    try:
        with _told(flags), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            options = PipelineOptions(list(flags))
            # As the runner will ask for them, so that it is not the first to meet a mistake.
            options.get_all_options(retain_unknown_options=True)
    except SystemExit:
        reason = said.getvalue().partition('error: ')[2] or 'they ask for its help'
        raise InputError(f'Beam does not take its options: {_in_a_line(reason, flags)}') from None
    return options


@contextlib.contextmanager
def _told(flags: Sequence[str]):
    try:
        yield
    except _WRONG_VALUE as error:
        reason = _in_a_line(str(error) or type(error).__name__, flags)
        raise InputError(f'Beam does not take its options: {reason}') from error


def _in_a_line(reason: str, flags: Sequence[str]) -> str:
    return text_without_secrets(' '.join(reason.split()), flags)


def _beam_parser() -> Parser:
    from apache_beam.options.pipeline_options import PipelineOptions

    beam_parser = Parser(prog='tokbeam', add_help=False)
    for options_class in PipelineOptions.__subclasses__():
        options_class._add_argparse_args(beam_parser)
    return beam_parser
