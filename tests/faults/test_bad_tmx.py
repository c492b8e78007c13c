"""Files that are not TMX, or are cut, damaged or hostile: a sentence with the file and the byte, little memory."""

import codecs
import io
import random
import sys
import tracemalloc
from xml.parsers import expat

import pytest
from dataset_files import lines_of
from jobs import refuse, succeed, write
from read_format import read_files

from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.declarations import Tmx
from tokcore.corpus.formats import block_rows
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES

UNIT = '<tu><tuv xml:lang="en"><seg>text {} &amp; more</seg></tuv><tuv xml:lang="zh"><seg>中 {}</seg></tuv></tu>\n'
WHOLE = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "http://example.invalid/tmx14.dtd">\n<tmx><body>\n{}</body></tmx>\n'

ENTITIES = '<!DOCTYPE tmx [<!ENTITY a "ha">{}]>'.format(
    ''.join(f'<!ENTITY {chr(98 + number)} "{f"&{chr(97 + number)};" * 10}">' for number in range(9))
)


def whole(*texts):
    return WHOLE.format(''.join(UNIT.format(text, text) for text in texts))


def building(path, folder, *further):
    return (
        *('build', '--tmx', path, '--languages', 'en,zh', '--name', 'x', '--vocab-size', 60),
        *('--shards', 1, '--output', folder, *further),
    )


def read_blocks_of(data, languages=('en', 'zh'), block_bytes=1 << 20):
    """The blocks of a file, read without a command."""
    file = CorpusFile('x.tmx', 'x.tmx', len(data), False)
    opened = lambda _: io.BytesIO(data)  # noqa: E731
    return read_files(Tmx(languages), (file,), opened, 1 << 20, block_bytes, 1 << 20)[1]


def rows_and_rejects(data, block_bytes=1 << 20):
    rows = [block_rows(block, T2T_LINES) for block in read_blocks_of(data, block_bytes=block_bytes)]
    return sum(map(len, rows)), sum(len(each.rejects) for each in rows)


def peak_of(read):
    """The result of a call, and the most memory that it took."""
    tracemalloc.start()
    try:
        return read(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_document_type_that_names_a_dtd_is_read_and_nothing_is_fetched(tmp_path):
    succeed(*building(write(tmp_path / 'x.tmx', whole('one', 'two').encode()), tmp_path / 'out'))
    assert lines_of(tmp_path / 'out')['examples'] == 2


@pytest.mark.parametrize(
    ('content', 'said'),
    [
        (ENTITIES + '<tmx>&j;</tmx>', 'declarations in its document type'),
        (
            '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/hostname">]><tmx>&x;</tmx>',
            'declarations in its',
        ),
        ('<!DOCTYPE tmx [<!ENTITY % x SYSTEM "x">%x;]><tmx/>', 'declarations in its document type'),
        (whole('a &eacute; b'), "'&eacute;'"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><tmx/>', 'is declared to be ISO-8859-1'),
        ('<?xml version="1.0" encoding="utf-16"?><tmx/>', 'is not well-formed XML'),
        ('no XML at all\n', 'is not well-formed XML'),
        ('<html><body/></html>', 'is a web page (HTML)'),
        ('<a><body/></a>', 'is XML of <a> and not of <tmx>'),
        ('<tmx><tu></tmx>', 'mismatched tag at byte 11'),
        ('<tmx><tu a="1" a="2"/></tmx>', 'duplicate attribute'),
        ('<tmx>a & b</tmx>', 'not well-formed'),
        ('<tmx/><tmx/>', 'junk after document element at line 1, byte 6'),
        ('<tmx>' + '<a>' * 5000 + '</a>' * 5000 + '</tmx>', 'over 1000 elements within each other'),
        ('<tmx>', 'is the file whole?'),
    ],
)
def test_what_cannot_be_read_is_a_sentence(content, said, tmp_path):
    path = write(tmp_path / 'x.tmx', content.encode())
    sentence = refuse(*building(path, tmp_path / 'out'))
    assert str(path) in sentence and said in sentence


def test_bytes_that_are_not_utf8_are_named_by_their_offset(tmp_path):
    data = whole('one', 'two').encode().replace(b'text two', b'text \xff')
    sentence = refuse(*building(write(tmp_path / 'x.tmx', data), tmp_path / 'out'))
    assert f'byte {data.index(0xFF)}' in sentence


def test_utf16_without_a_mark_and_halves_of_it_are_refused(tmp_path):
    text = whole('one')
    bare = write(tmp_path / 'bare.tmx', text.encode('utf-16-le'))
    assert 'byte order mark' in refuse(*building(bare, tmp_path / 'out'))
    odd = write(tmp_path / 'odd.tmx', codecs.BOM_UTF16_LE + text.encode('utf-16-le')[:-1])
    assert 'odd.tmx' in refuse(*building(odd, tmp_path / 'out'))


def test_a_file_cut_anywhere_is_not_taken_for_a_whole_one():
    data = whole('one', 'two & three'.replace('&', '&amp;')).encode()
    assert rows_and_rejects(data) == rows_and_rejects(data.rstrip()) == (2, 0)
    for end in range(len(data.rstrip())):
        with pytest.raises(InputError, match='x.tmx'):
            rows_and_rejects(data[:end], 7)


MARKUP = [
    b'', b'<', b'>', b'&', b'"', b'<!--', b'-->', b']]>', b'<![CDATA[', b'\0', b'\xc3', b'a', b'<tu>',
]  # fmt: skip


def test_what_expat_refuses_is_refused_or_rejected_and_all_else_has_rows():
    dice = random.Random(4)
    data = whole('one', 'two', 'three').encode()
    outcomes = set()
    for _ in range(600):
        mutated = bytearray(data)
        for _ in range(dice.randint(1, 3)):
            place = dice.randrange(len(mutated))
            mutated[place : place + dice.randint(0, 2)] = dice.choice(MARKUP)
        parser = expat.ParserCreate()
        try:
            parser.Parse(bytes(mutated), True)
            is_sound = True
        except expat.ExpatError:
            is_sound = False
        try:
            found, rejects = rows_and_rejects(bytes(mutated), dice.choice([1, 50, 1000]))
        except InputError:
            # Beyond what expat refuses: another root, encodings, declarations.
            assert not is_sound or b'<tmx' not in mutated or b'utf' in mutated or b'[' in mutated
            found = None
        else:
            assert is_sound or rejects
        outcomes.add(found)
    assert {None, 2, 3} <= outcomes


@pytest.mark.parametrize(
    ('unclosed', 'message'),
    [
        ('<!--', 'has no end within'),
        ('<a b="', 'has no end within'),
        ('<![CDATA[', 'unclosed CDATA section'),  # only known at the end of the file
        ('<?x ', 'has no end within'),
    ],
)
def test_markup_without_an_end_does_not_fill_memory(unclosed, message):
    size = 24 << 20
    data = f'<tmx>{unclosed}'.encode() + b' ' * size

    def read():
        with pytest.raises(InputError, match=message):
            read_blocks_of(data)

    _, peak = peak_of(read)
    assert peak - sys.getsizeof(data) < size // 2


def test_a_unit_that_is_too_long_does_not_fill_memory():
    assert rows_and_rejects(whole('one').encode()) == (1, 0)  # imports the reader
    words = b'word ' * (2 << 20)
    variant = b'<tuv xml:lang="en"><note>' + words + b'</note><seg>' + words + b'</seg></tuv>'
    data = b'<tmx><tu>' + variant * 2 + b'</tu></tmx>'
    blocks, peak = peak_of(lambda: read_blocks_of(data, ('en',)))
    [reject] = [each for block in blocks for each in block_rows(block, T2T_LINES).rejects]
    assert (reject.offset, reject.size) == (5, len(data) - len('<tmx></tmx>'))
    assert peak < len(words)
