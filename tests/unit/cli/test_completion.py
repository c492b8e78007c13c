"""Completion scripts, run by the shells themselves as far as these are installed."""

import shutil
import subprocess

import pytest
from jobs import refuse
from pseudo_terminal import PseudoTerminal

from pipelines.cli.completion import completion_script
from pipelines.options.commands import known_commands
from tokcore.options import declared
from tokcore.schemes import scheme_names

LINES = [
    ('tokbeam ', ['build', 'tokenize', 'help', 'completion'], ['--source']),
    ('tokbeam bui', ['build'], ['count']),
    ('tokbeam build --dev-s', ['--dev-share', '--dev-source'], ['--dev-target', '--shards']),
    ('tokbeam vocab --scheme ', [*scheme_names()], ['--scheme', 'build']),
    ('tokbeam build --text a b --unknown s', ['stop'], ['token']),
    ('tokbeam tokenize --no-l', ['--no-lower-case'], ['--no-split-cjk']),
    ('tokbeam help schemes/b', ['schemes/bpe', 'schemes/byte'], ['build', 'schemes/word']),
    ('tokbeam completion f', ['fish'], ['bash']),
]


def shell(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f'{name} is not installed')
    return path


def output_of(*command: str) -> list[str]:
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stderr == ''
    return ended.stdout.splitlines()


def in_bash(line: str) -> list[str]:
    words = line.split(' ')
    arrays = f'COMP_WORDS=({" ".join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}'
    script = completion_script('bash')
    return output_of(
        *(shell('bash'), '--norc', '-c'),
        f'{script}\n{arrays}; _tokbeam; printf "%s\\n" "${{COMPREPLY[@]}}"',
    )


def in_fish(line: str) -> list[str]:
    script = completion_script('fish')
    found = output_of(shell('fish'), '--no-config', '-c', f'{script}\ncomplete -C "{line}"')
    return [each.partition('\t')[0].removesuffix('=') for each in found]


@pytest.mark.parametrize('completed_in', [in_bash, in_fish])
@pytest.mark.parametrize(('line', 'offered', 'others'), LINES, ids=[line for line, *_ in LINES])
def test_a_shell_offers_what_may_follow(completed_in, line, offered, others):
    found = completed_in(line)
    assert set(offered) <= set(found)
    assert not set(others) & set(found)


def test_bash_completes_what_follows_an_equals_sign():
    assert in_bash('tokbeam build --search = t2') == ['t2t']
    assert in_bash('tokbeam build --name = --search t2') == ['t2t']
    assert set(scheme_names()) <= set(in_bash('tokbeam build --scheme ='))


def test_bash_offers_files_where_an_option_takes_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'corpus.txt').touch()
    assert in_bash('tokbeam build --text a ') == ['corpus.txt']
    assert in_bash('tokbeam verify ') == ['corpus.txt']
    assert in_bash('tokbeam build --vocab-size ') == ['']


@pytest.mark.parametrize(
    ('typed', 'completed'),
    [
        ('tokbeam det', 'tokbeam detokenize '),
        ('tokbeam build --dev-sha', 'tokbeam build --dev-share '),
        ('tokbeam vocab --scheme wordp', 'tokbeam vocab --scheme wordpiece '),
        ('tokbeam help schemes/wordp', 'tokbeam help schemes/wordpiece '),
    ],
)
def test_zsh_completes_a_typed_line(tmp_path, typed, completed):
    script = tmp_path / 'script'
    script.write_text(completion_script('zsh'))
    terminal = PseudoTerminal()
    streams = dict.fromkeys(('stdin', 'stdout', 'stderr'), terminal.stream)
    typing = subprocess.Popen([shell('zsh'), '-f', '-i'], start_new_session=True, **streams)
    terminal.type(f'autoload -Uz compinit; compinit -u -D; eval "$(cat {script})"; print rea""dy\n')
    assert terminal.wait_for('ready')
    # A key of its own shows the line in words, whatever the terminal makes of it.
    terminal.type('show() { print -r -- "<$BUFFER>" }; zle -N show; bindkey ^X show; print se""t\n')
    assert terminal.wait_for('set')
    terminal.type(f'{typed}\t\x18')
    found = terminal.wait_for(f'<{completed}>', 20)
    typing.kill()
    typing.wait()
    seen = terminal.close()
    assert found, seen


@pytest.mark.parametrize('name', ['bash', 'zsh', 'fish'])
def test_a_script_has_every_option_and_is_correct(name, tmp_path):
    script = completion_script(name)
    for command in known_commands().values():
        for group in command.groups:
            for kind in group.kinds:
                assert all(option.name in script for option in declared(kind))
    (tmp_path / 'script').write_text(script)
    assert output_of(shell(name), '-n', str(tmp_path / 'script')) == []


def test_another_shell_is_refused():
    assert 'completion is for bash, zsh, fish, not for tcsh' in refuse('completion', 'tcsh')
    assert 'completion takes a shell' in refuse('completion')
