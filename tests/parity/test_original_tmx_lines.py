"""TMX by lines beside Tensor2Tensor's `paracrawl_v3_pairs`: the same pairs, whatever the lines are."""

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from original_problems import problem_module
from read_format import became_of

from tokcore.corpus.declarations import TmxLines

heads = st.sampled_from(['', ' ', '   ', '\t', ' \t', '\u00a0'])
inside = st.text(st.sampled_from('ab é中\u00a0\u3000;&<>/'), max_size=6)
ENTITIES = ['&amp;', '& amp;', '&amp;amp;', '&amp;lt;', '&lt;', '& gt;', '&quot;', '& apos;']
entities = st.sampled_from(['', *ENTITIES, '&AMP;', '&#38;', '</seg>'])
ends = st.sampled_from(['\n', '\n', '\n', '\r\n', ' \n', '\n\n'])
lines = st.tuples(heads, st.sampled_from(['<seg>', '<seg >', '<SEG>', '']), inside, entities, inside,
                  st.sampled_from(['</seg>', '</seg>', '']), ends).map(''.join)  # fmt: skip
segments = st.tuples(
    st.just(' <seg>'), inside, entities, inside, st.sampled_from(['</seg>\n'])
).map(''.join)


@pytest.fixture(scope='module')
def original():
    return problem_module('cleaner_en_xx').paracrawl_v3_pairs


def texts_of(became):
    # Read without a normalizer that strips: blank sides are text, as they are to the original.
    return [each for each in became.found.values() if not isinstance(each, str)]


@given(st.lists(st.one_of(segments, lines), max_size=8).map(''.join), st.integers(1, 80))
@example(' <seg>a</seg>\n <seg>b</seg>\n <seg>left over</seg>\n', 1)
@example(' <seg>a</seg>\r\n <seg>b</seg>\n <seg>c</seg>', 20)
@example('  <seg>&amp;amp;amp; a</seg>\n <seg></seg>\n', 5)
def test_pairs_are_the_original_ones(original, content, block_bytes):
    theirs = [*original(io.BytesIO(content.encode()))]
    became = became_of(TmxLines(), content.encode(), block_bytes=block_bytes)
    assert texts_of(became) == theirs


def test_the_plain_file_is_read_too(original):
    """The original opens it as text and then decodes it: `str` has no `decode`."""
    content = ' <seg>a</seg>\n <seg>b</seg>\n'
    with pytest.raises(AttributeError):
        next(original(io.StringIO(content)))
    assert texts_of(became_of(TmxLines(), content.encode())) == [('a', 'b')]
    assert texts_of(became_of(TmxLines(), content.encode(), zipped=True)) == [('a', 'b')]
