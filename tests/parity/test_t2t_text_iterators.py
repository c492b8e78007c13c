"""Classes and tables against Tensor2Tensor's iterators: the same multiset of examples."""

import collections

import pytest
from dataset_files import read_shards
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import succeed, write
from original_problems import problem_module
from read_format import rows_of_block

from tokcore.corpus.declarations import Labelled, Tsv

NAMES = ('negative', 'positive', 'no idea')
_FIXED = [HealthCheck.function_scoped_fixture]


@pytest.fixture(scope='module')
def text_problems():
    return problem_module('text_problems')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('lines')


text = st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\n'), max_size=10)


space = st.sampled_from(['', ' ', '\r', '\u3000'])


def written(path, lines):
    path.write_bytes(''.join(f'{line}\n' for line in lines).encode())
    return str(path)


def lines_of(path):
    with open(path, 'rb') as file:
        return file.read()


@settings(suppress_health_check=_FIXED)
@given(st.lists(st.tuples(text, st.integers(0, 2), space), max_size=9))
@pytest.mark.parametrize('names', [(), NAMES])
def test_labels_of_a_file_of_their_own(text_problems, folder, names, rows):
    source = written(folder / 'inputs', [text for text, _, _ in rows])
    words = [names[number] if names else str(number) for _, number, _ in rows]
    labels = written(
        folder / 'labels', [space + word for word, (_, _, space) in zip(words, rows, strict=True)]
    )
    examples = text_problems.text2class_txt_iterator(source, labels, list(names) or None)
    # A text without any word is an example there, whose inputs are EOS alone.
    wanted = [(each['inputs'], each['label']) for each in examples if each['inputs']]
    found = rows_of_block(Labelled(labels=names or None), lines_of(source), lines_of(labels))
    [side], [column] = found.sides, found.extra_features
    assert [(side.row(each), int(column.values[each])) for each in range(len(found))] == wanted
    assert found.rejects == ()


def test_a_label_that_is_none_of_the_names_stops_the_original(text_problems, folder):
    source = written(folder / 'inputs', ['a', 'b'])
    labels = written(folder / 'labels', ['negative', 'unheard of'])
    with pytest.raises(KeyError):
        list(text_problems.text2class_txt_iterator(source, labels, list(NAMES)))
    found = rows_of_block(Labelled(labels=NAMES), lines_of(source), lines_of(labels))
    assert [each.reason for each in found.rejects] == ['unknown_label'] and len(found) == 1


cell = st.one_of(text, st.sampled_from(['', ' ', 'a', 'b c', '字']))
table = st.lists(st.lists(cell, min_size=1, max_size=5).map('\t'.join), max_size=9)


@settings(suppress_health_check=_FIXED)
@given(table)
def test_targets_that_keep_tabs(text_problems, folder, lines):
    # White space before a line is stripped there with the tabs in it, so that of a row without a
    # source the target's first field becomes one: here such a row is empty.
    lines = [line for line in lines if not line.replace('\r', '')[:1].isspace()]
    path = written(folder / 'table.tsv', lines)
    examples = text_problems.text2text_txt_tab_iterator(path)
    wanted = [(each['inputs'], each['targets']) for each in examples]
    rows = rows_of_block(Tsv(keep_tabs=True), lines_of(path))
    assert [tuple(side.row(each) for side in rows.sides) for each in range(len(rows))] == wanted


def multiset(examples):
    return collections.Counter(repr(sorted(each.items())) for each in examples)


def test_shards_are_the_examples_of_the_original(text_problems, t2t_text_encoder, tmp_path):
    texts = [f'The {number} words\tof no. {number % 7}, and "more"' for number in range(90)]
    names = [NAMES[number % 3] for number in range(90)]
    source = write(tmp_path / 'inputs', ''.join(f'{each}\n' for each in texts).encode())
    labels = write(tmp_path / 'labels', ''.join(f'{each}\n' for each in names).encode())
    known = write(tmp_path / 'names', ''.join(f'{each}\n' for each in NAMES).encode())
    job = ['--name', 'kinds', '--vocab-size', 90, '--shards', 2, '--labels', known]
    out = tmp_path / 'own'
    succeed('build', '--text', source, '--line-labels', labels, *job, '--output', out)
    [vocabulary] = out.glob('vocab.*')
    encoder = t2t_text_encoder.SubwordTextEncoder(str(vocabulary))
    wanted = multiset(
        {'inputs': [*encoder.encode(each['inputs']), 1], 'targets': [each['label']]}
        for each in text_problems.text2class_txt_iterator(str(source), str(labels), list(NAMES))
    )
    assert multiset(each for shard in read_shards(out) for each in shard) == wanted
    lines = ''.join(f'{name}\t{text}\n' for name, text in zip(names, texts, strict=True))
    table = write(tmp_path / 'table.tsv', lines.encode())
    asked = ['--tsv', table, '--columns', 1, '--label', 0, '--keep-tabs']
    succeed('build', *asked, *job, '--output', tmp_path / 'columns')
    assert multiset(each for shard in read_shards(tmp_path / 'columns') for each in shard) == wanted
