"""Completion of command lines in bash, zsh and fish, as scripts made of the declarations of options.

    source <(tokbeam completion bash)          # in ~/.bashrc
    source <(tokbeam completion zsh)           # in ~/.zshrc, after compinit
    tokbeam completion fish | source           # in ~/.config/fish/config.fish

A script holds all that it needs: nothing is started while a line is completed.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipelines.cli.help import topics_of
from pipelines.options.commands import known_commands
from pipelines.options.vocabulary import known_scheme
from tokcore.errors import InputError
from tokcore.options import PATH_KINDS, Choice, Declared, Kind, declared, flag
from tokcore.schemes import scheme_names

_MOST_ABOUT = 70
"""Characters of a description beside an option."""


@dataclass(frozen=True)
class _Completed:
    """An option as a shell completes it.

    Attributes:
        name: with its dashes.
        about: what it is for, in a few words.
        takes: 'nothing', 'words', 'files', or 'text', which nothing is known of.
        words: that it takes.
    """

    name: str
    about: str
    takes: str = 'nothing'
    words: tuple[str, ...] = ()


def completion_script(shell: str) -> str:
    """Returns the script that completes `tokbeam` in a shell; raises InputError for another shell."""
    if shell not in _SCRIPTS:
        raise InputError(
            f'completion is for {", ".join(_SCRIPTS)}, not for {shell}; give one of them'
        )
    return '\n'.join(_SCRIPTS[shell]()) + '\n'


def _options() -> dict[str, list[_Completed]]:
    """The options of each command."""
    by_command = {}
    for name, command in known_commands().items():
        options = [
            option
            for group in command.groups
            for kind in group.kinds
            for declaration in declared(kind)
            for option in _completed(declaration, _words(kind, declaration))
        ]
        by_command[name] = [*options, _Completed('--help', 'the options that most people need')]
    return by_command


def _words(kind: Kind, declaration: Declared) -> tuple[str, ...]:
    """The words that an option chooses from; those of all schemes, where they differ between these."""
    if declaration.option.kind is known_scheme:
        return tuple(scheme_names())
    dataclasses = kind.kinds.values() if isinstance(kind, Choice) else [kind]
    kinds = [
        other.option.kind
        for dataclass_ in dataclasses
        for other in declared(dataclass_)
        if other.name == declaration.name
    ]
    return tuple(
        dict.fromkeys(word for words in kinds if isinstance(words, tuple) for word in words)
    )


def _completed(declaration: Declared, words: tuple[str, ...]) -> Iterator[_Completed]:
    name = flag(declaration.name)
    kind, about = declaration.option.kind, _about(declaration.help)
    if kind is None:
        yield _Completed(name, about)
        if declaration.default is not False:
            yield _Completed(f'--no-{name[2:]}', f'not: {about}'[:_MOST_ABOUT])
    elif words:
        yield _Completed(name, about, 'words', words)
    else:
        yield _Completed(name, about, 'files' if kind in PATH_KINDS else 'text')


def _about(help: str) -> str:
    """The beginning of a help, without characters that mean something to a shell."""
    text = re.split(r'; |: | \(', help.replace('%%', '%'))[0]
    text = re.sub(r'[\'"`\[\]\\$]', '', text)
    return text if len(text) <= _MOST_ABOUT else f'{text[: _MOST_ABOUT - 1]}…'


def _further_words() -> dict[str, tuple[str, ...]]:
    """What comes after the words that are not commands with options."""
    topics = [topic for topic in topics_of() if topic != 'schemes/NAME']
    schemes = [f'schemes/{name}' for name in scheme_names()]
    return {'help': (*topics, *schemes, *known_commands()), 'completion': tuple(_SCRIPTS)}


def _summaries() -> dict[str, str]:
    """All first words, each with what it is for."""
    of_commands = {name: command.summary for name, command in known_commands().items()}
    return of_commands | {
        'help': 'explain a topic',
        'completion': 'print a completion script',
    }


def _bash() -> Iterator[str]:
    # bash cuts words at `=`, and completes files where the function finds nothing.
    yield '_tokbeam() {'
    yield '    local current=${COMP_WORDS[COMP_CWORD]} option= words= index'
    yield '    COMPREPLY=()'
    yield '    [[ $current == = ]] && current='
    yield '    for ((index = COMP_CWORD - 1; index > 1; index--)); do'
    yield '        [[ ${COMP_WORDS[index]} == --* ]] && option=${COMP_WORDS[index]} && break'
    yield '    done'
    yield '    if ((COMP_CWORD == 1)); then'
    yield f"        words='{' '.join([*_summaries(), '--help', '--version'])}'"
    yield '    elif [[ $current == -* ]]; then'
    yield '        case ${COMP_WORDS[1]} in'
    for command, options in _options().items():
        yield f"            {command}) words='{' '.join(option.name for option in options)}' ;;"
    yield '        esac'
    yield '    else'
    yield '        case "${COMP_WORDS[1]} $option" in'
    for command, words in _further_words().items():
        yield f"            '{command} ') words='{' '.join(words)}' ;;"
    for command, options in _options().items():
        for option in options:
            if option.words:
                yield f"            '{command} {option.name}') words='{' '.join(option.words)}' ;;"
    yield '        esac'
    yield '    fi'
    yield '    COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield '}'
    yield 'complete -o default -F _tokbeam tokbeam'


def _zsh() -> Iterator[str]:
    yield '#compdef tokbeam'
    yield '_tokbeam() {'
    yield '    local -a commands'
    yield '    commands=('
    for name, summary in _summaries().items():
        yield f"        '{name}:{summary}'"
    yield '    )'
    yield '    if ((CURRENT == 2)); then'
    yield '        _describe command commands'
    yield '        return'
    yield '    fi'
    yield '    shift words'
    yield '    ((CURRENT--))'
    yield '    case $words[1] in'
    for command, words in _further_words().items():
        yield f"        {command}) _arguments '1:topic:({' '.join(words)})' ;;"
    for command, options in _options().items():
        yield f'        {command}) _arguments \\'
        for option in options:
            yield f"            '{_zsh_option(option)}' \\"
        yield "            '*:file:_files' ;;"
    yield '    esac'
    yield '}'
    yield 'compdef _tokbeam tokbeam'


def _zsh_option(option: _Completed) -> str:
    about = f'[{option.about.replace(":", " ")}]'
    values = {'words': f'({" ".join(option.words)})', 'files': '_files', 'text': ' '}
    if option.takes == 'nothing':
        return f'{option.name}{about}'
    return f'*{option.name}={about}:{option.name[2:]}:{values[option.takes]}'


def _fish() -> Iterator[str]:
    for name, summary in _summaries().items():
        yield f"complete -c tokbeam -n __fish_use_subcommand -f -a {name} -d '{summary}'"
    for command, words in _further_words().items():
        seen = f"-n '__fish_seen_subcommand_from {command}'"
        yield f"complete -c tokbeam {seen} -f -a '{' '.join(words)}'"
    for command, options in _options().items():
        seen = f"-n '__fish_seen_subcommand_from {command}'"
        for option in options:
            takes = {'nothing': '', 'text': ' -x', 'files': ' -r -F'}.get(
                option.takes, f" -x -a '{' '.join(option.words)}'"
            )
            yield f"complete -c tokbeam {seen} -l {option.name[2:]}{takes} -d '{option.about}'"


_SCRIPTS: dict[str, Callable[[], Iterator[str]]] = {'bash': _bash, 'zsh': _zsh, 'fish': _fish}
