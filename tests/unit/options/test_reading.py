"""Options as fields: what is declared once, the help, a job file and manifests read."""

from dataclasses import MISSING, dataclass, make_dataclass

import pytest

from pipelines.options.commands import Group, add_groups, known_commands
from pipelines.options.reading import (
    Parser,
    field_values,
    options_from,
    refuse_misplaced,
    refuse_unchosen,
)
from tokcore.errors import InputError
from tokcore.keywords import option_value
from tokcore.options import Choice, WholeNumber, columns, declared, option, path, recorded


@dataclass(frozen=True, kw_only=True)
class Files:
    text: tuple[str, ...] = option('lines', path, default=(), many='words', reads=True)
    tsv: tuple[str, ...] = option('columns', path, default=(), many='words', reads=True)
    columns: tuple[int, int] | None = option('which', columns, default=None, goes_with=('tsv',))


@dataclass(frozen=True, kw_only=True)
class Searching:
    vocab_size: int = option('entries', WholeNumber(1, 99), 'N', changes_bytes=True)
    min_count: int = option('{range}', WholeNumber(1, 9), 'N', default=2, changes_bytes=True)
    threads: int = option('of this machine', WholeNumber(1, 9), default=1)
    order: str = option('how', ['fast', 'exact'], default='fast')
    given_ids: tuple[str, ...] = option(
        'one each time', str, default=(), name='reserved-token', many='repeated', changes_bytes=True
    )


@dataclass(frozen=True, kw_only=True)
class Merging:
    vocab_size: int = option('something else', WholeNumber(1, 99), default=7, changes_bytes=True)
    merges: int = option('at most', WholeNumber(1, 9), changes_bytes=True)
    order: str = option('how', ['exact', 'slow'], default='slow')
    newer: bool = option(
        'a switch', None, default=False, changes_bytes=True, unrecorded_default=True
    )


LEARNING = Choice('scheme', {'subword': Searching, 'pairs': Merging})


def test_a_field_is_an_option_of_its_name_unless_it_gives_another():
    found = {each.field: each for each in declared(Searching)}
    assert found['min_count'].name == 'min-count' and found['min_count'].key == 'min_count'
    assert found['given_ids'].name == 'reserved-token'
    assert found['min_count'].help == 'from 1 to 9'


def test_a_choice_has_each_option_of_its_kinds_once():
    found = {each.name: each for each in declared(LEARNING)}
    assert [*found] == [
        *('vocab-size', 'min-count', 'threads', 'order', 'reserved-token', 'merges', 'newer')
    ]
    assert found['vocab-size'].help == 'of subword: entries; of pairs: something else'
    assert found['vocab-size'].default is MISSING
    assert found['order'].option.kind == ('fast', 'exact', 'slow')
    assert found['order'].default is MISSING


@pytest.mark.parametrize(
    'declaration',
    [
        option('without a value', None, default=False),
        option('within other bounds', WholeNumber(1, 9)),
        option('several', WholeNumber(1, 99), many='repeated'),
        option('one of', ['a', 'b']),
    ],
)
def test_an_option_of_one_name_has_values_of_one_kind(declaration):
    other = make_dataclass('Other', [('vocab_size', object, declaration)], kw_only=True)
    with pytest.raises(ValueError, match='--vocab-size is declared twice'):
        declared(Choice('scheme', {'subword': Searching, 'other': other}))


def test_a_manifest_records_what_changes_bytes():
    assert recorded(Searching(vocab_size=3, threads=4)) == {
        'vocab_size': 3, 'min_count': 2, 'reserved_token': ()
    }  # fmt: skip
    assert recorded(Merging(vocab_size=3, merges=1)) == {'vocab_size': 3, 'merges': 1}
    assert recorded(Merging(vocab_size=3, merges=1, newer=True))['newer'] is True


def typed(line):
    parser = Parser(prog='x')
    add_groups(parser, [Group((LEARNING,))])
    return vars(parser.parse_args(line.split()))


def chosen(scheme, values):
    refuse_unchosen(LEARNING, values, scheme)
    return options_from(LEARNING.kinds[scheme], values)


def in_file(**given):
    known = {each.key: each for each in declared(LEARNING)}
    return {key: option_value(known[key], value, key) for key, value in given.items()}


def test_a_command_line_and_a_job_file_give_the_same():
    values = typed('--vocab-size 7 --reserved-token a --reserved-token b')
    expected = Searching(vocab_size=7, given_ids=('a', 'b'))
    assert chosen('subword', values) == expected
    assert chosen('subword', in_file(vocab_size=7, reserved_token=['a', 'b'])) == expected
    read = in_file(vocab_size='7', merges=2, newer=True, order='slow')
    assert chosen('pairs', read) == Merging(vocab_size=7, merges=2, newer=True)
    assert typed('--vocab-size=7') == {'vocab_size': 7}


@pytest.mark.parametrize(
    ('scheme', 'given'),
    [
        ('subword', {'vocab_size': 7, 'merges': 1}),
        ('pairs', {'vocab_size': 7, 'merges': 1, 'reserved_token': ['a']}),
        ('pairs', {'merges': 7, 'order': 'fast'}),
        ('pairs', {'vocab_size': 7}),
        ('subword', {}),
        ('subword', {'vocab_size': 100}),
        ('subword', {'vocab_size': True}),
        ('pairs', {'merges': 7, 'newer': 'yes'}),
    ],
)
def test_what_does_not_fit_the_chosen_options_is_refused(scheme, given):
    with pytest.raises((InputError, TypeError)):
        chosen(scheme, in_file(**given))


def test_an_option_that_does_not_go_with_what_is_read_is_refused_with_both_names():
    columns = {'columns': (0, 1)}
    with pytest.raises(InputError, match=r'^--columns goes with --tsv$'):
        refuse_misplaced([Files], columns)
    with pytest.raises(InputError, match='goes with --tsv, not with --text'):
        refuse_misplaced([Files], {**columns, 'text': ['x']})
    refuse_misplaced([Files], {**columns, 'tsv': ['x']})


def test_a_larger_dataclass_takes_the_same_values():
    assert field_values(Searching, {'vocab_size': 1, 'reserved_token': ['a'], 'x': 1}) == {
        'vocab_size': 1, 'given_ids': ('a',)
    }  # fmt: skip


@pytest.mark.parametrize('command', known_commands())
def test_a_command_has_no_option_twice(command):
    every = [each.key for each in known_commands()[command].options]
    assert len(every) == len(set(every))
