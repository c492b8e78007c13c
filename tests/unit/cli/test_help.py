"""The help: short where it is asked for first, all of it by `tokbeam help COMMAND`, and by topics."""

import functools
import pathlib
import re
import textwrap

import pytest
from jobs import refuse

from pipelines.cli.help import (
    all_help,
    command_help,
    topic_help,
    topics_of,
)
from pipelines.cli.main import main
from pipelines.cli.parser import command_parser, parse_command
from pipelines.options.commands import known_commands
from tokcore.errors import InputError
from tokcore.filters.registry import filter_table
from tokcore.options import declared, flag
from tokcore.schemes import scheme_names

COMMANDS = known_commands()
PAGE = pathlib.Path(__file__).parents[3] / 'docs' / 'corpora.md'


@pytest.mark.parametrize('name', COMMANDS)
def test_help_begins_with_two_examples_that_the_parser_takes(name):
    lines = command_help(name, COMMANDS[name]).replace('\\\n    ', '').splitlines()
    examples = [line.strip() for line in lines[:6] if line.startswith('  tokbeam ')]
    assert len(examples) == 2
    for example in examples:
        words = re.sub(' [<>] [^ ]+', '', example.replace("'", '')).split()
        options, beam = parse_command(words[1:])
        assert options.command == name and beam == []


@pytest.mark.parametrize('name', COMMANDS)
def test_help_has_some_twenty_options_and_says_where_all_of_them_are(name):
    command = COMMANDS[name]
    text = command_help(name, command)
    named = re.findall('^  --([a-z-]+)', text, re.MULTILINE)
    essential = command.essential or [option.name for option in command.options]
    assert sorted(named) == sorted(essential)
    assert len(named) <= 24 and len(text.splitlines()) <= 95
    assert (f'All options: tokbeam help {name}.' in text) == (len(named) < len(command.options))


@pytest.mark.parametrize('name', ['verify', 'where', 'inspect', 'report', 'compare'])
def test_how_a_command_reports_comes_after_what_it_is_for(name):
    names = [option.name for option in COMMANDS[name].options]
    own = names.index('json')
    assert own > 0 and names[own : own + 2] == ['json', 'progress']


@pytest.mark.parametrize('name', COMMANDS)
def test_all_of_the_help_has_every_option(name):
    text = all_help(name, COMMANDS[name])
    assert '%%' not in text
    for group in COMMANDS[name].groups:
        for option in (each for kind in group.kinds for each in declared(kind)):
            assert flag(option.name) in text


def test_help_and_the_page_show_every_filter_as_it_is_declared():
    rows = [
        ('filter', 'what it does', 'unit', 'examples'),
        ('---',) * 4,
        *((*about, '; '.join(examples)) for *about, examples in filter_table()),
    ]
    escaped = ([cell.replace('|', '\\|') for cell in row] for row in rows)
    assert ''.join(f'| {" | ".join(row)} |\n' for row in escaped) in PAGE.read_text()
    text = re.sub(r'\s+', ' ', topic_help('filters'))
    for form, does, unit, examples in filter_table():
        shown = f'{form} {does}. Unit: {unit}. {" ".join(examples)}'.replace('`', '')
        assert re.sub(r'\s+', ' ', shown) in text


def test_every_topic_and_every_scheme_has_a_text(capsys):
    topics = [topic for topic in topics_of() if topic != 'schemes/NAME']
    for topic in [*topics, *COMMANDS, *(f'schemes/{name}' for name in scheme_names())]:
        assert main(['help', topic]) == 0
        assert len(capsys.readouterr().out) > 80, topic
    assert main(['help']) == 0
    listed = capsys.readouterr().out
    assert all(topic in listed for topic in topics)


def test_the_topic_of_schemes_names_all_of_them():
    names = scheme_names()
    assert f'{", ".join(names)}: which options each has' in ' '.join(topic_help().split())
    about = topic_help('schemes').partition('An option of')[0].replace('--scheme', '')
    assert [word for word in re.findall(r'\w+', about) if word in names] == [*names]


def test_a_scheme_has_its_own_options_alone():
    text = topic_help('schemes/bpe')
    assert '--merges' in text and '--search' not in text


def test_the_example_of_a_job_file_is_one(tmp_path):
    job = tmp_path / 'job.toml'
    job.write_text(textwrap.dedent(topic_help('jobs').partition('\n\n')[2]))
    options, _ = parse_command(['build', str(job)])
    assert (options.name, options.vocab_size) == ('enzh', 32768)
    [dataset] = options.datasets['train']
    assert dataset.paths['source'] == (str(tmp_path / 'train.*.en.gz'),)


def test_an_unknown_topic_is_told_the_nearest():
    with pytest.raises(InputError, match=r'no topic formts; did you mean formats\?'):
        topic_help('formts')
    assert 'help takes one topic' in refuse('help', 'formats', 'filters')


TEXTS = {
    **{
        f'{name} --help': functools.partial(command_help, name, COMMANDS[name]) for name in COMMANDS
    },
    **{
        f'help {topic}': functools.partial(topic_help, topic)
        for topic in (None, *topics_of()[:-1], *COMMANDS)
    },
    '--help': lambda: command_parser().format_help(),
}


@pytest.mark.parametrize('columns', [40, 60, 80, 200])
@pytest.mark.parametrize('text', TEXTS)
def test_lines_break_between_words_where_the_terminal_ends(monkeypatch, columns, text):
    monkeypatch.setenv('COLUMNS', '10000')
    words = TEXTS[text]().replace(' \\\n', '').split()
    monkeypatch.setenv('COLUMNS', str(columns))
    assert TEXTS[text]().replace(' \\\n', '').split() == words
    for line in TEXTS[text]().splitlines():
        assert len(line) <= min(columns, 100) or len(line.split()) == 1, line
