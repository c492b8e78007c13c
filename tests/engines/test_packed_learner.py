"""The packed learner on Beam equals the one in memory, however it is partitioned."""

import dataclasses
import functools
import gzip
import random
from pathlib import Path

import apache_beam as beam
import pyarrow.parquet as parquet
import pytest
from apache_beam.testing.util import assert_that
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from plain_learner import BeamLearner
from stopped_learners import StoppedError, stop_after, write_counts

from pipelines.engines.pool import BUNDLE_BYTES, MOST_BUNDLE_BYTES, BundleOutput
from pipelines.files.filesystem import names_below
from pipelines.learning.rounds import is_learner_file
from pipelines.learning.subword_on_beam import LearnerLimits, PackedLearner
from pipelines.learning.suffix_transforms import METRICS, SELECTION_METRICS, CountSubstrings
from tokcore.corpus.line_rows import text_rows
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.learning.size_search import min_counts_ahead, search_vocabulary
from tokcore.subword.learner import MemoryLearner
from tokcore.subword.suffix_tables import PrefixPartitions
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.t2t import T2TPreTokenizer, alphabet_of, escape_token

pytestmark = pytest.mark.slow

CORPORA = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'

# Groups of a few dozen bytes; suffixes sent in full, without frequent ones; several passes.
SMALL_GROUPS = LearnerLimits(group_bytes=60)
IN_FULL = LearnerLimits(group_bytes=60, frequent_nodes=0)
IN_PASSES = LearnerLimits(group_bytes=400, frequent_nodes=0, bundle_bytes=3000)


class Runs:
    """Runs pipelines; counts them, and records the largest output of a bundle."""

    def __init__(self):
        self.jobs = 0
        self.largest: dict[str, int] = {}

    def __call__(self, build_pipeline):
        self.jobs += 1
        pipeline = beam.Pipeline(runner='FnApiRunner')
        build_pipeline(pipeline)
        result = pipeline.run()
        result.wait_until_finish()
        for metric in result.metrics().query()['distributions']:
            name = metric.key.metric
            if name.name == BUNDLE_BYTES:
                self.largest[name.namespace] = max(
                    self.largest.get(name.namespace, 0), metric.result.max
                )


def sample_counts():
    dice = random.Random(7)
    syllables = [
        'ka', 'to', 'ing', 'st', '中', '文字', 'é', '_', '\\', '7', '\U0001f600', '\x00', '\n',
    ]  # fmt: skip
    words = [''.join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(150)]
    return {word: dice.randint(0, 90) for word in words}


WORDS = (sample_counts(), 200, [], (30, 1, 31))


@pytest.mark.parametrize(
    ('counts', 'limit', 'reserved', 'min_counts', 'limits'),
    [
        pytest.param(*WORDS, LearnerLimits(), id='words in one group'),
        pytest.param(*WORDS, SMALL_GROUPS, id='words in small groups'),
        pytest.param(*WORDS, IN_PASSES, id='words in passes'),
        pytest.param(
            sample_counts(), 4, ['katoing', 'st'], (20, 60), IN_FULL, id='short subtokens in full'
        ),
        pytest.param(
            {'': 2, 'the': 5, 'then': 5}, 2, ['the'], (5,), IN_PASSES, id='two characters in passes'
        ),
        pytest.param({'ab': 3, 'abab': 2}, 1, [], (2,), SMALL_GROUPS, id='no subtoken'),
    ],
)
def test_equals_the_learner_in_memory(tmp_path, counts, limit, reserved, min_counts, limits):
    options = {'max_subtoken_length': limit, 'reserved_tokens': reserved}
    paths = write_counts(tmp_path, counts, 3)
    learner = PackedLearner(
        paths, str(tmp_path / 'work'), Runs(), workers=2, limits=limits, **options
    )
    memory = MemoryLearner(TokenTable.from_items(counts.items()), **options)
    assert learner.smallest_size == memory.smallest_size
    for min_count in min_counts:
        assert learner.build(min_count) == memory.build(min_count)


@st.composite
def problems(draw):
    """Tables in which one first character is frequent, some tokens long, and options of the learner."""
    words = st.text('ab中_\n', max_size=5)
    frequent = st.builds(str.__add__, st.sampled_from(['aa', 'aab', 'a中']), words)
    tokens = draw(
        st.dictionaries(st.one_of(words, frequent), st.integers(0, 40), min_size=1, max_size=25)
    )
    limit = draw(st.sampled_from([2, 3, 5, 200, None]))
    # The plain learner cannot count all substrings of thousands of characters.
    longest = 150 if limit is None else 3000
    for seed in draw(st.lists(st.integers(0, 99), max_size=2)):
        dice = random.Random(seed)
        letters = dice.choice(['a', 'ab', 'ab中_', 'cdef'])
        length = dice.randint(longest // 2, longest)
        part = ''.join(dice.choices(letters, k=dice.choice([2, 7, 90])))
        tokens[(part * length)[:length]] = draw(st.integers(0, 9))
    reserved = draw(
        st.lists(st.sampled_from(sorted(tokens)).filter(bool), unique=True, max_size=2)
        if any(tokens)
        else st.just([])
    )
    limits = LearnerLimits(
        group_bytes=draw(st.integers(20, 400)), frequent_nodes=draw(st.sampled_from([0, 1000]))
    )
    return tokens, limit, reserved, limits


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems(), min_count=st.integers(1, 60))
def test_all_four_learners_agree(t2t_text_encoder, tmp_path_factory, problem, min_count):
    tokens, limit, reserved, limits = problem
    folder = tmp_path_factory.mktemp('learners')
    options = {'max_subtoken_length': limit, 'reserved_tokens': reserved}
    paths = write_counts(folder, tokens, 2)
    expected = MemoryLearner(TokenTable.from_items(tokens.items()), **options).build(min_count)
    packed = PackedLearner(paths, str(folder / 'packed'), Runs(), limits=limits, **options)
    assert packed.build(min_count) == expected
    assert BeamLearner(paths, str(folder / 'plain'), Runs(), **options).build(min_count) == expected
    assert tuple(t2t_subtokens(t2t_text_encoder, tokens, min_count, limit, reserved)) == expected


def t2t_subtokens(t2t_text_encoder, counts, min_count, limit, reserved):
    encoder = t2t_text_encoder.SubwordTextEncoder()
    encoder.build_from_token_counts(
        counts, min_count, reserved_tokens=['<pad>', '<EOS>', *reserved], max_subtoken_length=limit
    )
    return encoder.all_subtoken_strings


def test_a_token_in_several_files_has_the_sum_of_its_counts(tmp_path):
    paths = write_counts(tmp_path, {'the': 3}, 1) * 2
    learner = PackedLearner(paths, str(tmp_path / 'work'), Runs())
    memory = MemoryLearner(TokenTable.from_items([('the', 6)]))
    assert learner.build(6) == memory.build(6)
    assert 'the_' in learner.build(6)


def test_the_output_of_bundles_is_bounded(tmp_path):
    dice = random.Random(4)
    counts = {''.join(dice.choices('abcdefgh', k=12)): dice.randint(1, 5) for _ in range(1000)}
    paths = write_counts(tmp_path, counts, 4)
    bound = 20_000
    runs = Runs()
    limits = LearnerLimits(group_bytes=3000, frequent_nodes=0, bundle_bytes=bound)
    learner = PackedLearner(paths, str(tmp_path / 'work'), runs, workers=2, limits=limits)
    expected = MemoryLearner(TokenTable.from_items(counts.items())).build(2)
    assert learner.build(2) == expected
    # A single pass would exceed the bound, and passes are not much smaller than necessary.
    assert sum(learner._stored[1][1].values()) > 2 * bound
    assert bound / 4 < runs.largest[METRICS] <= bound
    # Selections have the general bound.
    assert 0 < runs.largest[SELECTION_METRICS] < MOST_BUNDLE_BYTES


def test_a_round_is_one_job_and_a_finished_one_none(tmp_path):
    runs = Runs()
    paths = write_counts(tmp_path, sample_counts(), 2)
    learner = PackedLearner(paths, str(tmp_path / 'work'), runs)
    assert runs.jobs == 1  # the survey
    learner.build(20)
    assert runs.jobs == 3  # the first tables, and a round
    learner.build(40)
    assert runs.jobs == 4
    learner.build(40)
    assert runs.jobs == 4


def test_rounds_that_may_come_are_learned_in_one_job(tmp_path):
    runs, near = Runs(), Runs()
    counts = sample_counts()
    memory = MemoryLearner(TokenTable.from_items(counts.items()))
    search = functools.partial(
        search_vocabulary, target_size=250, smallest_size=memory.smallest_size, largest_count=9999
    )

    def ahead(largest_count, tried, most):
        assert most == 7
        return min_counts_ahead(search, tried, 250, most)

    limits = dataclasses.replace(SMALL_GROUPS, tokens_at_once=7 * len(counts))
    learners = [
        PackedLearner(
            write_counts(tmp_path, counts, 3), str(tmp_path / 'work'), runs,
            workers=2, limits=limits, run_near=near, ahead=ahead,
        )
        for _ in range(2)
    ]  # fmt: skip
    expected = search(memory.build)
    assert len(expected.tried) > 6
    assert search(learners[0].build) == expected
    assert runs.jobs == -(-len(expected.tried) // 3)
    assert near.jobs >= 2  # the survey and the first tables
    # Another learner takes what is there, also where iterations of some rounds are lost.
    for number, (min_count, _) in enumerate(expected.tried[:4]):
        for iteration in range(4, number, -1):
            (tmp_path / 'work' / f'round-{min_count}' / f'vocabulary-{iteration}').unlink()
    assert search(learners[1].build) == expected


# Some words with common prefixes, so that rounds of neighboring min-counts differ.
FEW_COUNTS = {
    word: 3 + 7 * number % 29
    for number, word in enumerate(
        ['kato', 'katoing', 'ingka', 'ing', 'stst', 'sting', '中文字', '文字', 'to', 'ka_ing']
    )
}


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([4, 9, 15, 30]), st.booleans()), min_size=2, max_size=3
    ),
    limits=st.sampled_from([LearnerLimits(), SMALL_GROUPS, IN_PASSES]),
)
@example(steps=[(30, True), (9, True), (15, True), (4, False)], limits=LearnerLimits())
@example(steps=[(9, True), (30, False), (4, True), (15, True)], limits=IN_PASSES)
def test_min_counts_in_any_order_with_other_learners_in_between(tmp_path_factory, steps, limits):
    folder = tmp_path_factory.mktemp('orders')
    paths = write_counts(folder, FEW_COUNTS, 2)
    memory = MemoryLearner(TokenTable.from_items(FEW_COUNTS.items()))
    runs = Runs()
    learner = PackedLearner(paths, str(folder / 'work'), runs, limits=limits)
    finished = []
    for min_count, is_resumed in steps:
        before = runs.jobs
        if is_resumed:
            learner = PackedLearner(paths, str(folder / 'work'), runs, limits=limits)
            # A search that is run again first repeats its min-counts.
            for earlier in finished:
                assert learner.build(earlier) == memory.build(earlier)
            assert runs.jobs == before
        assert learner.build(min_count) == memory.build(min_count)
        assert (runs.jobs == before) == (min_count in finished)
        finished.append(min_count)


@pytest.mark.parametrize('files', [3, 10, 19, 24])
def test_a_learner_killed_after_any_file_can_be_resumed(tmp_path, files, monkeypatch):
    paths = write_counts(tmp_path, FEW_COUNTS, 2)
    memory = MemoryLearner(TokenTable.from_items(FEW_COUNTS.items()))
    arguments = paths, str(tmp_path / 'work'), Runs()
    with monkeypatch.context() as patch:
        stop_after(patch, files)
        with pytest.raises(Exception, match=StoppedError.__name__):
            learner = PackedLearner(*arguments, limits=IN_PASSES)
            for min_count in (15, 4, 9):
                learner.build(min_count)
    learner = PackedLearner(*arguments, limits=IN_PASSES)
    for min_count in (15, 4, 9):
        assert learner.build(min_count) == memory.build(min_count)
    assert all(map(is_learner_file, names_below(str(tmp_path / 'work'))))


def test_the_remains_of_a_killed_deletion_are_ignored(tmp_path):
    paths = write_counts(tmp_path, FEW_COUNTS, 2)
    work = tmp_path / 'work'
    PackedLearner(paths, str(work), Runs()).build(15)
    # The survey is deleted first; of the others, any part may be deleted.
    (work / 'survey.json').unlink()
    (work / 'first' / 'group-00000').unlink()
    (work / 'round-15' / 'groups' / 'group-00000').write_bytes(b'')
    learner = PackedLearner(paths, str(work), Runs())
    memory = MemoryLearner(TokenTable.from_items(FEW_COUNTS.items()))
    for min_count in (15, 9):
        assert learner.build(min_count) == memory.build(min_count)


def test_every_occurrence_of_a_character_is_counted_once(tmp_path):
    counts = sample_counts()
    escaped = {word: escape_token(word, alphabet_of([word])) for word in counts}
    total = sum(n * len(escaped[word]) for word, n in counts.items())
    groups = PrefixPartitions((b'i', b'in', b'k', '中'.encode()))

    def check(tables):
        assert sum(weight for _, table in tables for _, weight in table.items()) == total

    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        tables = (
            pipeline
            | beam.Create(write_counts(tmp_path, counts, 3))
            | CountSubstrings((), 1, groups, (0, len(groups)), longest=199, workers=2)
        )
        assert_that(tables, check)


def test_a_min_count_below_the_lowest_is_refused(tmp_path):
    paths = write_counts(tmp_path, sample_counts(), 1)
    learner = PackedLearner(paths, str(tmp_path / 'work'), Runs(), lowest=20)
    memory = MemoryLearner(TokenTable.from_items(sample_counts().items()))
    assert learner.build(20) == memory.build(20)
    with pytest.raises(ValueError, match='below 20'):
        learner.build(19)


def test_a_vocabulary_larger_than_a_worker_may_send_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(
        'pipelines.learning.suffix_transforms.BundleOutput',
        lambda namespace, most=100: BundleOutput(namespace, most),
    )
    learner = PackedLearner(write_counts(tmp_path, FEW_COUNTS, 2), str(tmp_path / 'work'), Runs())
    with pytest.raises(
        Exception, match='at min-count 1 a vocabulary would be larger than a worker'
    ):
        learner.build(1)


@pytest.mark.parametrize(
    ('counts', 'error'), [({'a\rb': 3}, InputError), ({'ab': 2**62, 'ac': 2**62}, OverflowError)]
)
def test_counts_that_cannot_be_learned_from_are_refused(tmp_path, counts, error):
    paths = write_counts(tmp_path, counts, 1)
    with pytest.raises(error):
        PackedLearner(paths, str(tmp_path / 'work'), Runs())


def corpus_counts(name):
    if name == 'english' or name == 'chinese':
        column = ('english', 'chinese').index(name)
        lines = gzip.open(CORPORA / 'enzh.tsv.gz').read().split(b'\n')
        text = b'\n'.join(line.split(b'\t')[column] for line in lines if b'\t' in line)
    else:
        text = gzip.open(CORPORA / f'{name}.txt.gz').read()
    [side] = text_rows(text, 0, T2T_LINES).sides
    accumulator = TokenAccumulator()
    accumulator.add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())
    return TokenTable(*accumulator.finish())


@pytest.mark.corpora
@pytest.mark.parametrize(
    ('name', 'size'),
    [('english', 8000), ('chinese', 8000), ('docs.en', 16000),
     ('poetry.zh', 16000), ('poetry.zh', 32000)],
)  # fmt: skip
def test_whole_searches_on_the_corpora(tmp_path, name, size):
    table = corpus_counts(name)
    memory = MemoryLearner(table)
    search = functools.partial(
        search_vocabulary,
        target_size=size,
        smallest_size=memory.smallest_size,
        largest_count=memory.largest_count,
    )
    packed = learner_of(table, tmp_path, PackedLearner, workers=2)
    assert search(packed.build) == search(memory.build)


@pytest.mark.corpora
@pytest.mark.parametrize('name', ['english', 'chinese'])
def test_the_columns_give_the_vocabularies_of_tensor2tensor(t2t_text_encoder, tmp_path, name):
    # That the searches try the same min-counts is tested elsewhere; one build takes it a minute.
    table = corpus_counts(name)
    packed = learner_of(table, tmp_path, PackedLearner, workers=2)
    result = search_vocabulary(
        packed.build, 8000, smallest_size=packed.smallest_size, largest_count=packed.largest_count
    )
    theirs = t2t_subtokens(t2t_text_encoder, dict(table.items()), result.min_count, 200, [])
    assert result.subtokens == tuple(theirs)


def learner_of(table, folder, learner, **options):
    path = str(folder / 'counts.parquet')
    parquet.write_table(table.to_arrow(), path)
    return learner([path], str(folder / 'work'), Runs(), **options)
