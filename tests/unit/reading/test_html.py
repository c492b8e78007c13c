"""What notebooks show of datasets."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from written_dataset import opened

from tokcore.reading.html import html_table

OF_BYTE = {character: ord(character) + 2 for character in map(chr, range(33, 127))}


class Cells(HTMLParser):
    """Collects the text of each cell and of each piece."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.pieces, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        {'td': self.cells, 'span': self.pieces}.get(tag, []).append('')

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if 'td' in self.open:
            self.cells[-1] += text
        if self.open[-1] == 'span':
            self.pieces[-1] += text


@given(st.lists(st.text(), min_size=1))
def test_cells_are_text_whatever_they_hold(values):
    page = Cells(html_table([values]))
    assert page.cells == values and page.open == []


def test_splits_and_the_first_rows_are_shown(tmp_path):
    rows = [
        {'targets': [OF_BYTE[character] for character in text]} for text in ('<b>', 'a&b', '', 'x')
    ]
    dataset = opened(tmp_path, [rows[:3], rows[3:]])
    page = Cells(dataset._repr_html_())
    assert page.cells == ['train', '4', '2', '<b>', 'a&b', '']
    assert page.pieces == [*'<b>', *'a&b']


def test_a_long_row_is_cut_and_rows_that_cannot_be_read_are_reported(tmp_path):
    dataset = opened(tmp_path, [[{'targets': [99] * 1000}]])
    page = Cells(dataset._repr_html_())
    assert page.pieces == ['a'] * 40 and page.cells[-1].endswith(' … 1,000 ids')
    shard = tmp_path / 'd-train-00000-of-00001'
    shard.write_bytes(b'no record')
    assert shard.name in dataset._repr_html_()
