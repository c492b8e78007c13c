"""A scheme of one folder and one line of the registry: counted, learned, encoded, decoded, resumed."""

import collections
import json
import pathlib
import random

import pyarrow.parquet as parquet
import pytest
from jobs import refuse, succeed, write
from killed_encode import kill_and_go_on, start_encode
from names_in_sources import modules_naming
from reverse_vocabulary import ReverseVocabulary

from tokcore import schemes
from tokcore.records.tfrecord import parse_example, read_records

pytestmark = pytest.mark.slow

HERE = pathlib.Path(__file__).parent
REVERSE = ['--scheme', 'reverse']
SPECIAL = 4


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The one line; taken back for the tests of others."""
    monkeypatch.setitem(schemes._MODULES, 'reverse', 'reverse_scheme')


def drawn_lines(count: int) -> list[str]:
    dice = random.Random(count)
    words = ['Vers', 'Zeile,', 'und', '字字', 'noch', 'é', '12', 'x_y', '\\', 'selten' * 300]
    weights = [9, 5, 20, 7, 7, 3, 3, 2, 2, 1]
    return [' '.join(dice.choices(words, weights, k=dice.randint(1, 9))) for _ in range(count)]


LINES = drawn_lines(6000)
COUNTED = collections.Counter(word for line in LINES for word in line.split())
ENTRIES = [word[::-1] for word, _ in sorted(COUNTED.items(), key=lambda each: (-each[1], each[0]))]


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp('lines')
    return write(folder / 'lines.txt', ''.join(f'  {line}\r\n' for line in LINES).encode())


@pytest.fixture(scope='module')
def vocabulary(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp('vocabulary') / 'vocab'
    path.write_bytes(ReverseVocabulary.of(ENTRIES[:8]).dump())
    return path


def tables_in(folder):
    found = {}
    for path in folder.glob('*.parquet'):
        table = parquet.read_table(path).to_pydict()
        found |= dict(zip(table['token'], table['count'], strict=True))
    return found


def test_words_are_counted_and_the_files_say_how(corpus, tmp_path):
    folder = tmp_path / 'counts'
    cut = ['@item-size', '4KiB', '--workers', 2]
    succeed('count', '--text', corpus, *REVERSE, *cut, '--output', folder)
    assert tables_in(folder) == COUNTED
    manifest = json.loads((folder / 'tokbeam.json').read_text())
    spaces = {'name': 'spaces', 'options': {'byte': 32}}
    assert manifest['tokens'] == COUNTED.total()
    assert manifest['normalizer'] == {'name': 't2t-lines', 'options': {}}
    assert manifest['pre_tokenizer'] == spaces
    [path, *_] = folder.glob('*.parquet')
    metadata = parquet.read_schema(path).metadata
    assert json.loads(metadata[b'tokbeam.pre_tokenizer']) == spaces


def test_a_vocabulary_is_learned_in_one_go(corpus, tmp_path):
    path = tmp_path / 'vocab'
    command = ['vocab', '--text', corpus, *REVERSE, '--vocab-size', 9, '--output', path]
    succeed(*command)
    assert path.read_text().splitlines() == ['<pad>', '<unk>', '<s>', '</s>', *ENTRIES[:5]]
    [record] = json.loads((tmp_path / 'vocab.tokbeam.json').read_text())['vocabularies']
    assert record['scheme'] == 'reverse' and record['size'] == 9
    assert (record['min_count'], record['tried']) == (None, [])
    assert record['special_ids'] == {'pad': 0, 'begin': 2, 'end': 3, 'unknown': 1}
    assert 'already done' in succeed(*command)
    assert 'another --rarest: 1 there, 2 now' in refuse(*command, '--rarest', 2)


def building(corpus, folder, *more):
    return [
        'build', '--text', corpus, *REVERSE, '--vocab-size', 12, '--name', 'v', '--shards', 2,
        '@item-size', '4KiB', '--output', folder, *more,
    ]  # fmt: skip


def encoding(corpus, vocabulary, folder, *more):
    return [
        'encode', '--text', corpus, '--vocab', vocabulary, *REVERSE, '--name', 'v', '--shards', 2,
        '@item-size', '4KiB', '--output', folder, *more,
    ]  # fmt: skip


def shards_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob('v-train-*'))}


def rows_of(folder):
    return [
        parse_example(record)['targets']
        for path in sorted(folder.glob('v-train-*'))
        for record in read_records(path.read_bytes(), path.name)
    ]


def ids_of(line: str, entries: list[str]) -> list[int]:
    known = {entry[::-1]: id_ for id_, entry in enumerate(entries, SPECIAL)}
    return [2, *(known.get(word, 1) for word in line.split()), 3]


def test_a_build_gives_the_same_bytes_however_it_is_run(corpus, tmp_path):
    succeed(*building(corpus, tmp_path / '1', '--workers', 1))
    assert (tmp_path / '1' / 'vocab.v.12.reversed').read_text().split() == [
        '<pad>', '<unk>', '<s>', '</s>', *ENTRIES[:8]
    ]  # fmt: skip
    expected = sorted(ids_of(line, ENTRIES[:8]) for line in LINES)
    assert sorted(rows_of(tmp_path / '1')) == expected
    assert any(1 in row for row in expected)
    succeed(*building(corpus, tmp_path / '2', '--workers', 2))
    succeed(*building(corpus, tmp_path / 'engine', '@shuffle', 'engine'))
    shards = shards_of(tmp_path / '1')
    assert shards == shards_of(tmp_path / '2') == shards_of(tmp_path / 'engine')
    assert 'build: already done' in succeed(*building(corpus, tmp_path / '1'))


def test_worker_processes_get_the_scheme_with_the_steps(corpus, vocabulary, tmp_path):
    workers = ['--direct_running_mode=multi_processing', '--direct_num_workers=1']
    command = encoding(corpus, vocabulary, tmp_path / 'out', *workers)
    assert start_encode(HERE / 'reverse_command.py', command).wait() == 0
    succeed(*encoding(corpus, vocabulary, tmp_path / 'here'))
    assert shards_of(tmp_path / 'out') == shards_of(tmp_path / 'here')


def test_a_killed_encode_goes_on(corpus, vocabulary, tmp_path, monkeypatch):
    monkeypatch.setattr('pipelines.shuffle.plan.KeptRuns.sweep', lambda *_, **__: None)
    folder = tmp_path / 'out'
    command = encoding(corpus, vocabulary, folder, '@buffer', '8KiB', '--workers', 1)
    kill_and_go_on(HERE / 'reverse_command.py', command, folder)
    succeed(*encoding(corpus, vocabulary, tmp_path / 'whole'))
    assert shards_of(folder) == shards_of(tmp_path / 'whole')


@pytest.mark.corpora
def test_a_word_of_any_length_is_one_token(vocabulary, tmp_path):
    lines = [f'und {"x" * 300_000} und', 'noch ' * 80_000 + 'noch', 'und']
    corpus = write(tmp_path / 'long.txt', '\n'.join(lines).encode())
    succeed(*encoding(corpus, vocabulary, tmp_path / 'out'))
    expected = sorted(ids_of(line, ENTRIES[:8]) for line in lines)
    assert sorted(rows_of(tmp_path / 'out')) == expected


def test_lines_become_ids_and_lines_again(vocabulary, filter_lines):
    text = b'und noch\n\n  und nie\n'
    und, noch = (ids_of(word, ENTRIES[:8])[1] for word in ('und', 'noch'))
    plain = filter_lines(text, 'tokenize', '--vocab', vocabulary, *REVERSE)
    assert plain == f'{und} {noch}\n\n{und} 1\n'.encode()
    whole = filter_lines(
        text, 'tokenize', '--vocab', vocabulary, *REVERSE, '--template', '<s> $A </s>'
    )
    assert whole == f'2 {und} {noch} 3\n2 3\n2 {und} 1 3\n'.encode()
    back = filter_lines(plain, 'detokenize', '--vocab', vocabulary, *REVERSE)
    assert back == b'und noch\n\nund <unk>\n'


def test_what_was_counted_for_another_scheme_is_refused_and_both_are_named(corpus, tmp_path):
    theirs, ours = tmp_path / 'subword', tmp_path / 'reverse'
    succeed('count', '--text', corpus, '--output', theirs)
    succeed('count', '--text', corpus, *REVERSE, '--output', ours)
    asked = ['--vocab-size', 12, '--output', tmp_path / 'vocab']
    for counts, scheme in ((theirs, REVERSE), (ours, [])):
        said = refuse('vocab', '--counts', counts, *scheme, *asked)
        assert 'pre-tokenizer t2t' in said and 'pre-tokenizer spaces {"byte": 32}' in said
    said = refuse('count', '--counts', theirs, ours, '--output', tmp_path / 'merged')
    assert 'pre-tokenizer t2t' in said and 'pre-tokenizer spaces' in said
    assert 'another pre-tokenizer: t2t there, spaces' in refuse(
        'count', '--text', corpus, *REVERSE, '--output', theirs
    )


def test_a_table_of_somebody_elses_is_taken_for_the_scheme_asked_for(tmp_path):
    counts = write(tmp_path / 'counts.txt', b'und 3\nnoch 4\n')
    path = tmp_path / 'vocab'
    said = succeed('vocab', '--counts', counts, *REVERSE, '--vocab-size', 6, '--output', path)
    assert said.count('does not record by which rules tokens were made; assuming those of') == 1
    assert '--scheme reverse (normalizer t2t-lines and pre-tokenizer spaces {"byte": 32})' in said
    assert path.read_text().splitlines()[SPECIAL:] == ['hcon', 'dnu']


def test_an_option_of_another_scheme_is_refused_by_name(corpus, tmp_path):
    command = ['vocab', '--text', corpus, '--vocab-size', 12, '--output', tmp_path / 'vocab']
    said = refuse(*command, *REVERSE, '--search', 'closest')
    assert '--search goes with --scheme=subword' in said and 'not with --scheme=reverse' in said
    said = refuse(*command, '--rarest', 3)
    assert '--rarest goes with --scheme=reverse, not with --scheme=subword' in said


def test_nothing_outside_this_folder_knows_of_it():
    fields = ('id', 'name', 'attr', 'module', 'value')  # an argument `reverse=True` sorts
    assert not modules_naming(r'(\w+\.)*reverse(_\w+)?', fields)
