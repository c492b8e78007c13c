"""The learner and the search against Tensor2Tensor itself, files included."""

import collections
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokcore.counts.token_table import TokenTable
from tokcore.learning.size_search import search_vocabulary
from tokcore.subword.learner import MemoryLearner
from tokcore.subword.text_encoder import SubwordTextEncoder, dump_vocabulary

SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

CHARACTERS = 'ab' * 6 + 'cd_\\u;019 \t\n\ré中ा\U0001f600\x85\xa0'
words = st.one_of(
    st.text(st.sampled_from(CHARACTERS), max_size=9), st.text(st.sampled_from('ab'), max_size=14)
)
tables = st.dictionaries(words, st.integers(1, 30), max_size=14)
limits = st.sampled_from([1, 2, 3, 5, 200, None])


@st.composite
def reserved_words(draw, counts):
    if not counts or draw(st.integers(0, 2)):
        return []
    long_words = sorted(counts, key=len, reverse=True)[: 1 + len(counts) // 2]
    return draw(st.lists(st.sampled_from(long_words), min_size=1, max_size=3))


def stored(encoder, folder):
    path = folder / 'vocabulary'
    encoder.store_to_file(str(path))
    return path.read_bytes()


@SETTINGS
@given(tables, limits, st.integers(1, 40), st.data())
def test_one_min_count(t2t_text_encoder, tmp_path_factory, counts, limit, min_count, data):
    reserved = data.draw(reserved_words(counts))
    encoder = t2t_text_encoder.SubwordTextEncoder()
    encoder.build_from_token_counts(
        counts, min_count, reserved_tokens=['<pad>', '<EOS>', *reserved], max_subtoken_length=limit
    )
    table = TokenTable.from_items(counts.items())
    subtokens = MemoryLearner(table, max_subtoken_length=limit, reserved_tokens=reserved).build(
        min_count
    )
    assert subtokens == encoder.all_subtoken_strings
    if not any('\n' in each or '\r' in each for each in subtokens):
        assert dump_vocabulary(subtokens) == stored(encoder, tmp_path_factory.getbasetemp())


TEXTS = st.lists(
    st.text(st.sampled_from('ab' * 4 + 'c_\\\\1 .\t中' + '\n' * 4 + '\r'), max_size=30),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@SETTINGS
@given(TEXTS, st.integers(20, 60))
def test_texts_with_line_breaks(t2t_text_encoder, t2t_tokenizer, tmp_path_factory, texts, target):
    """The whole of `build_from_generator`; and the file gives both the ids that it gives."""
    theirs = t2t_text_encoder.SubwordTextEncoder.build_from_generator(texts, target)
    counts = collections.Counter(token for text in texts for token in t2t_tokenizer.encode(text))
    learner = MemoryLearner(TokenTable.from_items(counts.items()), max_subtoken_length=None)
    found = search_vocabulary(
        learner.build,
        target,
        min_count_range=(1, 1000),
        smallest_size=learner.smallest_size,
        largest_count=learner.largest_count,
    )
    assert tuple(found.subtokens) == theirs.all_subtoken_strings
    if '\r' in ''.join(texts):  # which files cannot hold, and no text of tokbeam's has
        return
    path = tmp_path_factory.getbasetemp() / 'with-line-feeds'
    path.write_bytes(dump_vocabulary(found.subtokens))
    loaded = t2t_text_encoder.SubwordTextEncoder(str(path))
    ours = SubwordTextEncoder.load(path)
    assert loaded.vocab_size == ours.vocab_size == theirs.vocab_size
    for text in texts:
        ids = theirs.encode(text)
        assert loaded.encode(text) == ids == ours.encode(text)
        assert ours.decode(ids) == theirs.decode(ids) == text


def sample_counts():
    """Words of three alphabets whose counts fall like those of a text, up to some thousands."""
    dice = random.Random(3)
    syllables = ['ka', 'to', 'mi', 'ra', 'en', 'ing', 'st', '中', '文字', 'é', '_', '\\', '7', '12']
    return {
        ''.join(dice.choices(syllables, k=dice.randint(1, 5))): 1 + 20_000 // (3 + rank)
        for rank in range(1200)
    }


@pytest.fixture(scope='module')
def learner():
    return MemoryLearner(TokenTable.from_items(sample_counts().items()), max_subtoken_length=20)


@pytest.mark.parametrize('limits', [(1, 1000), (1, 3), (5, 6), (40, 90), (7, 7), (2000, 9000)])
@pytest.mark.parametrize(
    'target',
    [*(1, 150), *(pytest.param(n, marks=pytest.mark.slow) for n in (60, 199, 333, 640, 2500))],
)
def test_the_searched_vocabulary_is_the_same_file(
    t2t_text_encoder, tmp_path, monkeypatch, learner, target, limits
):
    # Tensor2Tensor's search with its learner's results, each learned once for all the cases.
    tried = []
    original = t2t_text_encoder.SubwordTextEncoder

    def remembered(self, counts, min_count, *arguments, **options):
        tried.append(min_count)
        if min_count not in _learned:
            encoder = original()
            learn(encoder, counts, min_count, *arguments, **options)
            _learned[min_count] = encoder._all_subtoken_strings
        self._init_subtokens_from_list(_learned[min_count])

    learn = original.build_from_token_counts
    monkeypatch.setattr(original, 'build_from_token_counts', remembered)
    encoder = original.build_to_target_size(
        target, sample_counts(), *limits, max_subtoken_length=20
    )
    result = search_vocabulary(
        learner.build,
        target,
        min_count_range=limits,
        smallest_size=learner.smallest_size,
        largest_count=learner.largest_count,
    )
    assert [min_count for min_count, _ in result.tried] == list(dict.fromkeys(tried))
    assert dump_vocabulary(result.subtokens) == stored(encoder, tmp_path)


_learned: dict[int, list[str]] = {}
