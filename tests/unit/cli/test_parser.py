"""The command line: subcommands, options and their help, and which scheme takes which option."""

import pathlib
import re

import pytest

from pipelines.cli.help import as_text, scheme_table, topic_help
from pipelines.cli.main import main
from pipelines.cli.parser import parse_command
from pipelines.options.commands import known_commands
from tokcore.corpus.corpus import MAX_LINE_BYTES
from tokcore.errors import InputError

DATASET = ['--name', 'enzh', '--output', 'out']
PAIRS = ['--source', 'a.en', '--target', 'a.zh']
COMMAND_LINES = {
    'build': ['build', *PAIRS, *DATASET, '--vocab-size', '8192'],
    'count': ['count', *PAIRS, '--output', 'counts'],
    'vocab': ['vocab', *PAIRS, '--vocab-size', '8192', '--output', 'vocab'],
    'encode': ['encode', *PAIRS, *DATASET, '--vocab', 'vocab'],
    'tokenize': ['tokenize', '--vocab', 'vocab'],
    'detokenize': ['detokenize', '--vocab', 'vocab'],
}

TRAIN = {'source': (), 'target': (), 'tsv': (), 'columns': None, 'text': ()}
DEV_AND_TEST = {
    f'{split}{name}': () for split in ('dev', 'test') for name in ('', '_source', '_target')
}
DATASET_DEFAULTS = {
    'shards': 10,
    'source_prefix': '',
    'target_prefix': '',
    'seed': 0,
}
VOCABULARY_DEFAULTS = {
    'search': 't2t',
    'min_count_range': None,
    'max_subtoken_length': 200,
    'reserved_token': (),
    'learner': 'auto',
}
RUNNING_DEFAULTS = {
    'workers': None,
    'overwrite': False,
    'max_line_size': MAX_LINE_BYTES,
}
SHUFFLE_DEFAULTS = {'memory': None, 'work': None}

# Of each command what may be left out, and what then holds; the contract of the commands' shape.
DEFAULTS = {
    'build': {
        **TRAIN,
        **DEV_AND_TEST,
        **DATASET_DEFAULTS,
        **VOCABULARY_DEFAULTS,
        **RUNNING_DEFAULTS,
        **SHUFFLE_DEFAULTS,
        'shared_vocab': False,
    },
    'count': {**TRAIN, **RUNNING_DEFAULTS, 'side': None, 'counts': ()},
    'vocab': {**TRAIN, **RUNNING_DEFAULTS, **VOCABULARY_DEFAULTS, 'counts': ()},
    'encode': {
        **TRAIN,
        **DEV_AND_TEST,
        **DATASET_DEFAULTS,
        **RUNNING_DEFAULTS,
        **SHUFFLE_DEFAULTS,
        'vocab': (),
    },
    'tokenize': {'vocab': None},
    'detokenize': {'vocab': None},
}
REQUIRED = {
    'build': ['name', 'output', 'vocab_size'],
    'count': ['output'],
    'vocab': ['output', 'vocab_size'],
    'encode': ['name', 'output'],
    'tokenize': [],
    'detokenize': [],
}

PAGE = pathlib.Path(__file__).parents[3] / 'docs' / 'schemes.md'


def options_of(command):
    """The names of a command's options as they are typed."""
    return [f'--{name.replace("_", "-")}' for name in [*DEFAULTS[command], *REQUIRED[command]]]


def without(arguments, option):
    """A command line less one option with its value."""
    place = arguments.index(option)
    return arguments[:place] + arguments[place + 2 :]


@pytest.mark.parametrize('command', DEFAULTS)
def test_every_option_has_its_default(command):
    options, _ = parse_command(COMMAND_LINES[command])
    vocabulary = ['vocab'] if command == 'encode' else 'vocab'
    given = {'source': ['a.en'], 'target': ['a.zh'], 'vocab': vocabulary}
    for name, default in DEFAULTS[command].items():
        found = getattr(options, name)
        assert found == default or found == given.get(name), name


@pytest.mark.parametrize('command', REQUIRED)
def test_what_is_required_is_asked_for(command):
    for name in REQUIRED[command]:
        option = f'--{name.replace("_", "-")}'
        with pytest.raises(InputError, match=f'required: {option}'):
            parse_command(without(COMMAND_LINES[command], option))


def test_a_list_of_one_command_line_does_not_reach_the_next():
    parse_command([*COMMAND_LINES['build'], '--reserved-token', 'X'])
    options, _ = parse_command(COMMAND_LINES['build'])
    assert options.reserved_token == ()


@pytest.mark.parametrize(
    ('wrong', 'near'),
    [
        ('--shard', '--shards'),
        ('--sorce', '--source'),
        ('--min-count-rang', '--min-count-range'),
        ('--direct_num_worker', '--direct_num_workers'),
        ('--runer', '--runner'),
    ],
)
def test_an_unknown_option_is_told_the_nearest_name(wrong, near):
    for arguments in ([f'{wrong}=1'], [wrong, '1']):
        with pytest.raises(InputError) as refused:
            parse_command([*COMMAND_LINES['build'], *arguments])
        assert f'no option {wrong},' in str(refused.value)
        assert f'did you mean {near}?' in str(refused.value)


def test_an_option_like_no_other_is_told_no_name():
    with pytest.raises(InputError, match='no option --zzzzqqqq') as refused:
        parse_command([*COMMAND_LINES['build'], '--zzzzqqqq'])
    assert 'did you mean' not in str(refused.value)


@pytest.mark.parametrize(
    ('command', 'option'),
    [('count', '--seed'), ('encode', '--vocab-size'), ('tokenize', '--workers')],
)
def test_an_option_of_another_command_is_unknown(command, option):
    with pytest.raises(InputError, match=f'{command} has no option {option}'):
        parse_command([*COMMAND_LINES[command], f'{option}=1'])


@pytest.mark.parametrize('command', COMMAND_LINES)
def test_there_are_no_abbreviations(command):
    for name in options_of(command):
        with pytest.raises(InputError) as refused:
            parse_command([*COMMAND_LINES[command], name[:-1]])
        assert f'no option {name[:-1]},' in str(refused.value)
        assert f'did you mean {name}?' in str(refused.value)


def test_a_misspelt_option_is_named_even_if_the_right_one_is_required():
    arguments = without(COMMAND_LINES['build'], '--vocab-size')
    with pytest.raises(InputError) as refused:
        parse_command([*arguments, '--vocab-siz', '8192'])
    assert 'no option --vocab-siz,' in str(refused.value)
    assert 'did you mean --vocab-size?' in str(refused.value)


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
    for arguments in (
        [*COMMAND_LINES['build'], *flags],
        ['build', *flags, *COMMAND_LINES['build'][1:]],
    ):
        options, beam_flags = parse_command(arguments)
        assert beam_flags == flags
        assert options.vocab_size == 8192


def test_what_only_a_job_server_knows_stands_after_two_dashes():
    options, flags = parse_command(
        [*COMMAND_LINES['build'], '--runner=PortableRunner', '--', '--job_server_secret=7', 'x']
    )
    assert flags == ['--runner=PortableRunner', '--job_server_secret=7', 'x']
    assert options.source == ['a.en']
    with pytest.raises(InputError, match='no option --job_server_secret'):
        parse_command([*COMMAND_LINES['build'], '--job_server_secret=7'])


def test_a_word_that_belongs_to_nothing_is_refused():
    for arguments in (['--seed', '1', 'stray'], ['--runner', 'DirectRunner', 'stray']):
        with pytest.raises(InputError, match='stray'):
            parse_command([*COMMAND_LINES['build'], *arguments])


def test_a_value_that_beam_cannot_take_is_refused(capsys):
    with pytest.raises(InputError, match='direct_num_workers'):
        parse_command([*COMMAND_LINES['build'], '--direct_num_workers=many'])
    assert capsys.readouterr().err == ''


@pytest.mark.parametrize('arguments', [['bild'], ['--seed', '1'], ['build', '--name']])
def test_a_command_line_without_a_command_or_a_value(arguments):
    with pytest.raises(InputError):
        parse_command(arguments)


def test_no_command_shows_the_commands_and_is_refused(capsys):
    with pytest.raises(InputError, match='no command'):
        parse_command([])
    text = capsys.readouterr().err
    assert all(command in text for command in COMMAND_LINES)


def test_a_refusal_is_one_line_and_status_2(capsys):
    assert main([*COMMAND_LINES['build'], '--shard', '3']) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith('tokbeam: ')


def test_multi_threading_is_refused_by_name(capsys, tmp_path):
    text, counts = tmp_path / 'text', tmp_path / 'counts'
    text.write_text('some words\n')
    arguments = ['count', '--text', str(text), '--output', str(counts)]
    assert main([*arguments, '--direct_running_mode=multi_threading']) == 2
    assert not counts.exists()
    [line] = capsys.readouterr().err.splitlines()
    assert 'multi_threading' in line
    assert '--workers' in line


def help_of(command, capsys):
    assert main(['help', command]) == 0
    return ' '.join(capsys.readouterr().out.split())


@pytest.mark.parametrize('command', COMMAND_LINES)
def test_help_names_every_option_and_its_default(command, capsys):
    text = help_of(command, capsys)
    for option in options_of(command):
        assert f'{option} ' in text, option
    stated = {
        '--shards': '10',
        '--seed': '0',
        '--search': 't2t',
        '--learner': 'auto',
        '--max-subtoken-length': '200',
        '--min-count-range': '1:1000',
        '--workers': 'the cores',
        '--columns': '0,1',
        '--side': 'both',
        '--memory': 'what is',
        '--max-line-size': '16MiB',
        '--work': '.tokbeam',
    }
    for option, default in stated.items():
        name = option[2:].replace('-', '_')
        if name in DEFAULTS[command]:
            described = text[text.index(f' {option} ') :]
            assert f'(default: {default}' in described, option


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        main(['--help'])
    text = capsys.readouterr().out
    assert all(command in text for command in COMMAND_LINES)


def test_version(capsys):
    assert main(['--version']) == 0
    assert capsys.readouterr().out.startswith('tokbeam ')


def test_help_and_readme_show_it():
    table = scheme_table(known_commands())
    assert as_text(table) in topic_help('schemes')
    page = PAGE.read_text()
    rows = ''.join(f'| `{option}` | {schemes} | {takers} |\n' for option, schemes, takers in table)
    assert f'| option | schemes | commands |\n| --- | --- | --- |\n{rows}' in page


def test_it_has_every_option_of_every_scheme():
    table = {
        option: (schemes, commands) for option, schemes, commands in scheme_table(known_commands())
    }
    assert table['--vocab-size'][1] == 'build, vocab'
    assert 'subword' in table['--reserved-token'][0]
    assert table['--template'] == ('all', 'build, encode, tokenize, detokenize')
    assert all(re.fullmatch('--[a-z-]+', option) for option in table)
