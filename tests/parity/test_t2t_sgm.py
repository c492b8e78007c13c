"""SGM against Tensor2Tensor's `_preprocess_sgm` and `compile_data`: the same texts."""

import gzip
import io
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from original_problems import problem_module
from read_format import rows_of_block

from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.declarations import Sgm
from tokcore.corpus.formats import block_rows, format_reader, index_ranges, plan_items, read_blocks
from tokcore.text.normalizers import T2T_LINES


@pytest.fixture(scope='module')
def translate():
    return problem_module('translate')


MARKUP = [
    '<srcset setid="a">', '</srcset>', '<doc id="1">', '</doc>', '<p>', '</p>', '<hl>', '', ' '
]  # fmt: skip
PIECES = [
    '<seg', '<seg>', '<seg id="1">', '</seg>', '<p>', '>', '<', ' ', '\t', '\u3000', '\x0b', '\r',
    'text', '&amp;', 'ü', '字', '\u2028',
]  # fmt: skip

line = st.one_of(
    st.sampled_from(MARKUP),
    st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\n'), max_size=12).map(
        lambda text: f'<seg id="1">{text}</seg>'
    ),
    st.lists(st.sampled_from(PIECES), max_size=8).map(''.join),
)


def as_read(line):
    """A line as `tf.gfile` and `txt_line_iterator` give it."""
    return line.replace('\r', '').strip()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(line, line), max_size=12))
def test_lines_are_what_the_original_makes_of_them(translate, pairs):
    wanted = []
    for pair in pairs:
        found = [translate._preprocess_sgm(as_read(line), True) or '' for line in pair]
        # What it writes is stripped when it is read again, and nothing may be left then.
        if all(text.strip() for text in found):
            wanted.append(tuple(text.strip() for text in found))
    source, target = (''.join(f'{pair[side]}\n' for pair in pairs).encode() for side in (0, 1))
    rows = rows_of_block(Sgm(), source, target)
    ours = [tuple(side.row(number) for side in rows.sides) for number in range(len(rows))]
    assert ours == wanted
    assert rows.lines == len(pairs) == len(rows) + rows.empty + len(rows.rejects)


SOURCE = '<srcset setid="dev" srclang="any">\n<doc docid="a" genre="news">\n<p>\n'
TARGET = '<refset setid="dev" srclang="any" trglang="en">\n<doc docid="a" genre="news">\n<p>\n'
END = '</p>\n</doc>\n</set>\n'


def segments(side, count=40):
    for number in range(count):
        words = f' &quot;{side}&quot;  no. {number} ' * (number % 3 + 1)
        text = '' if number % 7 == side else words
        yield f'  <seg id="{number}">{text}</seg>\r\n' if number % 2 else f'<seg>{text}</seg>\n'


def pair_of_files():
    return SOURCE + ''.join(segments(0)) + END, TARGET + ''.join(segments(1)) + END


def rows_of(source, target, chosen, item_bytes=1 << 20, compressed=False):
    contents = [gzip.compress(each) if compressed else each for each in (source, target)]
    names = ['a.sgm', 'b.sgm']
    files = tuple(
        CorpusFile(name, name, len(content), compressed)
        for name, content in zip(names, contents, strict=True)
    )
    split = Split('train', chosen, (files,))

    def opened(path):
        return io.BytesIO(contents[names.index(path)])

    index = [format_reader(chosen).index(part, opened) for part in index_ranges(split, item_bytes)]
    found = []
    for item in plan_items(split, index, item_bytes):
        for block in read_blocks(item, opened, 64):
            rows = block_rows(block, T2T_LINES)
            found += [tuple(side.row(each) for side in rows.sides) for each in range(len(rows))]
    return found


def test_files_are_what_is_compiled(translate, tmp_path):
    source, target = pair_of_files()
    (tmp_path / 'a.sgm').write_bytes(source.encode())
    (tmp_path / 'b.sgm').write_bytes(target.encode())
    compiled = translate.compile_data(str(tmp_path), [['none', ('a.sgm', 'b.sgm')]], 'compiled')
    texts = problem_module('text_problems').text2text_txt_iterator(
        f'{compiled}.lang1', f'{compiled}.lang2'
    )
    wanted = [(each['inputs'], each['targets']) for each in texts]
    # Whose segment is white space alone is compiled, and then an example without text.
    wanted = [pair for pair in wanted if all(pair)]
    assert len(wanted) > 20
    for item_bytes, compressed in itertools.product([200, 1 << 20], [False, True]):
        found = rows_of(source.encode(), target.encode(), Sgm(), item_bytes, compressed)
        assert found == wanted


def test_compressed_files_are_sgm_too(translate, tmp_path):
    """The original takes `.sgm.gz` for plain text, and its markup for sentences."""
    for name, text in zip(('a.sgm.gz', 'b.sgm.gz'), pair_of_files(), strict=True):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    names = ('a.sgm.gz', 'b.sgm.gz')
    compiled = translate.compile_data(str(tmp_path), [['none', names]], 'compiled')
    with open(f'{compiled}.lang1') as lines:
        assert '<srcset' in lines.read()
    source, target = (each.encode() for each in pair_of_files())
    found = rows_of(source, target, Sgm(), 300, True)
    assert found and not any('<' in text for pair in found for text in pair)
