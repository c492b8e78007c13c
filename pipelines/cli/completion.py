"""Completion of command lines in bash, zsh and fish, as scripts that shtab makes of the parser.

    source <(tokbeam completion bash)          # in ~/.bashrc
    eval "$(tokbeam completion zsh)"           # in ~/.zshrc, after compinit
    tokbeam completion fish | source           # in ~/.config/fish/config.fish

A script holds all that it needs: nothing is started while a line is completed.
"""

import argparse

import shtab

from pipelines.cli.help import topics_of
from pipelines.cli.parser import command_parser
from pipelines.options.commands import known_commands
from pipelines.options.vocabulary import known_scheme
from tokcore.errors import InputError
from tokcore.options import PATH_KINDS
from tokcore.schemes import scheme_names

_SHELLS = ('bash', 'zsh', 'fish')

_WORDS_OF_BASH = """
# bash cuts words at `=`.
_tokbeam() {
    local words=() word
    for word in "${COMP_WORDS[@]:0:COMP_CWORD + 1}"; do [[ $word == = ]] || words+=("$word"); done
    [[ ${COMP_WORDS[COMP_CWORD]} == = ]] && words+=('')
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    _shtab_tokbeam
}
complete -o bashdefault -F _tokbeam tokbeam
"""


def completion_script(shell: str) -> str:
    """Returns the script that completes `tokbeam` in a shell; raises InputError for another shell."""
    if shell not in _SHELLS:
        raise InputError(
            f'completion is for {", ".join(_SHELLS)}, not for {shell}; give one of them'
        )
    parser = command_parser()
    [commands] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    for command in commands.choices.values():
        for action in command._actions:
            if action.type in PATH_KINDS:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.type is known_scheme:
                action.choices = scheme_names()
    topics = [topic for topic in topics_of() if topic != 'schemes/NAME']
    topics += [*(f'schemes/{name}' for name in scheme_names()), *known_commands()]
    commands.add_parser('help', help='explain a topic').add_argument('topic', choices=topics)
    shells = commands.add_parser('completion', help='print a completion script')
    shells.add_argument('shell', choices=_SHELLS)
    return shtab.complete(parser, shell) + (_WORDS_OF_BASH if shell == 'bash' else '')
