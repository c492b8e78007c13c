"""Further columns and labels: what stands in a row goes along as features of its example."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import files_of, manifest_of
from jobs import refuse, succeed, write

from tokcore.reading import dataset as reading

RECORDS = [
    {
        'text': f'the {number} words of a text, {"good" if number % 3 else "bad"} ones',
        'meta': {'id': f'doc-{number:x}\t"é"'},
        'score': number / 8 - 3,
        'views': (-1) ** number * number**9,
        'kind': ('neg', 'pos', 'neutral')[number % 3],
    }
    for number in range(60)
]
KEEP = 'meta.id=id,score:float,views:int'
BUILD = ['--name', 'kept', '--shards', 2, '--scheme', 'byte']


def jsonl(folder):
    lines = ''.join(json.dumps(each) + '\n' for each in RECORDS)
    return ['--jsonl', write(folder / 'a.jsonl', lines.encode())]


def parquet(folder):
    pq.write_table(pa.Table.from_pylist(RECORDS), folder / 'a.parquet', row_group_size=7)
    return ['--parquet', folder / 'a.parquet']


def quoted_tsv(folder):
    text = io.StringIO()
    rows = csv.writer(text, delimiter='\t', lineterminator='\n')
    rows.writerow(['views', 'text', 'meta.id', 'score', 'kind'])
    for each in RECORDS:
        rows.writerow(
            [each['views'], each['text'], each['meta']['id'], each['score'], each['kind']]
        )
    path = write(folder / 'a.tsv', text.getvalue().encode())
    return ['--tsv', path, '--columns', 'text', '--quoting', 'csv']


FORMATS = {'jsonl': jsonl, 'parquet': parquet, 'quoted tsv': quoted_tsv}


def examples(folder, split='train'):
    """Returns all features of all examples, by TensorFlow's own parser."""
    import tensorflow as tf  # for seconds, which all processes of pytest would take to collect

    found = []
    for path in sorted(folder.glob(f'*-{split}-*')):
        for record in tf.data.TFRecordDataset(str(path)):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            kinds = {name: each.WhichOneof('kind') for name, each in features.items()}
            found.append(
                {
                    name: (kind, list(getattr(features[name], kind).value))
                    for name, kind in kinds.items()
                }
            )
    return found


def float32(number):
    return float(np.float32(number))


@pytest.mark.parametrize(
    'name', ['jsonl', 'parquet', pytest.param('quoted tsv', marks=pytest.mark.slow)]
)
def test_further_fields_stand_beside_the_text(name, tmp_path):
    given = FORMATS[name](tmp_path)
    out = tmp_path / 'out'
    succeed('build', *given, '--keep', KEEP, *BUILD, '@item-size', 200, '--output', out)
    found = examples(out)
    assert len(found) == len(RECORDS)
    by_id = {each['id'][1][0].decode(): each for each in found}
    for record in RECORDS:
        example = by_id[record['meta']['id']]
        assert set(example) == {'id', 'score', 'views', 'targets'}
        assert example['id'][0] == 'bytes_list'
        assert example['score'] == ('float_list', [float32(record['score'])])
        assert example['views'] == ('int64_list', [record['views']])
        assert example['targets'][0] == 'int64_list'
    succeed('build', *given, *BUILD, '--output', tmp_path / 'plain')
    texts = [each['targets'] for each in examples(tmp_path / 'plain')]
    assert [each['targets'] for each in found] == texts


@pytest.mark.parametrize(
    'name', [pytest.param('jsonl', marks=pytest.mark.slow), 'parquet', 'quoted tsv']
)
def test_a_label_is_the_targets(name, tmp_path):
    given = FORMATS[name](tmp_path)
    labels = write(tmp_path / 'labels', b'neg\nneutral\npos\n')
    out = tmp_path / 'out'
    asked = ['--label', 'kind', '--labels', labels, '--keep', 'meta.id']
    succeed('build', *given, *asked, *BUILD, '--output', out)
    found = {each['meta.id'][1][0].decode(): each for each in examples(out)}
    for record in RECORDS:
        example = found[record['meta']['id']]
        number = ['neg', 'neutral', 'pos'].index(record['kind'])
        assert example['targets'] == ('int64_list', [number])
        assert example['inputs'][0] == 'int64_list'
    assert reading.open_dataset(str(out)).features == ('inputs',)


def test_a_label_may_be_a_float(tmp_path):
    succeed(
        'build', *jsonl(tmp_path), '--label', 'score:float', *BUILD, '--output', tmp_path / 'out'
    )
    kinds = {each['targets'][0] for each in examples(tmp_path / 'out')}
    assert kinds == {'float_list'}


ODD = [
    ('{"text": "a", "n": 1.5}', 'wrong_type'),
    ('{"text": "a", "n": true}', 'wrong_type'),
    ('{"text": "a", "n": "7"}', 'wrong_type'),
    ('{"text": "a", "n": null}', 'wrong_type'),
    ('{"text": "a", "n": 9223372036854775808}', 'wrong_type'),
    ('{"text": "a"}', 'missing_field'),
    ('{"text": 5, "n": "x"}', 'not_a_string'),
]


def test_a_value_that_does_not_fit_leaves_out_its_row(tmp_path):
    lines = [line for line, _ in ODD] + ['{"text": "the last", "n": -9223372036854775808}']
    path = write(tmp_path / 'a.jsonl', '\n'.join(lines).encode())
    out = tmp_path / 'out'
    asked = ['--jsonl', path, '--keep', 'n:int', *BUILD[:4], '--scheme', 'word', '--vocab-size', 30]
    succeed('build', *asked, '--on-error', 'skip', '--output', out)
    [tally] = manifest_of(out)['lines']
    wanted = [reason for _, reason in ODD]
    assert {reason: tally[reason] for reason in set(wanted)} == {
        reason: wanted.count(reason) for reason in set(wanted)
    }
    assert tally['lines'] == tally['examples'] + len(ODD)
    assert [each['n'] for each in examples(out)] == [('int64_list', [-(1 << 63)])]
    said = refuse('build', *asked, '--output', tmp_path / 'stopped')
    assert 'a.jsonl, line 1: the line at byte 0 has a value that does not fit' in said


def test_a_column_of_another_type_is_refused_before_any_work(tmp_path):
    said = refuse(
        'build', *parquet(tmp_path), '--keep', 'score:int', *BUILD, '--output', tmp_path / 'x'
    )
    assert 'a.parquet: the column score is double, not whole numbers' in said


@pytest.mark.parametrize(
    ('given', 'hint'),
    [
        (jsonl, 'fields meta.id,views (numbers are kept as FIELD:int or FIELD:float)'),
        (parquet, 'not text or bytes; choose another with --keep or --label, or give views:int'),
    ],
)
def test_how_numbers_are_kept_is_said_where_they_are_named_as_text(given, hint, tmp_path):
    words = ['build', *given(tmp_path), '--keep', 'meta.id,views', *BUILD]
    assert hint in refuse(*words, '--output', tmp_path / 'out')


REFUSED = {
    'labels alone': (['--labels', 'labels'], '--labels needs --label'),
    'two texts': (['--fields', 'text,kind', '--label', 'views'], '--label is for one text'),
    'a name twice': (['--keep', 'score,score:int'], "'score' is named twice"),
    'the name of the text': (['--keep', 'views=targets'], 'targets is the name'),
    'another format of shards': (
        ['--keep', 'score:float', '--output-format', 'text'], 'need TFRecords'
    ),
    'a label in bytes': (['--label', 'kind:bytes'], 'is not the field of a label'),
    'a prefix of a label': (['--label', 'views', '--target-prefix', 'x'], 'the targets are a label'),
}  # fmt: skip


@pytest.mark.parametrize('name', REFUSED)
def test_what_does_not_go_together_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / 'labels', b'neg\npos\n')
    more, sentence = REFUSED[name]
    said = refuse('build', *jsonl(tmp_path), *more, *BUILD, '--output', tmp_path / 'out')
    assert sentence in said


@pytest.mark.parametrize(
    ('first', 'second', 'sentence'),
    [
        ('keep = "views"', 'keep = "views:int"', 'train targets, views:bytes and dev targets, views:int'),
        ('label = "kind"', 'label = "kind:float"', 'train inputs, targets:int and dev inputs, targets:float'),
        (
            'label = "kind"\nlabels = "names"',
            'label = "kind"\nlabels = "others"',
            "train has the labels 'neg, pos' and dev has 'pos, neg'",
        ),
    ],
)  # fmt: skip
def test_all_splits_have_the_same_features_and_numbers_of_labels(tmp_path, first, second, sentence):
    jsonl(tmp_path)
    write(tmp_path / 'names', b'neg\npos\n')
    write(tmp_path / 'others', b'pos\nneg\n')
    tables = [
        f'[[{split}]]\nformat = "jsonl"\npaths = "a.jsonl"\n{options}\n'
        for split, options in (('train', first), ('dev', second))
    ]
    job = write(tmp_path / 'job.toml', ''.join(tables).encode())
    assert sentence in refuse('build', job, *BUILD, '--output', tmp_path / 'out')


def test_a_split_may_have_numbers_for_the_names_of_another_or_fewer_names(tmp_path):
    jsonl(tmp_path)
    write(tmp_path / 'numbers.jsonl', b'{"text": "a", "kind": 1}\n')
    write(tmp_path / 'names', b'neg\npos\nneutral\n')
    write(tmp_path / 'fewer', b'neg\npos\n')
    write(tmp_path / 'two.jsonl', b'{"text": "b", "kind": "pos"}\n')
    job = ''.join(
        f'[[{split}]]\nformat = "jsonl"\npaths = "{path}.jsonl"\nlabel = "kind"\n{labels}\n'
        for split, path, labels in (
            ('train', 'a', 'labels = "names"'),
            ('dev', 'numbers', ''),
            ('test', 'two', 'labels = "fewer"'),
        )
    )
    out = tmp_path / 'out'
    succeed('build', write(tmp_path / 'job.toml', job.encode()), *BUILD, '--output', out)
    assert [examples(out, split)[0]['targets'] for split in ('dev', 'test')] == [
        ('int64_list', [1])
    ] * 2


def test_a_kept_name_of_any_letters_changes_neither_an_update_nor_what_where_shows(
    tmp_path, capsys
):
    given = [*jsonl(tmp_path), '--keep', 'views=größe:int', *BUILD]
    gone = write(tmp_path / 'gone', b'a.jsonl:0\n')
    succeed('encode', *given, '--leave-out', gone, '--output', tmp_path / 'whole')
    out = tmp_path / 'out'
    succeed('encode', *given, '--output', out)
    succeed('update', out, '--remove', gone, '--output', tmp_path / 'updated')
    assert files_of(tmp_path / 'updated') == files_of(tmp_path / 'whole')
    capsys.readouterr()
    succeed('where', out, 7, '--json')
    row = json.loads(capsys.readouterr().out)
    assert row['ids']['targets'] == reading.open_dataset(out)['train'][7]['targets'].tolist()


@pytest.mark.slow
def test_bytes_do_not_depend_on_how_it_is_run(tmp_path):
    given = [*jsonl(tmp_path), '--keep', KEEP, *BUILD]
    succeed('build', *given, '--workers', 1, '--output', tmp_path / 'one')
    for number, how in enumerate((['--workers', 2], ['@shuffle', 'engine'])):
        out = tmp_path / f'other-{number}'
        succeed('build', *given, *how, '@item-size', 300, '--output', out)
        assert files_of(out) == files_of(tmp_path / 'one')


@pytest.fixture
def labelled(tmp_path):
    """Options of texts with their labels in another file, and the files."""
    names = ('neg', 'neutral', 'pos')
    columns = {
        'text': [each['text'] for each in RECORDS],
        'line_labels': [each['kind'] for each in RECORDS],
    }
    files = {
        name: write(tmp_path / name, ''.join(f'{word}\n' for word in words).encode())
        for name, words in {**columns, 'labels': names}.items()
    }
    options = [
        word for name, path in files.items() for word in ('--' + name.replace('_', '-'), path)
    ]
    return options, files


def test_other_splits_of_labelled_texts_are_named_in_a_job_file(labelled, tmp_path):
    options, files = labelled
    said = refuse('build', *options, '--dev', files['text'], *BUILD, '--output', tmp_path / 'out')
    assert 'has --text and --line-labels; name the files in a table [[dev]]' in said
    paths = f'paths = {{ text = "{files["text"]}", line_labels = "{files["line_labels"]}" }}'
    table = f'[[dev]]\nformat = "labelled"\nlabels = "{files["labels"]}"\n{paths}\n'
    job = write(tmp_path / 'job.toml', table.encode())
    succeed('build', job, *options, *BUILD, '--output', tmp_path / 'out')
    dev, train = (
        sorted(map(repr, examples(tmp_path / 'out', split))) for split in ('dev', 'train')
    )
    assert dev == train and len(dev) == len(RECORDS)


@pytest.mark.parametrize(
    ('more', 'sentence'),
    [
        ([], 'is not a whole number of 64 bits'),
        (['--target-prefix', 'x'], 'the targets are a label'),
        (['--label', 'kind'], '--label goes with --tsv or --jsonl or --parquet'),
    ],
)
def test_what_does_not_go_with_labelled_texts_is_refused(labelled, tmp_path, more, sentence):
    asked = [*labelled[0][:4], *more, *BUILD, '--output', tmp_path / 'out']
    assert sentence in refuse('build', *asked)
