"""TMX beside ElementTree: the same segments of the same units, whatever stands around and within them."""

import codecs
import io
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape, quoteattr

import google_crc32c
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from read_format import read_files
from read_format import texts_of as of_rows

from tokcore.corpus.corpus import TOO_LONG, CorpusFile
from tokcore.corpus.declarations import Tmx
from tokcore.corpus.formats import block_rows, format_reader
from tokcore.corpus.stats import block_checksums, join_checksums
from tokcore.errors import InputError
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
    """The texts of each unit of the languages wanted, None where there is none."""
    rows = []
    for unit in ElementTree.fromstring(document).iter('tu'):
        row = []
        for language in wanted:
            best, text = 0, None
            for variant in unit.findall('tuv'):
                segment = variant.find('seg')
                fits = fit(language_of(variant), language)
                if segment is not None and fits > best:
                    best, text = fits, text_of(segment, drops)
            row.append(text)
        rows.append(tuple(row))
    return rows


def read(data, form, piece=1 << 20, block_bytes=1 << 20, max_line_bytes=1 << 20):
    """The rows of a file, whose every byte must be read once."""
    file = CorpusFile('x.tmx', 'x.tmx', len(data), False)
    opened = lambda _: Pieces(data, piece)  # noqa: E731
    _, blocks = read_files(form, (file,), opened, block_bytes, block_bytes, max_line_bytes)
    checksums = [each for block in blocks for each in block_checksums(block)]
    summary = join_checksums(checksums, len(data))
    assert summary.crc32c == google_crc32c.value(data)
    return [block_rows(block, T2T_LINES) for block in blocks]


class Pieces(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def __init__(self, data, piece):
        super().__init__(data)
        self._piece = piece

    def read(self, size=-1):
        return super().read(min(size, self._piece) if size > 0 else size)


def texts_of(found):
    return [texts for rows in found for texts in of_rows(rows)]


def rejects_of(found):
    return [each for rows in found for each in rows.rejects]


def expected(rows):
    """Rows with text on every side, as the normalizer leaves them; a line break is a blank."""
    kept = []
    for row in rows:
        if None in row:
            continue
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
    missing = sum(None in row for row in rows)
    assert sum(each.missing_side for each in found) == missing
    assert sum(each.empty for each in found) == len(rows) - len(expected(rows)) - missing


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
    rejects = rejects_of(found)
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


def test_an_entity_in_another_language_is_nobodys_business():
    document = (
        '<!DOCTYPE tmx SYSTEM "x"><tmx>'
        + unit('c').replace('</tu>', '<tuv lang="fr"><seg>&x;</seg></tuv></tu>')
        + '</tmx>'
    )
    assert texts_of(read(document.encode(), Tmx(('en',)))) == [('c',)]


def test_an_attribute_is_known_by_its_whole_name():
    for name in ('myxml:lang', 'xxml:lang', 'lang2', 'xml:langs', 'mylang'):
        variants = ''.join(
            f'<tuv {name}="{other}" xml:lang="{own}"><seg>{own}</seg></tuv>'
            for own, other in (('en', 'zh'), ('zh', 'en'))
        )
        document = f'<tmx><tu>{variants}</tu></tmx>'
        assert texts_of(read(document.encode(), Tmx(('en', 'zh')))) == [('en', 'zh')]


BREAKS = {
    'a reference to no character': b'a &#2; b',
    'a bare ampersand': b'a & b',
    'a control byte': b'a \x02 b',
    'a byte that is not UTF-8': b'a \xff b',
    'half a character': b'a \xe4\xb8 b',
    'a code that is not closed': b'a <ph>b',
    'a code that is not opened': b'a</ph> b',
    'an end of a section': b'a ]]> b',
    'a tag twice': b'a</seg></seg>',
    'no end': b'a</seg></tuv>',
    'an end too early': b'a</tu> b',
}
INVALID = {'a byte that is not UTF-8', 'half a character'}
broken_units = st.sampled_from([*BREAKS]).map(
    lambda name: (
        name,
        b'<tu><tuv lang="en"><seg>' + BREAKS[name] + (b'</seg></tuv></tu>', b'')[name == 'no end'],
    )
)
broken_tags = st.sampled_from(
    [
        b'<tu x="\x01"><tuv/></tu>',
        b'<tu x="1" x="2"></tu>',
        b'<tu x="><tuv/></tu>',
        b'<tu x=1></tu >',
    ]
).map(lambda unit: ('a tag', unit))


@st.composite
def broken_documents(draw):
    """A document whose last unit is sound, and of each unit its text, flaw, offset and bytes."""
    names = draw(st.lists(st.sampled_from(['body', 'group', 'b-é', 'tuv', 'seg']), max_size=3))
    data = ('<tmx>' + ''.join(f'<{name}>' for name in names)).encode()
    kinds = [*draw(st.lists(st.integers(0, 2), max_size=8)), 0]
    units, flaw = [], None
    for number, kind in enumerate(kinds):
        if flaw != 'no end':  # without its end a unit lasts until the next one
            between = st.sampled_from(['', '\n', '\r\n', '<!-- <tu> & </tu> -->', '<tux/>'])
            data += draw(between).encode()
        text, flaw, written = f't{number}', None, unit(f't{number}', 'é').encode()
        if kind:
            flaw, written = draw(broken_units if kind == 1 else broken_tags)
        units.append((text, flaw, len(data), written))
        data += written
    return data + ''.join(f'</{name}>' for name in [*reversed(names), 'tmx']).encode(), units


@given(broken_documents(), st.integers(1, 60), st.integers(1, 200))
def test_after_a_broken_unit_the_next_one_is_read(drawn, piece, block_bytes):
    document, units = drawn
    found = read(document, Tmx(('en',)), piece, block_bytes)
    assert texts_of(found) == [(text,) for text, flaw, _, _ in units if flaw is None]
    offsets = [offset for rows in found for offset in rows.offsets.tolist()]
    assert offsets == [offset for _, flaw, offset, _ in units if flaw is None]
    rejects = rejects_of(found)
    broken = [each for each in units if each[1] is not None]
    assert [(each.reason, each.offset) for each in rejects] == [
        ('invalid_utf8' if flaw in INVALID else 'broken_unit', offset)
        for _, flaw, offset, _ in broken
    ]
    for reject, (_, flaw, offset, written) in zip(rejects, broken, strict=True):
        assert reject.number == document[: reject.position].count(b'\n') + 1
        assert offset <= reject.position
        if flaw == 'an end too early':
            assert written.startswith(reject.line)
        else:
            assert reject.line == written
    assert sum(rows.lines for rows in found) == len(units)


@given(broken_documents())
def test_what_is_broken_does_not_depend_on_pieces_and_blocks(drawn):
    document, _ = drawn
    whole = read(document, Tmx(('en',)), max_line_bytes=40)
    for piece, block_bytes in ((1, 1), (7, 30), (50, 1000)):
        cut = read(document, Tmx(('en',)), piece, block_bytes, max_line_bytes=40)
        assert texts_of(cut) == texts_of(whole)
        assert rejects_of(cut) == rejects_of(whole)


@pytest.mark.parametrize('encoding', ['utf-16-le', 'utf-16-be'])
@pytest.mark.parametrize('piece', [4, 5, 64])
def test_half_a_character_of_utf_16_costs_its_unit(encoding, piece):
    mark = {'utf-16-le': codecs.BOM_UTF16_LE, 'utf-16-be': codecs.BOM_UTF16_BE}[encoding]
    text = (
        f'<tmx>{unit("one")}\n{unit("a" + chr(0xD800) + "b")}{unit(chr(0xDC00))}{unit("two")}</tmx>'
    )
    found = read(mark + text.encode(encoding, 'surrogatepass'), Tmx(('en',)), piece)
    assert texts_of(found) == [('one',), ('two',)]
    rejects = rejects_of(found)
    assert [(each.reason, each.number) for each in rejects] == [('broken_unit', 2)] * 2
    assert 'a lone surrogate at byte' in Tmx(('en',)).explain(rejects[0])


@pytest.mark.parametrize(
    'head', ['', '<?xml version="1.0" standalone="yes"?>', '<!DOCTYPE tmx SYSTEM "tmx14.dtd">']
)
def test_an_unknown_entity_costs_its_unit_whatever_the_head_says(head):
    broken = unit('a & b')
    for document in (
        f'{head}<tmx>{unit("a &eacute; b")}{unit("c")}</tmx>',
        f'{head}<tmx>{broken}{unit("a &eacute; b")}{unit("c")}</tmx>',
    ):
        found = read(document.encode(), Tmx(('en',)))
        assert texts_of(found) == [('c',)]
        *_, reject = rejects_of(found)
        assert reject.reason == 'undefined_entity'
        assert "'&eacute;'" in Tmx(('en',)).explain(reject)


@pytest.mark.parametrize(
    ('document', 'wanted'),
    [
        ('<tmx>\n<header>&</header>{}</tmx>', 'line 2, byte 15 of its text; mend'),
        ('<tmx>\n{}</body></tmx>', 'mismatched tag at line 2'),
        ('<tmx>{}', 'is the file whole?'),
        ('<tmx>{}<tu>', 'is the file whole?'),
        ('<tmx>{}<tu>&#2;', 'is the file whole?'),
        ('<tmx>{}<tu x="&#2;"', 'is the file whole?'),
        ('<tmx>{}<tu>&#2;</tu>', 'is the file whole?'),
        ('<tmx>{}<tu>&#2;</tu></other>', 'mismatched tag'),
    ],
)
def test_what_is_wrong_outside_of_units_is_an_error_of_the_file(document, wanted):
    with pytest.raises(InputError, match='x.tmx is not well-formed XML') as raised:
        read(document.format(unit('one')).encode(), Tmx(('en',)), 9)
    assert wanted in str(raised.value)


def test_many_broken_units_are_read_in_pieces_of_any_size():
    count = 20_000
    document = f'<tmx>{unit("one")}{unit("&") * count}{unit("two")}</tmx>'.encode()
    found = read(document, Tmx(('en',)))
    assert texts_of(found) == [('one',), ('two',)]
    assert sum(len(rows.rejects) for rows in found) == count


def test_a_unit_without_a_language_is_not_an_empty_one():
    english, blank = '<tuv lang="en"><seg>a</seg></tuv>', '<tuv lang="zh"><seg> </seg></tuv>'
    document = f'<tmx><tu>{english}</tu><tu>{english}{blank}</tu><tu/></tmx>'
    [rows] = read(document.encode(), Tmx(('en', 'zh')))
    assert (rows.lines, len(rows), rows.empty, rows.missing_side) == (3, 0, 1, 2)


def test_the_languages_of_a_file_are_named():
    codes = [f'x{number}' for number in range(25)]
    variants = ''.join(f'<tuv xml:lang="{code}"><seg>a</seg></tuv>' for code in codes)
    for count, wanted in ((2, "the languages 'x0', 'x1';"), (25, '5 more;'), (0, 'no languages;')):
        data = f'<tmx><tu>{variants if count == 25 else variants[: count * 42]}</tu></tmx>'.encode()
        form, file = Tmx(('en',)), CorpusFile('x.tmx', 'x.tmx', len(data), False)
        told = format_reader(form).explain_empty([file], lambda _, data=data: io.BytesIO(data))
        assert wanted in told
