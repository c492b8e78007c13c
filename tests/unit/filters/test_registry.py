"""Filters by name: what may be asked for, and what is said of all else."""

import argparse
import pickle
import re

import pytest
from rows_of_text import applied

from tokcore.corpus.corpus import FilterSpec, RowFilter
from tokcore.errors import InputError
from tokcore.filters import registry
from tokcore.filters.registry import (
    converting_filters,
    filter_forms,
    filter_list,
    filter_names,
    filter_specs,
    filter_table,
    load_filters,
    make_filter,
)

EXAMPLES = [
    'length:1:200', 'length:0:5:tokens', 'ratio:3', 'ratio:1.25:tokens', 'different',
    'script:Latn:0.5', 'script:Hani:0.3:target', 'nfc', 'nfd', 'nfkc', 'nfkd', 'paracrawl',
    'clean_en_xx', 'clean_en_xx:target',
]  # fmt: skip


@pytest.mark.parametrize('spec', EXAMPLES)
def test_each_can_be_made_and_is_counted_under_the_name_that_it_was_asked_for(spec):
    assert filter_list(spec) == (spec,)
    made = make_filter(spec)
    assert isinstance(made, RowFilter)
    assert made.name == spec.partition(':')[0]


def test_every_name_is_among_the_examples_and_told_by_the_help():
    assert {each.partition(':')[0] for each in EXAMPLES} == set(filter_names())
    named = [re.match('[a-z_]+', each)[0] for each in filter_forms()[:-1]]
    assert named == list(filter_names())


def test_every_filter_declares_its_unit_and_examples_which_hold():
    table = filter_table()
    assert [form.strip('`') for form, *_ in table] == list(filter_forms())
    assert all(cell for row in table for cell in row)
    examples = [example for kind in registry._KINDS.values() for example in kind.examples]
    assert {example.spec.partition(':')[0] for example in examples} == set(filter_names())
    for example in examples:
        rows, _ = applied(make_filter(example.spec), [example.row])
        assert rows == list(example.result), example


def test_a_filter_only_converts_text_if_its_help_says_that_it_drops_nothing():
    kinds = registry._KINDS.items()
    assert converting_filters(EXAMPLES) == tuple(
        name for name, kind in kinds if 'drops nothing' in kind.does
    )
    assert converting_filters(['nfc', 'own_filters:function']) == ('nfc',)


def test_a_list_keeps_its_order_and_may_be_empty():
    assert filter_list('nfc, length:1:2,nfc') == ('nfc', 'length:1:2', 'nfc')
    assert filter_list('') == ()


REFUSED = {
    'lenght:1:200': 'did you mean length:MIN:MAX[:tokens]?',
    'rato:3': 'did you mean ratio:R[:tokens]?',
    'NFC': 'did you mean nfc?',
    'clean-en-xx': 'did you mean clean_en_xx[:source|target]?',
    'wholly-else': 'there are length, ratio, different',
    'nfc,,different': "no filter ''",
    'length': 'two lengths',
    'length:1': 'two lengths',
    'length:1:2:3': 'two lengths',
    'length:1:2:words': 'two lengths',
    'length:9:3': '9 is more than 3',
    'length:-1:3': "'-1' is not a whole number from 0 to 2^31 - 1",
    'length:1:4294967296': 'not a whole number from 0 to 2^31 - 1',
    'length:1:٣': 'not a whole number',
    'ratio:0.9': 'not a ratio from 1 to 1,000',
    'ratio:1001': 'not a ratio from 1 to 1,000',
    'ratio:1.00001': 'four decimals at most',
    'ratio:nan': 'not a ratio',
    'ratio:': 'not a ratio',
    'different:1': 'it takes no options',
    'nfc:x': 'it takes no options',
    'script:Latn': 'a code of ISO 15924 and a share',
    'script:Latin:0.5': 'not a code of ISO 15924, as Latn',
    'script:latn:0.5': 'not a code of ISO 15924, as Latn',
    'script:Qqqq:0.5': 'Unicode has no script Qqqq',
    'script:Zyyy:0.5': 'Unicode has no script Zyyy',
    'script:Latn:1.5': 'not a share from 0 to 1',
    'script:Latn:0.5:both': 'not a side, which is source or target',
    'clean_en_xx:en': 'not a side, which is source or target',
    'clean_en_xx:source:target': 'a side and nothing else',
    'a.b:c.d': 'there is no filter',
    'a b:c': 'there is no filter',
    'x' * 120 + ':f': 'has more than 120 bytes',
}


@pytest.mark.parametrize('spec', REFUSED)
def test_what_cannot_be_meant_is_refused_with_what_may_have_been(spec):
    with pytest.raises(argparse.ArgumentTypeError, match=re.escape(REFUSED[spec])) as refused:
        filter_list(spec)
    assert '\n' not in str(refused.value)


def test_filters_cross_process_borders_as_words_and_are_made_once():
    asked = filter_specs(['length:1:5', 'script:Latn:0.5'])
    assert [each.spec for each in asked] == ['length:1:5', 'script:Latn:0.5']
    assert asked[0].stamp == '' != asked[1].stamp
    crossed = pickle.loads(pickle.dumps(asked))
    assert crossed == asked
    assert load_filters(crossed) is load_filters(asked)


def test_a_worker_whose_tables_are_others_refuses_them():
    with pytest.raises(
        InputError, match=r'letters \w+\) than where the job was begun \(letters 0\)'
    ):
        load_filters((FilterSpec('script:Latn:0.5', 'letters 0'),))


def test_no_filter_is_imported_before_it_is_made():
    import subprocess
    import sys

    asked = ','.join(each for each in EXAMPLES if not each.startswith('script'))
    ended = subprocess.run(
        [sys.executable, '-c', f'import sys; from {registry.__name__} import filter_list; '
         f'filter_list({asked!r}); print(*sys.modules)'],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert not {'numpy', 'numba', 'regex'} & set(ended.stdout.split())
