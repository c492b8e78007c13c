"""Options as fields: what is declared once, the help, a job file and manifests read."""

from dataclasses import MISSING, dataclass, make_dataclass

import pytest

from pipelines.options.beam import Parser
from pipelines.options.commands import Group, add_groups, known_commands
from pipelines.options.reading import (
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
class Learning:
    vocab_size: int = option('entries', WholeNumber(1, 99), 'N', changes_bytes=True)


@dataclass(frozen=True, kw_only=True)
class Searching(Learning):
    min_count: int = option('{range}', WholeNumber(1, 9), 'N', default=2, changes_bytes=True)
    threads: int = option('of this machine', WholeNumber(1, 9), default=1)
    given_ids: tuple[str, ...] = option(
        'one each time', str, default=(), name='reserved-token', many='repeated', changes_bytes=True
    )


@dataclass(frozen=True, kw_only=True)
class Merging(Learning):
    merges: int = option('at most', WholeNumber(1, 9), changes_bytes=True)
    newer: bool = option(
        'a switch', None, default=False, changes_bytes=True, unrecorded_default=True
    )


@dataclass(frozen=True, kw_only=True)
class Scheme:
    scheme: str = option('which', ['subword', 'pairs'], default='subword')


LEARNING = Choice('scheme', {'subword': Searching, 'pairs': Merging})


def names(kinds):
    return [each.name for kind in kinds for each in declared(kind)]


def test_a_field_is_an_option_of_its_name_unless_it_gives_another():
    found = {each.field: each for each in declared(Searching)}
    assert found['min_count'].name == 'min-count' and found['min_count'].key == 'min_count'
    assert found['given_ids'].name == 'reserved-token'
    assert found['min_count'].help == 'from 1 to 9'


def test_a_choice_has_each_option_of_its_kinds_once():
    assert names([LEARNING]) == [
        'vocab-size', 'min-count', 'threads', 'reserved-token', 'merges', 'newer'
    ]  # fmt: skip


def test_an_option_of_one_name_may_mean_something_else_in_another_kind():
    @dataclass(frozen=True, kw_only=True)
    class Other:
        vocab_size: int = option('something else, {range}', WholeNumber(1, 99), default=7)

    choice = Choice('scheme', {'subword': Searching, 'other': Other})
    found = {each.name: each for each in declared(choice)}['vocab-size']
    assert found.option.kind == WholeNumber(1, 99) and found.default is MISSING
    assert found.help == 'of subword: entries; of other: something else, from 1 to 99'


def test_another_kind_may_have_other_words():
    @dataclass(frozen=True, kw_only=True)
    class One:
        search: str = option('how', ['fast', 'exact'], default='fast')

    @dataclass(frozen=True, kw_only=True)
    class Two:
        search: str = option('how', ['exact', 'slow'], default='slow')

    choice = Choice('scheme', {'one': One, 'two': Two})
    [found] = declared(choice)
    assert found.option.kind == ('fast', 'exact', 'slow') and found.default is MISSING
    given = parsed(['--search', 'slow'], choice)
    refuse_unchosen(choice, given, 'two')
    with pytest.raises(InputError, match="^argument --search: 'slow' is none of fast, exact$"):
        refuse_unchosen(choice, given, None)


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


def parsed(arguments, *kinds):
    parser = Parser(prog='x')
    add_groups(parser, (Group(kinds),))
    return vars(parser.parse_args(arguments))


def from_file(**given):
    """The values of a job file's keys, as `cli.job_file` reads them, made a dataclass."""
    known = {each.key: each for kind in (Scheme, LEARNING) for each in declared(kind)}
    values = {key: option_value(known[key], value, key) for key, value in given.items()}
    scheme = values.get('scheme')
    refuse_misplaced([Scheme, LEARNING], values)
    return options_from(LEARNING.chosen(scheme), values)


def test_a_command_line_and_a_job_file_give_the_same():
    line = '--scheme subword --vocab-size 7 --reserved-token a --reserved-token b'
    given = parsed(line.split(), Scheme, LEARNING)
    from_line = options_from(LEARNING.chosen(given['scheme']), given)
    assert from_file(scheme='subword', vocab_size=7, reserved_token=['a', 'b']) == from_line
    assert from_line == Searching(vocab_size=7, given_ids=('a', 'b'))


def test_the_value_of_an_option_chooses_among_kinds():
    read = from_file(scheme='pairs', vocab_size='7', merges=2, newer=True)
    assert read == Merging(vocab_size=7, merges=2, newer=True)
    assert parsed(['--vocab-size=7'], LEARNING) == {'vocab_size': 7}  # `merges` is not for all


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        (
            {'vocab_size': 7, 'merges': 1},
            '--merges goes with --scheme=pairs, not with --scheme=subword',
        ),
        (
            {'vocab_size': 7, 'merges': 1, 'scheme': 'pairs', 'reserved_token': ['a']},
            '--reserved-token goes with --scheme=subword, not with --scheme=pairs',
        ),
        ({'vocab_size': 7, 'scheme': 'pairs'}, '--merges is missing'),
        ({}, '--vocab-size is missing'),
        ({'vocab_size': 100}, "vocab_size: '100' is not a whole number from 1 to 99"),
        ({'vocab_size': True}, 'vocab_size is a word or a number, not '),
        ({'vocab_size': 7, 'scheme': 'bytes'}, "scheme is 'bytes'; there are subword, pairs"),
        ({'vocab_size': 7, 'newer': 'yes', 'scheme': 'pairs'}, 'newer is true or false, not'),
    ],
)
def test_what_a_job_file_cannot_say_is_refused_by_name(given, said):
    with pytest.raises((InputError, TypeError)) as refused:
        from_file(**given)
    assert said in str(refused.value)


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
