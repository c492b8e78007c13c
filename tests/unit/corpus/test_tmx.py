"""TMX beside ElementTree: the same segments of the same units, whatever stands around and within them."""

import codecs
import dataclasses
import io
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape, quoteattr

import google_crc32c
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.corpus.corpus import TOO_LONG, CorpusFile, Split
from tokcore.corpus.formats import block_rows, plan_items, read_blocks
from tokcore.corpus.stats import block_checksums, join_checksums
from tokcore.corpus.tmx import Tmx
from tokcore.text.normalizers import T2T_LINES

LANG = '{http://www.w3.org/XML/1998/namespace}lang'
CODES = {'bpt', 'ept', 'it', 'ph', 'ut'}

texts = st.text(st.sampled_from('ab é中\u00a0\n\r\t<>&"\'-]'), max_size=8)
names = st.sampled_from(['bpt', 'ept', 'it', 'ph', 'ut', 'hi', 'sub', 'b', 'tux', 'segment'])
languages = st.sampled_from(['en', 'EN', 'en-US', 'en_gb', 'zh', 'zh-Hant', 'ZH', 'e', 'eng', 'fr'])
comments = st.sampled_from(
    ['<!---->', '<!-- <tu> </tu> -->', '<!-- - > ]]> -->', '<?x <tu> ?>', '<?y ??>']
)
characters = st.sampled_from(
    ['&#9;', '&#233;', '&#x4e2d;', '&#x1F642;', '&amp;', '&lt;', '&#13;', '&#10;']
)
sections = st.sampled_from(['<![CDATA[]]>', '<![CDATA[a <tu> ]] &amp; b]]>', '<![CDATA[]]]]>'])
blanks = st.sampled_from(['', ' ', '\n', '\t\r\n'])
outside = st.lists(st.one_of(comments, blanks, st.just('<note>x &lt;tu&gt;</note>')), max_size=2)


@st.composite
def attributes(draw, own=()):
    """Attributes in any order, with what must be there, in quotes of either kind."""
    further = {'x': 'a > b', 'y': '<tu>', 'langs': 'zh', 'tuid': "it's"}
    chosen = draw(st.lists(st.sampled_from([*further]), max_size=2, unique=True))
    pairs = draw(st.permutations([*own, *((name, further[name]) for name in chosen)]))
    gap, equals = draw(st.sampled_from([' ', '\n', '  '])), draw(st.sampled_from(['=', ' = ']))
    return ''.join(f'{gap}{name}{equals}{quoteattr(value)}' for name, value in pairs) + draw(blanks)


@st.composite
def contents(draw, depth=0):
    """What may stand in a segment."""
    found = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.integers(0, 5 if depth < 3 else 3))
        if kind == 0:
            found.append(escape(draw(texts)).replace(']]&gt;', ''))
        elif kind == 1:
            found.append(draw(comments))
        elif kind == 2:
            found.append(draw(characters))
        elif kind == 3:
            found.append(draw(sections))
        else:
            name = draw(names)
            inner = draw(contents(depth + 1))
            head = f'<{name}{draw(attributes())}'
            found.append(f'{head}/>' if not inner else f'{head}>{inner}</{name}\n>')
    return ''.join(found)


@st.composite
def variants(draw):
    own = draw(st.sampled_from([('xml:lang',), ('lang',), ('lang', 'xml:lang'), ()]))
    head = draw(attributes([(name, draw(languages)) for name in own]))
    segment = draw(st.sampled_from(['<seg>{}</seg>', '<seg a="1">{}</seg >', '<seg/>', '']))
    between = ''.join(draw(outside))
    return f'<tuv{head}>{between}{segment.format(draw(contents()))}{between}</tuv>'


@st.composite
def units(draw):
    if draw(st.integers(0, 9)) == 0:
        return f'<tu{draw(attributes())}/>'
    body = ''.join(draw(st.one_of(variants(), st.sampled_from(['<prop>p</prop>', '<tuv/>', '\n'])))
                   for _ in range(draw(st.integers(0, 4))))  # fmt: skip
    return f'<tu{draw(attributes())}>{body}</tu>'


@st.composite
def documents(draw):
    head = draw(
        st.sampled_from(['', '<?xml version="1.0"?>', '<?xml version="1.0" encoding="utf-8"?>\n'])
    )
    doctype = draw(
        st.sampled_from(['', '<!DOCTYPE tmx SYSTEM "tmx14.dtd">', "<!DOCTYPE tmx SYSTEM 'a>b'>"])
    )
    body = [draw(st.one_of(units(), outside.map(''.join))) for _ in range(draw(st.integers(0, 5)))]
    return f'{head}{doctype}<!-- <tu> --><tmx version="1.4"><header/><body>{"".join(body)}</body></tmx>\n'


def fit(language, wanted):
    given, wanted = language.lower().replace('_', '-'), wanted.lower()
    return 2 if given == wanted else int(given.startswith(f'{wanted}-'))


def language_of(variant):
    return variant.get(LANG, variant.get('lang', ''))


def text_of(element, drops):
    if drops and element.tag in CODES:
        return ''
    inner = ''.join(text_of(each, drops) + (each.tail or '') for each in element)
    return (element.text or '') + inner


def plain_rows(document, wanted, drops=True):
    """The texts of each unit of the languages wanted, '' where there is none."""
    rows = []
    for unit in ElementTree.fromstring(document).iter('tu'):
        row = []
        for language in wanted:
            best, text = 0, ''
            for variant in unit.findall('tuv'):
                segment = variant.find('seg')
                fits = fit(language_of(variant), language)
                if segment is not None and fits > best:
                    best, text = fits, text_of(segment, drops)
            row.append(text)
        rows.append(tuple(row))
    return rows


def read(data, form, piece=1 << 20, block_bytes=1 << 20, max_line_bytes=1 << 20):
    """The rows of a file, read in blocks of a size, and the files' checksum by its checksums."""
    path = 'x.tmx'
    file = CorpusFile(path, path, len(data), False)
    split = Split('train', form, ((file,),))
    blocks = []
    for item in plan_items(split):
        blocks += read_blocks(item, lambda _: Pieces(data, piece), block_bytes, max_line_bytes)
    checksums = [each for block in blocks for each in block_checksums(block)]
    summary = join_checksums(checksums, len(data))
    assert (summary.bytes, summary.crc32c) == (len(data), google_crc32c.value(data))
    return [block_rows(block, T2T_LINES) for block in blocks]


class Pieces(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def __init__(self, data, piece):
        super().__init__(data)
        self._piece = piece

    def read(self, size=-1):
        return super().read(min(size, self._piece) if size > 0 else size)


def texts_of(found):
    sides = [[side.row(row) for rows in found for row in range(len(rows)) for side in [rows.sides[each]]]
             for each in range(len(found[0].sides))]  # fmt: skip
    return list(zip(*sides, strict=True))


def expected(rows):
    """Rows with text on every side, as the normalizer leaves them; a line break is a blank."""
    kept = []
    for row in rows:
        texts = tuple(
            text.replace('\r\n', ' ').replace('\n', ' ').replace('\r', ' ').strip() for text in row
        )
        if all(texts):
            kept.append(texts)
    return kept


@given(documents(), st.integers(1, 40), st.integers(1, 200), st.booleans())
@example(
    '<tmx><tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv lang="zh"><seg>b</seg></tuv></tu></tmx>',
    1,
    1,
    True,
)
def test_segments_are_those_of_elementtree(document, piece, block_bytes, drops):
    form = Tmx(('en', 'zh'), 'drop' if drops else 'text')
    found = read(document.encode(), form, piece, block_bytes)
    rows = plain_rows(document, ('en', 'zh'), drops)
    assert texts_of(found) == expected(rows)
    assert sum(each.lines for each in found) == len(rows)
    assert sum(each.empty for each in found) == len(rows) - len(expected(rows))


@given(documents())
def test_one_language_is_a_text(document):
    found = read(document.encode(), Tmx(('en-US',)))
    assert texts_of(found) == expected(plain_rows(document, ('en-us',)))


@given(documents(), st.sampled_from(['utf-16-le', 'utf-16-be', 'utf-8']), st.integers(4, 50))
def test_encodings_with_a_mark_give_the_same(document, encoding, piece):
    document = document.replace(' encoding="utf-8"', '')
    marks = {
        'utf-16-le': codecs.BOM_UTF16_LE,
        'utf-16-be': codecs.BOM_UTF16_BE,
        'utf-8': codecs.BOM_UTF8,
    }
    data = marks[encoding] + document.encode(encoding)
    assert texts_of(read(data, Tmx(('en', 'zh')), piece)) == texts_of(
        read(document.encode(), Tmx(('en', 'zh')))
    )


def unit(text, name='x'):
    return f'<tu tuid="{name}"><tuv lang="en"><seg>{text}</seg></tuv></tu>'


@pytest.mark.parametrize('block_bytes', [1, 100, 10_000])
@pytest.mark.parametrize('piece', [7, 64, 10_000])
def test_units_too_long_are_rejects_and_those_beside_them_rows(block_bytes, piece):
    document = f'<tmx>{unit("one")}{unit("x" * 5000)}{unit("two")}{unit("y" * 300)}<tu/>{unit("three")}</tmx>'
    found = read(document.encode(), Tmx(('en',)), piece, block_bytes, 200)
    assert texts_of(found) == [('one',), ('two',), ('three',)]
    rejects = [each for rows in found for each in rows.rejects]
    assert [each.reason for each in rejects] == [TOO_LONG] * 2
    assert [each.offset for each in rejects] == [
        document.index(unit(text)) for text in ('x' * 5000, 'y' * 300)
    ]
    assert [each.size for each in rejects] == [len(unit('x' * 5000)), len(unit('y' * 300))]
    assert sum(rows.lines for rows in found) == 6


def test_what_stands_between_units_may_be_longer_than_a_line():
    document = (
        f'<tmx><header>{"h" * 5000}</header>{unit("one")}<!-- a -->{" " * 5000}{unit("two")}</tmx>'
    )
    assert texts_of(read(document.encode(), Tmx(('en',)), 64, 100, 200)) == [('one',), ('two',)]


def test_a_row_is_known_by_where_its_unit_begins():
    document = f'<tmx>\n{unit("one", "é")}\n {unit("two")}</tmx>'
    found = read(document.encode(), Tmx(('en',)), 16, 10)
    offsets = [offset for rows in found for offset in rows.offsets.tolist()]
    data = document.encode()
    assert offsets == [data.index(unit(*each).encode()) for each in (('one', 'é'), ('two',))]


def test_an_unknown_entity_is_a_reason_of_its_own():
    document = f'<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx>{unit("a &eacute; b")}{unit("c")}</tmx>'
    found = read(document.encode(), Tmx(('en',)))
    assert texts_of(found) == [('c',)]
    [reject] = [each for rows in found for each in rows.rejects]
    assert reject.reason == 'undefined_entity'
    assert "'&eacute;'" in Tmx(('en',)).explain(reject)


def test_an_entity_in_another_language_is_nobodys_business():
    document = (
        '<!DOCTYPE tmx SYSTEM "x"><tmx>'
        + unit('c').replace('</tu>', '<tuv lang="fr"><seg>&x;</seg></tuv></tu>')
        + '</tmx>'
    )
    assert texts_of(read(document.encode(), Tmx(('en',)))) == [('c',)]
    assert dataclasses.astuple(Tmx(('en',))) == (('en',), 'drop')


def test_an_attribute_is_known_by_its_whole_name():
    for name in ('myxml:lang', 'xxml:lang', 'lang2', 'xml:langs', 'mylang'):
        variants = ''.join(
            f'<tuv {name}="{other}" xml:lang="{own}"><seg>{own}</seg></tuv>'
            for own, other in (('en', 'zh'), ('zh', 'en'))
        )
        document = f'<tmx><tu>{variants}</tu></tmx>'
        assert texts_of(read(document.encode(), Tmx(('en', 'zh')))) == [('en', 'zh')]
