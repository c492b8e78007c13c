"""Merges learned on Beam are those that are learned in memory, however the work is cut."""

import collections
import dataclasses
import gzip
import io
import json
import os
import random
import subprocess
from pathlib import Path

import apache_beam as beam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import refuse, succeed, write
from sizes import command_of
from stopped_learners import StoppedError, stop_after, write_counts

from pipelines.artifacts.counts import counts_parts, find_counts, read_counts
from pipelines.files.filesystem import names_below
from pipelines.learning import search
from pipelines.learning.bpe_on_beam import BeamMerges, begin_with
from pipelines.learning.rounds import MergeFiles, is_learner_file
from tests.benchmarks.generated_counts import write_counts as write_generated_counts
from tokcore.bpe.options import PRESETS
from tokcore.bpe.trainer import learn_merges
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError

BYTES = dataclasses.replace(PRESETS['gpt2'], merges=40)
SUFFIX = dataclasses.replace(PRESETS['subword-nmt'], merges=40)
ANY_SIZE = 1 << 30
KIB = 1024


class Runs:
    """Runs pipelines in this process, and counts them."""

    def __init__(self):
        self.jobs = 0

    def __call__(self, build_pipeline):
        self.jobs += 1
        with beam.Pipeline(runner='FnApiRunner') as pipeline:
            build_pipeline(pipeline)


def sample_counts():
    dice = random.Random(7)
    syllables = ['ka', 'to', 'ing', 'st', 'aa', '中', '文字', 'é', '\U0001f600']
    words = [''.join(dice.choices(syllables, k=dice.randint(1, 5))) for _ in range(150)]
    return {word: dice.randint(1, 90) for word in words}


def write_parts(folder, counts, files=3, rows=10):
    """Writes a table as some Parquet files of small row groups; returns the files' parts."""
    return counts_parts(write_counts(folder, counts, files, row_group_size=rows), 2 * rows)


def result(learned):
    return list(learned.entries), list(learned.merges), learned.counts.tolist()


def in_memory(counts, rules):
    return result(learn_merges(TokenTable.from_items(counts.items()), rules))


def on_beam(folder, parts, rules, run, **options):
    return BeamMerges(
        parts, MergeFiles(str(folder / 'files')), str(folder / 'work'), run, rules, **options
    )


@pytest.mark.parametrize('rules', [BYTES, SUFFIX], ids=['bytes', 'suffix'])
def test_equals_the_learner_in_memory(tmp_path, rules):
    counts, run = sample_counts(), Runs()
    parts = write_parts(tmp_path, counts)
    assert len(parts) > 3
    learner = on_beam(tmp_path, parts, rules, run, workers=2)
    learner.learn(1000)
    assert result(learner.learning.learned()) == in_memory(counts, rules)
    assert len(learner.rounds) > 1
    assert max(each.cells for each in learner.rounds) <= 1000
    assert run.jobs >= 2 * len(learner.rounds)


words = st.one_of(st.text('ab', max_size=9), st.text('abcé中', max_size=6))


@pytest.mark.parametrize(
    'rules',
    [pytest.param(BYTES, id='bytes', marks=pytest.mark.slow), pytest.param(SUFFIX, id='suffix')],
)
@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(words, st.integers(0, 12), min_size=1, max_size=15),
    st.sampled_from([1, 30, ANY_SIZE]),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_any_table_at_any_thresholds(tmp_path_factory, rules, counts, most_cells, files, dice):
    folder = tmp_path_factory.mktemp('merges')
    rules = dataclasses.replace(rules, merges=4)
    parts = write_parts(folder, counts, files, rows=4)
    learner = on_beam(folder, parts, rules, Runs(), workers=dice.randint(1, 2))
    learner.learn(most_cells, choose_threshold=lambda largest, least: dice.randint(least, largest))
    assert result(learner.learning.learned()) == in_memory(counts, rules)


def test_a_learner_goes_on_from_merges_alone(tmp_path):
    counts, rules = sample_counts(), SUFFIX
    parts = write_parts(tmp_path, counts)
    begun = on_beam(tmp_path, parts, dataclasses.replace(rules, merges=25), Runs())
    begun.learn(ANY_SIZE)
    files = MergeFiles(str(tmp_path / 'files'))
    for number in files.numbers_of_merges():
        files.delete_words(number)
    run = Runs()
    learner = on_beam(tmp_path, parts, rules, run)
    assert len(learner.learning.pairs) == 25 and run.jobs == 0
    learner.learn(ANY_SIZE)
    assert result(learner.learning.learned()) == in_memory(counts, rules)
    assert all(map(is_learner_file, names_below(files.folder)))


def test_counts_above_31_bits_and_a_sum_that_is_too_large(tmp_path):
    counts = {'abab': 1 << 60, 'ab': 3, 'cab': 1 << 33}
    rules = dataclasses.replace(BYTES, merges=2)
    # A token in several files has the sum of its counts.
    (tmp_path / 'more').mkdir()
    parts = [*write_parts(tmp_path, counts), *write_parts(tmp_path / 'more', {'ab': 5}, 1)]
    learner = on_beam(tmp_path, parts, rules, Runs())
    learner.learn(ANY_SIZE)
    counts['ab'] += 5
    assert result(learner.learning.learned()) == in_memory(counts, rules)
    assert learner.learning.counts[0] == (1 << 61) + 8 + (1 << 33)
    (tmp_path / 'large').mkdir()
    parts = write_parts(tmp_path / 'large', {'ab': (1 << 63) - 1, 'abc': 1})
    learner = on_beam(tmp_path / 'large', parts, rules, Runs())
    with pytest.raises(Exception, match='a pair of symbols occurs more than 2\\^63 - 1 times'):
        learner.learn(ANY_SIZE)


def test_a_suffix_inside_a_word_is_refused(tmp_path):
    parts = write_parts(tmp_path, {'ab': 4, 'a</w>b': 2, 'b': 3})
    with pytest.raises(InputError, match="the token 'a</w>b' has '</w>' inside.* --learner memory"):
        on_beam(tmp_path, parts, SUFFIX, Runs())


NMT = ['--scheme', 'bpe', '--preset', 'subword-nmt', '--merges', 20]
GPT2 = ['--scheme', 'bpe', '--vocab-size', 280]


# The Chinese side has no blanks, so each of its lines is one word.
@pytest.mark.parametrize(
    ('side', 'asked'),
    [
        pytest.param('target', NMT, id='codes of lines', marks=pytest.mark.slow),
        pytest.param('source', GPT2, id='bytes', marks=pytest.mark.slow),
        pytest.param('target', [*GPT2, '--pre-tokenizer', 'none'], id='bytes of lines'),
    ],
)
def test_the_command_learns_one_vocabulary_by_both(small, tmp_path, side, asked):
    for learner in ('memory', 'beam'):
        command = ['vocab', '--text', getattr(small, side), *asked, '--learner', learner]
        said = succeed(*command, '--output', tmp_path / learner)
        assert ('learning on Beam, in rounds' in said) == (learner == 'beam')
    assert (tmp_path / 'memory').read_bytes() == (tmp_path / 'beam').read_bytes()
    assert not (tmp_path / '.tokbeam').exists()


@pytest.mark.parametrize(
    'size',
    [
        pytest.param(['--vocab-size', 380], id='size'),
        pytest.param(['--merges', 60], id='merges', marks=pytest.mark.slow),
    ],
)
def test_merges_of_whole_lines_go_on_from_those_within_tokens(
    small, tmp_path, size, tokenizers, filter_lines
):
    text = ['--text', small.source, '--scheme', 'bpe']
    old = tmp_path / 'old.json'
    succeed('vocab', *text, '--vocab-size', 320, '--output', old)
    further = ['vocab', *text, '--extend', old, '--pre-tokenizer', 'none', *size]
    for learner in ('memory', 'beam'):
        said = succeed(*further, '--learner', learner, '--output', tmp_path / learner)
        assert ('bytes shuffled' in said) == (learner == 'beam')
    path = tmp_path / 'beam'
    assert path.read_bytes() == (tmp_path / 'memory').read_bytes()
    before, after = (json.loads(each.read_bytes())['model'] for each in (old, path))
    assert after['merges'][: len(before['merges'])] == before['merges']
    assert len(after['vocab']) == 380 and any('Ġ' in piece[1:] for piece in after['vocab'])
    lines = small.source.read_text().splitlines()
    theirs = tokenizers.Tokenizer.from_file(str(path))
    ids = filter_lines(small.source.read_bytes(), 'tokenize', '--vocab', path).decode()
    assert [[*map(int, line.split())] for line in ids.splitlines()] == [
        theirs.encode(line).ids for line in lines
    ]


def test_an_extension_goes_on_from_the_merges_of_a_killed_run(tmp_path):
    counts, run = sample_counts(), Runs()
    table = TokenTable.from_items(counts.items())
    learned = learn_merges(table, dataclasses.replace(BYTES, merges=20))
    old = BpeVocabulary.learned(learned.entries, learned.merges)
    rules = dataclasses.replace(BYTES, merges=50)  # the old ones among them
    parts = write_parts(tmp_path, counts)
    files = MergeFiles(str(tmp_path / 'files'))
    begin_with(old, files)
    begun = on_beam(tmp_path, parts, dataclasses.replace(rules, merges=33), run)
    assert len(begun.learning.pairs) == 20
    begun.learn(ANY_SIZE)
    begin_with(old, files)
    learner = on_beam(tmp_path, parts, rules, run)
    assert len(learner.learning.pairs) == 33
    learner.learn(ANY_SIZE)
    expected = learn_merges(table, rules)
    assert result(learner.learning.learned())[:2] == result(expected)[:2]
    assert all(map(is_learner_file, names_below(files.folder)))


def test_what_needs_all_tokens_at_once_is_refused_before_anything_is_counted(small, tmp_path):
    command = ['vocab', '--text', small.source, '--scheme', 'bpe', '--merges', 9]
    said = refuse(
        *command, '--preset', 'textbook', '--learner', 'beam', '--output', tmp_path / 'codes'
    )
    assert 'on Beam: the first of equally frequent pairs is merged' in said
    assert [*tmp_path.iterdir()] == []


def test_a_cluster_learns_what_does_not_fit_in_memory(small, tmp_path, monkeypatch):
    command = ['vocab', '--text', small.source, *GPT2]
    succeed(*command, '--output', tmp_path / 'memory')
    monkeypatch.setattr(search, 'available_bytes', lambda: (350 << 20) + 10_000)
    monkeypatch.setattr(search.VocabularySearch, '_in_parts', 'beam')
    said = succeed(*command, '--output', tmp_path / 'beam')
    assert 'learning on Beam, in rounds' in said
    assert (tmp_path / 'memory').read_bytes() == (tmp_path / 'beam').read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize('files', [1, 3, 6, 9, 14, 22])
def test_a_learner_killed_after_any_file_can_be_resumed(tmp_path, files, monkeypatch):
    counts, rules = (
        {'abab': 90, 'cab': 7, 'bcab': 41, 'aaa': 2},
        dataclasses.replace(SUFFIX, merges=6),
    )
    parts = write_parts(tmp_path, counts, 2)
    with monkeypatch.context() as patch:
        stop_after(patch, files)
        with pytest.raises(Exception, match=StoppedError.__name__):
            on_beam(tmp_path, parts, rules, Runs()).learn(ANY_SIZE)
    learner = on_beam(tmp_path, parts, rules, Runs())
    learner.learn(30)
    assert result(learner.learning.learned()) == in_memory(counts, rules)
    assert all(map(is_learner_file, names_below(str(tmp_path / 'files'))))


CORPORA = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'


@pytest.mark.corpora
@pytest.mark.parametrize('preset', ['gpt2', 'subword-nmt'])
@pytest.mark.parametrize('name', ['enzh.tsv.gz', 'poetry.zh.txt.gz', 'docs.en.txt.gz'])
def test_the_merges_of_a_corpus_at_a_tenth_and_a_fiftieth(tmp_path, name, preset):
    scheme = ['--scheme', 'bpe', '--preset', preset]
    succeed('count', '--text', CORPORA / name, *scheme, '--output', tmp_path / 'counts')
    counts = find_counts([str(tmp_path / 'counts')])
    table, paths = read_counts(counts), [file.path for file in counts.files]
    for merges, share in [(8000, 10), (32_000, 10), (32_000, 50)]:
        rules = dataclasses.replace(PRESETS[preset], merges=merges)
        expected = learn_merges(table, rules)
        folder = tmp_path / f'{merges}-{share}'
        learner = on_beam(folder, counts_parts(paths, 1 << 20), rules, Runs(), workers=2)
        learner.learn((len(table.data) + len(table)) // share)
        assert result(learner.learning.learned()) == result(expected)
        assert len(learner.rounds) <= (6 if share == 10 else 12)


@pytest.mark.corpora
@pytest.mark.parametrize('merges', [8000, 32_000])
@pytest.mark.parametrize('name', ['enzh.tsv.gz', 'poetry.zh.txt.gz', 'docs.en.txt.gz'])
def test_the_merges_of_a_corpus_are_those_of_tokenizers(tmp_path, tokenizers, name, merges):
    path = tmp_path / 'tokenizer.json'
    command = ['vocab', '--text', CORPORA / name, '--scheme', 'bpe', '--merges', merges]
    succeed(*command, '--learner', 'beam', '--output', path)
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = byte_level(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=257 + merges,
        special_tokens=['<|endoftext|>'],
        initial_alphabet=byte_level.alphabet(),
        show_progress=False,
    )
    with gzip.open(CORPORA / name, 'rt', encoding='utf-8', newline='\n') as lines:
        theirs.train_from_iterator((line.removesuffix('\n') for line in lines), trainer)
    ours, model = json.loads(path.read_bytes())['model'], json.loads(theirs.to_str())['model']
    assert ours['vocab'] == model['vocab']
    assert [*map(_pair, ours['merges'])] == [*map(_pair, model['merges'])]


def _pair(merge):
    return merge.split(' ') if isinstance(merge, str) else merge


@pytest.mark.corpora
@pytest.mark.parametrize('merges', [8000, 32_000])
@pytest.mark.parametrize('name', ['enzh.tsv.gz', 'poetry.zh.txt.gz', 'docs.en.txt.gz'])
def test_the_merges_of_a_corpus_are_those_of_subword_nmt(tmp_path, subword_nmt, name, merges):
    words = collections.Counter()
    with gzip.open(CORPORA / name, 'rt', encoding='utf-8', newline='\n') as lines:
        for line in lines:
            words.update(line.split())  # it merges white space within words wrongly
    text = ''.join(f'{word} {count}\n' for word, count in words.items())
    counts = write(tmp_path / 'counts.txt', text.encode())
    command = ['vocab', '--counts', counts, *NMT[:-1], merges, '--learner', 'beam']
    succeed(*command, '--output', tmp_path / 'codes')
    theirs = io.StringIO()
    subword_nmt[0].learn_bpe(io.StringIO(text), theirs, merges, is_dict=True)
    assert (tmp_path / 'codes').read_text() == theirs.getvalue()


@pytest.mark.corpora
def test_20_million_tokens_are_learned_from_within_4_gb(tmp_path):
    write_generated_counts(20_000_000, tmp_path / 'counts')
    command = ['vocab', '--counts', tmp_path / 'counts' / '*.parquet', '--scheme', 'bpe']
    command += ['--merges', 32_000, '--progress=none']
    by_rounds = [*command, '--learner', 'beam', '--memory', '3GiB', '--output', tmp_path / 'beam']
    process = subprocess.Popen(command_of(*by_rounds))
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    assert usage.ru_maxrss * KIB < 4e9
    succeed(*command, '--learner', 'memory', '--output', tmp_path / 'memory')
    assert (tmp_path / 'beam').read_bytes() == (tmp_path / 'memory').read_bytes()
