"""Formats are told apart nowhere but in the modules that they are."""

import ast
import pathlib
import subprocess
import sys

import pytest

from tokcore.corpus.block_stats import LineTally
from tokcore.corpus.formats.registry import (
    all_formats,
    all_reasons,
    corpus_format,
    format_names,
)

ROOT = pathlib.Path(__file__).parents[3]

NAMES = {'both', 'lines', 'source', 'target', *format_names()}


def compared_words(path: pathlib.Path) -> list[str]:
    """The words that a module compares something with, or takes cases of."""
    compared = [
        constant.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Compare, ast.MatchValue))
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    ]
    return [word for word in compared if word in NAMES]


def test_nobody_asks_for_the_name_of_a_format():
    own = {ROOT / f'{each.__module__.replace(".", "/")}.py' for each in all_formats()}
    modules = {path for room in ('tokcore', 'pipelines') for path in (ROOT / room).rglob('*.py')}
    assert own < modules
    found = {path: compared_words(path) for path in modules - own}
    assert not {path.name: words for path, words in found.items() if words}


def test_a_format_is_had_by_its_name():
    assert [corpus_format(name).name for name in format_names()] == [
        'bitext', 'tsv', 'jsonl', 'parquet', 'sgm', 'tmx', 'tmx-lines', 'labelled', 'text',
    ]  # fmt: skip
    assert corpus_format('tsv')((2, 0)).options == {'columns': (2, 0)}
    with pytest.raises(ValueError, match="'pairs' is none of bitext, tsv, jsonl, parquet, sgm, "):
        corpus_format('pairs')


def test_options_belong_to_their_format_alone():
    with pytest.raises(TypeError):
        corpus_format('text')(columns=(0,))


def test_formats_are_known_without_anything_heavy():
    known = (
        'import sys; from tokcore.corpus.formats.registry import all_formats; all_formats(); '
        'print({"numba", "apache_beam", "pyarrow"} & sys.modules.keys())'
    )
    command = [sys.executable, '-c', known]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ended.stdout == 'set()\n'


def test_reasons_are_those_of_all_formats_and_of_each():
    assert all_reasons() == (
        'filter_no_row', 'filter_too_long', 'invalid_csv', 'invalid_json', 'invalid_utf8',
        'lone_surrogate', 'missing_column', 'missing_field', 'not_a_string', 'null',
        'outside_segment', 'too_long', 'undefined_entity', 'unknown_label', 'unmatched_segment',
        'unstorable_token', 'wrong_type',
    )  # fmt: skip


def test_a_tally_records_reasons_in_order_beside_what_it_always_told():
    tally = LineTally('train', 9, 2, 1, {'too_short': 4, 'invalid_utf8': 2, 'too_long': 0})
    assert list(tally.left_out) == ['invalid_utf8', 'too_short']
    assert tally.rejected == 6
    record = {
        'split': 'train', 'lines': 9, 'examples': 2, 'empty': 1,
        'invalid_utf8': 2, 'missing_column': 0, 'too_short': 4,
    }  # fmt: skip
    assert tally.record() == record
    assert LineTally.of_record(record) == tally
    with pytest.raises(ValueError, match='empty'):
        LineTally('train', 1, 0, 0, {'empty': 1})
