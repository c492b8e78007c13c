"""The text of rows, counted by threads at once: the words and scripts that plain expressions find."""

import collections
import concurrent.futures
import itertools

import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.report import row_text
from pipelines.report.row_text import TextTally, script_of

GROUP = ('train', '', 'targets')

TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=())),  # lone surrogates too
        st.text('aé字ไΩ1٣ \n\u0301𝔞😀.', max_size=50),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(TEXTS)
@example(['a\nb', '', '字a字', '\ud800a'])
def test_figures_are_those_of_all_texts_whichever_thread_counts_them(texts):
    tally = TextTally()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(tally.add_texts, [texts[:2], texts[2:3], texts[3:]]))
    sums, words = tally.sums(GROUP), tally.words()
    every = ''.join(texts)
    assert (sums.rows, sums.bytes) == (len(texts), len(every.encode('utf-8', 'surrogatepass')))
    assert sums.scripts == collections.Counter(map(script_of, every))
    found = {
        words.data[start:end].tobytes().decode(): count
        for (start, end), count in zip(
            itertools.pairwise(words.offsets), words.counts.tolist(), strict=True
        )
    }
    assert found == collections.Counter(
        word for text in texts for word in row_text._WORD.findall(text)
    )


def test_a_character_is_of_the_script_that_unicode_names():
    for name in row_text._SCRIPTS:
        first = regex.search(rf'\p{{Script={name}}}', ''.join(map(chr, range(0x3400))) + '字한')
        assert first is not None and script_of(first[0]) == name
    assert [script_of(each) for each in '1 .\ud800𐍈'] == ['other'] * 5
