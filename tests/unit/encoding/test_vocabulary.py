"""What surrounds a row: as it is typed, as ids, and off again."""

import argparse

import pytest

from tokcore.encoding.vocabulary import (
    NO_TEMPLATE,
    SpecialIds,
    Template,
    default_template_ids,
    special_ids_by_name,
    template,
    template_ids,
)
from tokcore.errors import InputError


class Entries:
    """A vocabulary of these names."""

    def __init__(self, *names):
        self._names = names

    def id_of(self, token):
        return self._names.index(token) if token in self._names else None

    @property
    def special_ids(self):
        return special_ids_by_name(self.id_of)


BERT = Entries('[PAD]', '[UNK]', '[CLS]', '[SEP]', 'word')


def test_a_template_has_the_row_once():
    assert template('  [CLS]  $A\t[SEP] ') == '[CLS] $A [SEP]'
    for wrong in ('', '[CLS]', '$A $A', '[CLS]$A'):
        with pytest.raises(argparse.ArgumentTypeError, match='hold \\$A once'):
            template(wrong)


def test_tokens_of_a_template_must_be_in_the_vocabulary():
    assert template_ids('[CLS] word $A [SEP]', BERT) == Template((2, 4), (3,))
    assert template_ids('$A', BERT) == NO_TEMPLATE
    with pytest.raises(InputError, match="'\\[BOS\\]', which the vocabulary does not have"):
        template_ids('[BOS] $A', BERT)


def test_the_default_template_falls_back_to_the_end():
    assert default_template_ids('[CLS] $A [SEP]', BERT) == Template((2,), (3,))
    assert default_template_ids('[CLS] $A [SEP]', Entries('<s>', '</s>')) == Template((), (1,))
    assert default_template_ids('[CLS] $A [SEP]', Entries('word')) == NO_TEMPLATE


def test_a_template_is_removed_from_ids():
    around = Template((2, 4), (3,))
    assert around.size == 3
    assert around.stripped([2, 4, 7, 8, 3]) == [7, 8]
    assert around.stripped([7, 8]) == [7, 8]
    assert around.stripped([2, 7, 3]) == [2, 7]
    assert NO_TEMPLATE.stripped([3]) == [3]


def test_special_ids_are_found_by_the_names_of_their_tokens():
    assert BERT.special_ids == SpecialIds(pad=0, begin=2, end=3, unknown=1)
    nmt = Entries('<unk>', '<s>', '</s>')
    assert nmt.special_ids == SpecialIds(begin=1, end=2, unknown=0)
    assert Entries('<pad>', '<EOS>', 'UNK').special_ids == SpecialIds(pad=0, end=1, unknown=2)
    assert Entries('word').special_ids == SpecialIds()
