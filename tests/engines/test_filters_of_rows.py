"""`--clean`: what filters leave is counted and encoded alike, and the same however a job is run."""

import dataclasses
import json
import pathlib
import unicodedata

import pytest
from dataset_files import (
    files_of,
    lines_of,
    manifest_of,
    read_shards,
    shards_and_vocabularies,
    texts_of,
)
from generated_text import kept_pairs
from jobs import refuse, succeed, write
from own_filters import without_odd_ones

from pipelines.jobs.corpus import SplitPaths, find_corpus
from pipelines.shuffle.plan import _dataset_content, plan_json
from tokcore.corpus.corpus import FilterSpec

CLEAN = 'length:2:60,ratio:6,different,script:Latn:0.5:source,nfkc,own_filters:without_odd_ones'
ASKED = ['--name', 'small', '--shards', 3, '--vocab-size', 900]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(pathlib.Path(__file__).parent)


def cleaned(pairs):
    """Returns what comes of pairs, and how many each filter drops, in plain Python."""
    dropped = dict.fromkeys(('length', 'ratio', 'different', 'own_filters:without_odd_ones'), 0)
    found = []
    for source, target in kept_pairs(pairs):
        lengths = sorted(map(len, (source, target)))
        letters = [each for each in source if each.isalpha()]
        assert all('LATIN' in unicodedata.name(each) for each in letters), 'no script drops any'
        if not 2 <= lengths[0] <= lengths[1] <= 60:
            dropped['length'] += 1
        elif lengths[1] > 6 * lengths[0]:
            dropped['ratio'] += 1
        elif source == target:
            dropped['different'] += 1
        else:
            normal = [unicodedata.normalize('NFKC', text).strip() for text in (source, target)]
            made = without_odd_ones(*normal)
            made = made if isinstance(made, list) else [made]
            for each in made:
                if each and all(text.strip() for text in each):
                    found.append(tuple(text.strip() for text in each))
                else:
                    dropped['own_filters:without_odd_ones'] += 1
    return sorted(found), {name: count for name, count in sorted(dropped.items()) if count}


@pytest.fixture(scope='module')
def corpus(small, tmp_path_factory):
    """The small corpus, and some pairs that filters are for."""
    pairs = small.pairs + [('same', 'same'), ('one', '字' * 70), ('ab', '字' * 13), ('ﬁve', '１２')]
    folder = tmp_path_factory.mktemp('to-clean')
    text = ''.join(f'{source}\t{target}\n' for source, target in pairs)
    return pairs, write(folder / 'pairs.tsv', text.encode())


def build(corpus, folder, *more):
    succeed('build', '--tsv', corpus[1], *ASKED, '--clean', CLEAN, '--output', folder, *more)
    return folder


@pytest.fixture(scope='module')
def built(corpus, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(pathlib.Path(__file__).parent)
        folder = tmp_path_factory.mktemp('cleaned') / 'out'
        return build(corpus, folder, '--keep-rejected', '--workers', 1)


def test_what_they_leave_is_encoded_and_what_they_drop_is_counted(corpus, built):
    expected, dropped = cleaned(corpus[0])
    assert set(dropped) == {'length', 'ratio', 'different', 'own_filters:without_odd_ones'}
    assert sorted(texts_of(built)) == expected
    lines = lines_of(built)
    assert lines['filtered'] == dropped
    assert lines['lines'] == len(corpus[0])
    assert lines['added'] == len(expected) - lines['lines'] + lines['empty'] + sum(dropped.values())
    counted = manifest_of(built / 'counts.inputs')
    assert counted['lines'][0]['filtered'] == dropped
    assert counted['options']['clean'] == manifest_of(built)['options']['clean']


def test_the_vocabulary_is_that_of_what_they_leave(corpus, built, tmp_path):
    expected, _ = cleaned(corpus[0])
    clean = ''.join(f'{source}\t{target}\n' for source, target in expected)
    path = write(tmp_path / 'clean.tsv', clean.encode())
    succeed('build', '--tsv', path, *ASKED, '--output', tmp_path / 'out')
    names = [path.name for path in built.glob('vocab.*')]
    assert len(names) == 2
    for name in names:
        assert (tmp_path / 'out' / name).read_bytes() == (built / name).read_bytes()


def test_bytes_do_not_depend_on_how_it_is_run_nor_on_who_asks(corpus, built, tmp_path):
    """Rows that a filter adds are shuffled by the engine, as they are by one worker."""
    clean = json.dumps(CLEAN.split(','))
    text = f'[[train]]\nformat = "tsv"\npaths = "{corpus[1]}"\nclean = {clean}\n'
    job = write(tmp_path / 'job.toml', f'{text}[running]\nkeep_rejected = true\n'.encode())
    engine = ['@shuffle', 'engine', '@item-size', 400]
    succeed('build', job, *ASKED, *engine, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(built)


def test_what_was_dropped_is_kept_with_its_place_in_the_order_of_the_file(corpus, built):
    data = corpus[1].read_bytes()
    names = {f'train.{name}.jsonl': count for name, count in lines_of(built)['filtered'].items()}
    assert {path.name for path in (built / 'rejected').iterdir()} == set(names)
    listed = {each['name']: each['rows'] for each in manifest_of(built)['rejected']}
    assert listed == {f'rejected/{name}': count for name, count in names.items()}
    for name, count in names.items():
        rows = [json.loads(line) for line in (built / 'rejected' / name).open('rb')]
        assert len(rows) == count
        offsets = [each['offset'] for each in rows]
        assert offsets == sorted(offsets)
        for each in rows:
            assert each['file'] == 'pairs.tsv'
            line = data[each['offset'] :].split(b'\n')[0].decode()
            if 'own' not in name:
                texts = [each['source'], each['target']]
                assert [text.strip() for text in line.split('\t')] == texts


def test_what_is_dropped_is_kept_only_if_asked_for_and_changes_no_shard(corpus, built, tmp_path):
    folder = build(corpus, tmp_path / 'out')
    assert not (folder / 'rejected').exists()
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(built)
    said = refuse(
        'build', '--tsv', corpus[1], *ASKED, '--clean', CLEAN, '--keep-rejected', '--output', folder
    )
    assert 'another --keep-rejected' in said


def test_what_an_earlier_result_kept_goes_with_it(corpus, tmp_path):
    folder = build(corpus, tmp_path / 'out', '--keep-rejected')
    theirs = write(folder / 'rejected' / 'notes.jsonl', b'theirs')
    build(corpus, folder, '--overwrite')
    assert [*(folder / 'rejected').iterdir()] == [theirs]


def test_a_shuffle_goes_on_with_runs_of_the_same_filters_alone(corpus):
    [split] = find_corpus([SplitPaths('train', 'tsv', {'tsv': [str(corpus[1])]})]).splits
    splits = [
        dataclasses.replace(split, filters=filters, keeps_dropped=keeps)
        for filters, keeps in [
            ((FilterSpec('nfc'),), False),
            ((FilterSpec('nfc'),), True),
            ((FilterSpec('nfd'),), False),
            ((FilterSpec('nfc', 'of other tables'),), False),
            ((FilterSpec('nfc'), FilterSpec('different')), False),
        ]
    ]
    assert len({plan_json(_dataset_content(each)) for each in splits}) == len(splits)


DATASETS = """
[[train]]
name = "clean"
format = "tsv"
paths = "a.tsv"
clean = ["length:1:9", "nfc"]
max_examples = 3

[[train]]
name = "as it is"
format = "tsv"
paths = "b.tsv"

[[dev]]
format = "tsv"
paths = "a.tsv"
"""


@pytest.fixture
def datasets(tmp_path):
    lines = [('word', 'Wort'), ('too long a line', 'x'), ('two', 'zwei'), ('e\u0301', 'é')]
    lines.append(('z', 'y'))
    text = ''.join(f'{source}\t{target}\n' for source, target in lines).encode()
    write(tmp_path / 'a.tsv', text)
    write(tmp_path / 'b.tsv', text)
    return write(tmp_path / 'job.toml', DATASETS.encode())


TOLD = ('lines', 'examples', 'filtered', 'beyond_max_examples')


def test_each_dataset_has_its_own_and_a_limit_is_of_what_they_leave(datasets, tmp_path):
    out = tmp_path / 'out'
    said = succeed('build', datasets, '--vocab-size', 200, '--name', 'x', '--output', out)
    assert said.count('dropped') == said.count('1 dropped by filters (1 length)') == 1
    numbers = {
        each['dataset']: [each.get(name) for name in TOLD] for each in manifest_of(out)['datasets']
    }
    assert numbers == {'clean': [5, 3, {'length': 1}, 1], 'as it is': [5, 5, None, None]}
    assert lines_of(out, 'dev')['examples'] == 5
    found = sorted(texts_of(out))
    assert found.count(('too long a line', 'x')) == 1
    assert found.count(('é', 'é')) == found.count(('e\u0301', 'é')) == 1
    records = manifest_of(out)['options']['datasets']
    recorded = [(each.get('name'), each.get('clean')) for each in records]
    assert recorded == [('clean', ['length:1:9', 'nfc']), ('as it is', None), (None, None)]


def test_on_the_command_line_they_are_for_all_training_datasets(datasets, tmp_path):
    out = tmp_path / 'out'
    command = ['build', datasets, '--vocab-size', 200, '--name', 'x', '--output', out]
    succeed(*command, '--clean', 'length:1:3')
    tallies = manifest_of(out)['datasets']
    assert [each['filtered'] for each in tallies] == [{'length': 3}, {'length': 3}]
    assert 'filtered' not in lines_of(out, 'dev')
    succeed(*command[:-1], tmp_path / 'none', '--clean', '')
    assert 'filtered' not in lines_of(tmp_path / 'none')


def test_lines_that_filters_drop_are_not_mistakes(corpus, tmp_path):
    """Neither does the first one stop a job, nor do they count for `--on-error=0`."""
    out = tmp_path / 'out'
    succeed(
        'count', '--tsv', corpus[1], '--clean', 'length:1:30', '--keep-rejected', '--output', out,
        '--on-error', 0,
    )  # fmt: skip
    lines = lines_of(out)
    assert lines['filtered']['length'] > 10
    kept = (tmp_path / 'out.rejected' / 'train.length.jsonl').read_bytes()
    assert kept.count(b'\n') == lines['filtered']['length']


def test_a_vocabulary_and_an_encoding_of_their_own_take_the_same_rows(corpus, built, tmp_path):
    names = [f'vocab.small.900.subwords.{side}' for side in ('inputs', 'targets')]
    succeed(
        'vocab', '--tsv', corpus[1], '--clean', CLEAN, '--side', 'inputs', '--vocab-size', 900,
        '--output', tmp_path / 'inputs',
    )  # fmt: skip
    assert (tmp_path / 'inputs').read_bytes() == (built / names[0]).read_bytes()
    succeed(
        'encode', '--tsv', corpus[1], '--clean', CLEAN, '--name', 'small', '--shards', 3,
        '--vocab', built / names[0], built / names[1],
        '--output', tmp_path / 'out',
    )  # fmt: skip
    assert read_shards(tmp_path / 'out') == read_shards(built)


def test_a_result_is_another_where_filters_or_the_code_of_ones_own_are(tmp_path, monkeypatch):
    own = write(tmp_path / 'code' / 'my_filter.py', b'def keep(text): return text\n')
    monkeypatch.syspath_prepend(own.parent)
    text = write(tmp_path / 'a.txt', b'some lines\nof text\n')
    command = ['count', '--text', text, '--output', tmp_path / 'out']
    succeed(*command, '--clean', 'my_filter:keep')
    assert 'already done' in succeed(*command, '--clean', 'my_filter:keep')
    assert 'another --clean' in refuse(*command, '--clean', 'nfc')
    assert 'another --clean' in refuse(*command)
    own.write_text('def keep(text): return text.upper()\n')
    assert 'another --clean' in refuse(*command, '--clean', 'my_filter:keep')


def test_a_sentence_that_is_dropped_of_a_pair_is_counted_and_kept(tmp_path):
    pairs = b'It is here. Note: it was. It ends.\tA b. C d? E f.\nIt is here.\tA b.\n'
    path, folder = write(tmp_path / 'pairs.tsv', pairs), tmp_path / 'out'
    filtering = ['--clean', 'clean_en_xx', '--keep-rejected', '--output', folder]
    succeed('build', '--tsv', path, '--name', 'x', '--vocab-size', 100, *filtering)
    lines = lines_of(folder)
    assert (lines['lines'], lines['added'], lines['examples']) == (2, 2, 3)
    assert lines['filtered'] == {'clean_en_xx': 1}
    [kept] = (folder / 'rejected' / 'train.clean_en_xx.jsonl').read_text().splitlines()
    assert json.loads(kept)['source'] == 'Note: it was.'
