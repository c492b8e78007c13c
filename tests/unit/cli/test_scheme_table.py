"""The table of which option belongs to which scheme and command."""

import pathlib
import re

from pipelines.cli.parser import command_parser
from pipelines.cli.scheme_table import as_markdown, as_text, scheme_table
from pipelines.options.command_options import known_commands

README = pathlib.Path(__file__).parents[3] / 'README.md'


def test_help_and_readme_show_it():
    table = scheme_table(known_commands())
    assert as_text(table) in command_parser().format_help()
    assert as_markdown(table) in README.read_text()


def test_it_has_every_option_of_every_scheme():
    table = {option: (schemes, commands) for option, schemes, commands in scheme_table(known_commands())}
    assert table['--vocab-size'][1] == 'build, vocab'
    assert 'subword' in table['--reserved-token'][0]
    assert table['--template'] == ('all', 'build, encode, tokenize, detokenize')
    assert all(re.fullmatch('--[a-z-]+', option) for option in table)
