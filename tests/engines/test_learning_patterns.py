"""Patterns of one's own through the commands: counted, learned, encoded, converted and made again."""

import json

import pytest
from dataset_files import manifest_of, read_shards, shards_and_vocabularies
from jobs import refuse, run, succeed

from tokcore.tokenizers import learn_vocabulary, load_tokenizer

PATTERN = [r'\s?\p{L}+', 'individual-digits']
OPTIONS = ['--scheme', 'bpe', *(word for each in PATTERN for word in ('--pattern', each))]
SIZE = ['--vocab-size', 300]


@pytest.fixture(scope='module')
def dataset(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp('patterns') / 'out'
    text = ['--text', small.source, '--name', 'small', '--shards', 2]
    succeed('build', *text, *OPTIONS, *SIZE, '--output', folder)
    return folder


def lines_of(small):
    return [line for line, _ in small.pairs if line.strip()]


def test_a_build_is_what_is_learned_from_its_lines(small, dataset):
    lines = lines_of(small)
    ours = learn_vocabulary(lines, 'bpe', pattern=PATTERN, vocab_size=300)
    assert (dataset / 'tokenizer.json').read_bytes() == ours.vocabulary.dump()
    rows = [row['targets'] for shard in read_shards(dataset) for row in shard]
    assert sorted(rows) == sorted(ours.encode_batch(lines))
    [options] = [each['scheme_options'] for each in manifest_of(dataset)['vocabularies']]
    assert options['pattern'] == [r'\s?\p{L}+', r'\p{N}'] and 'add_prefix_space' not in options


def test_counts_are_not_taken_for_those_of_other_patterns(small, dataset, tmp_path):
    counts, path = tmp_path / 'counts', tmp_path / 'tokenizer.json'
    succeed('count', '--text', small.source, *OPTIONS, '--output', counts)
    for other in (OPTIONS[:4], ['--scheme', 'bpe', '--pattern', 'gpt2']):
        said = refuse('vocab', '--counts', counts, *other, *SIZE, '--output', path)
        assert 'pre-tokenizer pattern' in said
    succeed('vocab', '--counts', counts, *OPTIONS, *SIZE, '--output', path)
    assert path.read_bytes() == (dataset / 'tokenizer.json').read_bytes()
    # On the workers, in rounds, and in files of this machine.
    for learner in (['--learner', 'beam'], ['--memory', '1MB']):
        again = tmp_path / f'{learner[1]}.json'
        succeed('vocab', '--counts', counts, *OPTIONS, *SIZE, *learner, '--output', again)
        assert again.read_bytes() == path.read_bytes()


def test_a_dataset_is_encoded_converted_and_made_again(small, dataset, tmp_path):
    [name] = [path.name for path in dataset.glob('vocab.*.bpe.json')]
    text = ['--text', small.source, '--name', 'small', '--shards', 2]
    succeed('encode', *text, '--vocab', dataset / name, '--output', tmp_path / 'again')
    built = shards_and_vocabularies(dataset)
    again = shards_and_vocabularies(tmp_path / 'again')
    assert again == {file: data for file, data in built.items() if file in again} and again
    assert 'already done' in succeed('build', *text, *OPTIONS, *SIZE, '--output', dataset)
    succeed('convert', dataset, '--to', 'parquet', '--output', tmp_path / 'parquet')
    for folder in (dataset, tmp_path / 'again', tmp_path / 'parquet'):
        assert run('verify', folder, '--rerun', 'all').status == 0
    # Without its record the file is read as that of a trained model, with the same ids.
    copy = tmp_path / 'copy.json'
    copy.write_bytes((dataset / name).read_bytes())
    succeed('encode', *text, '--vocab', copy, '--output', tmp_path / 'copied')
    assert read_shards(tmp_path / 'copied') == read_shards(dataset)
    assert manifest_of(tmp_path / 'copied')['options']['scheme'] == 'pretrained'


def test_a_space_before_texts_is_not_before_prefixes(small, tmp_path):
    text = ['--text', small.source, '--name', 'small', '--shards', 1]
    options = ['--scheme', 'bpe', '--add-prefix-space', '--target-prefix', 'say: ']
    succeed('build', *text, *options, *SIZE, '--output', tmp_path / 'out')
    ours = load_tokenizer(tmp_path / 'out' / 'tokenizer.json')
    [rows] = read_shards(tmp_path / 'out')
    expected = ours.encode_batch(f'say: {line}' for line in lines_of(small))
    assert sorted(row['targets'] for row in rows) == sorted(expected)


def test_a_vocabulary_tells_how_the_text_that_extends_it_is_cut(small, dataset, tmp_path):
    text = ['--text', small.source, '--name', 'small', '--shards', 2, '--vocab-size', 320]
    extend = ['--scheme', 'bpe', '--extend', dataset / 'tokenizer.json']
    succeed('build', *text, *extend, '--output', tmp_path / 'out')
    pattern = {'pattern': PATTERN, 'vocab_size': 320}
    at_once = learn_vocabulary(lines_of(small), 'bpe', **pattern).vocabulary
    assert (tmp_path / 'out' / 'tokenizer.json').read_bytes() == at_once.dump()
    assert run('verify', tmp_path / 'out', '--rerun', 'all').status == 0
    said = refuse('build', *text, *extend, '--pattern', 'gpt2', '--output', tmp_path / 'other')
    assert 'give --pre-tokenizer none alone' in said


def test_a_job_file_has_patterns(small, tmp_path):
    job = f"""
[vocabulary]
scheme = "bpe"
pattern = ["digits", "gpt2"]
vocab_size = 300

[output]
name = "small"
shards = 1
output = "out"

[[train]]
format = "text"
paths = {json.dumps(str(small.source))}
"""
    path = tmp_path / 'job.toml'
    path.write_text(job)
    succeed('build', path)
    parts = json.loads((tmp_path / 'out' / 'tokenizer.json').read_text())['pre_tokenizer']
    assert [part['type'] for part in parts['pretokenizers']] == ['Digits', 'ByteLevel']
    path.write_text(job.replace('"digits"', '"digit"'))
    assert "'digit' is neither a regular expression nor one of gpt2" in refuse('build', path)
