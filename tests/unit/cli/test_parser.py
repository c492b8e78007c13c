"""The command line: subcommands, options and their defaults, and which scheme takes which option."""

import pathlib
import re

import pytest

from pipelines.cli.help import as_text, scheme_table, topic_help
from pipelines.cli.main import main
from pipelines.cli.parser import parse_command
from pipelines.options.commands import known_commands
from tokcore import __version__
from tokcore.errors import InputError

DATASET = ['--name', 'enzh', '--output', 'out']
PAIRS = ['--source', 'a.en', '--target', 'a.zh']
SIZE = ['--vocab-size', '8192']
LINES = {
    'build': ['build', *PAIRS, *DATASET, *SIZE],
    'count': ['count', *PAIRS, '--output', 'counts'],
    'vocab': ['vocab', *PAIRS, *SIZE, '--output', 'vocab'],
    'encode': ['encode', *PAIRS, *DATASET, '--vocab', 'vocab'],
    'tokenize': ['tokenize', '--vocab', 'vocab'],
    'detokenize': ['detokenize', '--vocab', 'vocab'],
}
BUILD = LINES['build']

READING = {'tsv': (), 'text': (), 'columns': None, 'max_line_size': 16 << 20, 'on_error': 'stop'}
SPLITS = {'dev': (), 'dev_source': (), 'test_target': (), 'shards': 10, 'seed': 0}
LEARNING = {
    'search': 't2t',
    'min_count_range': None,
    'max_subtoken_length': 200,
    'reserved_token': (),
    'learner': 'auto',
}
DEFAULTS = {
    'build': {**READING, **SPLITS, **LEARNING, 'shared_vocab': False, 'memory': None},
    'count': {**READING, 'side': None, 'counts': (), 'workers': None},
    'vocab': {**READING, **LEARNING, 'counts': (), 'overwrite': False},
    'encode': {**READING, **SPLITS, 'source_prefix': '', 'work': None},
}
"""Of each command what may be left out, and what then holds: the contract of its shape."""

REQUIRED = {
    'build': ['--name', '--output', '--vocab-size'],
    'count': ['--output'],
    'vocab': ['--output', '--vocab-size'],
    'encode': ['--name', '--output'],
}

PAGE = pathlib.Path(__file__).parents[3] / 'docs' / 'options.md'
CITATION = pathlib.Path(__file__).parents[3] / 'CITATION.cff'


def without(arguments, option):
    """A command line less one option with its value."""
    index = arguments.index(option)
    return arguments[:index] + arguments[index + 2 :]


@pytest.mark.parametrize('command', DEFAULTS)
def test_every_option_has_its_default(command):
    parse_command([*LINES['build'], '--reserved-token', 'X'])  # which does not reach the next
    options, _ = parse_command(LINES[command])
    assert {name: getattr(options, name) for name in DEFAULTS[command]} == DEFAULTS[command]


@pytest.mark.parametrize('command', REQUIRED)
def test_what_is_required_is_asked_for(command):
    for option in REQUIRED[command]:
        with pytest.raises(InputError, match=f'required: {option}'):
            parse_command(without(LINES[command], option))


@pytest.mark.parametrize(
    ('wrong', 'near'),
    [
        ('--shard', '--shards'),
        ('--sorce', '--source'),
        ('--min-count-rang', '--min-count-range'),
        ('--direct_num_worker', '--direct_num_workers'),
        ('--runer', '--runner'),
        ('--zzzzqqqq', None),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(wrong, near):
    hint = f'did you mean {near}?' if near else '(what only a job server knows'
    for arguments in ([f'{wrong}=1'], [wrong, '1']):
        with pytest.raises(InputError) as refused:
            parse_command([*BUILD, *arguments])
        assert f'no option {wrong},' in str(refused.value) and hint in str(refused.value)


REFUSED = [
    [*LINES['count'], '--seed=1'],  # of another command
    [*LINES['encode'], '--vocab-size=1'],
    [*LINES['tokenize'], '--workers=1'],
    [*without(BUILD, '--vocab-size'), '--vocab-siz', '8192'],
    [*BUILD, '--job_server_secret=7'],
    [*BUILD, '--seed', '1', 'stray'],
    [*BUILD, '--runner', 'DirectRunner', 'stray'],
    [*BUILD, '--direct_num_workers=many'],
    [*BUILD, '--direct_running_mode=multi_threading'],
    *([*BUILD, f'{option}=--'] for option in ('--on-error', '--text', '--job_name')),
    ['bild'],
    ['--seed', '1'],
    ['build', '--name'],
]


@pytest.mark.parametrize('arguments', REFUSED, ids=lambda arguments: ' '.join(arguments[-2:]))
def test_a_refusal_is_one_line_and_status_2(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith('tokbeam: ')
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize('command', LINES)
def test_there_are_no_abbreviations(command):
    flags = known_commands()[command].flags
    for name in flags:
        if name[:-1] in flags:
            continue
        with pytest.raises(InputError) as refused:
            parse_command([*LINES[command], name[:-1]])
        assert f'no option {name[:-1]},' in str(refused.value)


@pytest.mark.parametrize(
    'flags',
    [
        ['--runner=FlinkRunner', '--flink_master=localhost:8081'],
        ['--runner', 'DirectRunner', '--direct_num_workers', '2'],
        ['--direct_running_mode=multi_processing'],
        ['--temp_location=/tmp/x', '--streaming'],
    ],
)
def test_options_of_beam_pass(flags):
    for arguments in ([*BUILD, *flags], ['build', *flags, *BUILD[1:]]):
        options, beam_flags = parse_command(arguments)
        assert beam_flags == flags
        assert options.vocab_size == 8192


def test_what_only_a_job_server_knows_stands_after_two_dashes():
    options, flags = parse_command(
        [*BUILD, '--runner=PortableRunner', '--', '--job_server_secret=7', 'x']
    )
    assert flags == ['--runner=PortableRunner', '--job_server_secret=7', 'x']
    assert options.source == ['a.en']


def test_a_flag_of_two_schemes_takes_no_value():
    line = ['tokenize', '--vocab', 'v', '--scheme', 'bpe', '--allow-special-tokens']
    assert parse_command(line)[0].allow_special_tokens is True
    assert not getattr(parse_command(line[:-1])[0], 'allow_special_tokens', False)


def test_help_lists_the_commands_and_no_command_is_refused_with_it(capsys):
    with pytest.raises(SystemExit):
        main(['--help'])
    shown = capsys.readouterr().out
    with pytest.raises(InputError, match='no command'):
        parse_command([])
    for text in (shown, capsys.readouterr().err):
        assert all(
            re.search(f'^ +{command}\\b', text, re.MULTILINE) for command in known_commands()
        )


def test_version(capsys):
    assert main(['--version']) == 0
    assert capsys.readouterr().out == f'tokbeam {__version__}\n'
    assert f'\nversion: {__version__}\n' in CITATION.read_text()


def test_the_page_and_the_help_have_each_option_of_the_schemes():
    table = scheme_table(known_commands())
    assert as_text(table) in topic_help('schemes')
    page = PAGE.read_text()
    rows = ''.join(f'| `{option}` | {schemes} |\n' for option, schemes, _ in table)
    assert f'| option | schemes |\n| --- | --- |\n{rows}' in page
    by_option = {option: (schemes, commands) for option, schemes, commands in table}
    assert by_option['--vocab-size'][1] == 'build, vocab'
    assert 'subword' in by_option['--reserved-token'][0]
    assert by_option['--template'] == ('all', 'build, encode, tokenize, detokenize')
    assert all(re.fullmatch('--[a-z-]+', option) for option in by_option)
