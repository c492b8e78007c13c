"""Members of archives: found by name or glob, read as a stream; no name of one is a path."""

import bz2
import glob
import gzip
import io
import itertools
import lzma
import random
import struct
import tarfile
import zipfile

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from packed_members import compression_by

from tokcore.corpus import storage
from tokcore.corpus.archive_reading import member_text, reading_on, text_pieces
from tokcore.corpus.archives import ArchiveLists, _plain_file, archive_and_member
from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.storage import PIECE_BYTES
from tokcore.errors import InputError

PACKERS = {
    'tar': bytes,
    'tar.gz': gzip.compress,
    'tgz': gzip.compress,
    'tar.bz2': bz2.compress,
    'tbz': bz2.compress,
    'tbz2': bz2.compress,
    'tar.xz': lzma.compress,
    'txz': lzma.compress,
    'tar.zst': zstandard.ZstdCompressor().compress,
    'tzst': zstandard.ZstdCompressor().compress,
}
KINDS = ['zip', *PACKERS]
EVERY_KIND = pytest.mark.parametrize('kind', KINDS)

MEMBERS = {
    'b.en': b'second\n',
    'a.en': b'first\nline\n',
    'news/c.en': b'third\n',
    'news/c.zh': '三\n'.encode(),
    'empty.en': b'',
    '\u00e9.en': b'not ASCII\n',
    'a!b.en': b'with a mark\n',
    '[a].en': b'a pattern too\n',
}


def tarred(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w') as tar:
        for name, text in members:
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return packed.getvalue()


def zipped(members, method=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', method) as archive:
        for name, text in members:
            archive.writestr(name, text)
    return packed.getvalue()


def packed(kind, members):
    """An archive of some (name, text)."""
    return zipped(members) if kind == 'zip' else PACKERS[kind](tarred(members))


class Store:
    """An archive in memory."""

    def __init__(self, kind, content):
        self.path, self.content = f'x.{kind}', content

    def open(self, path):
        assert path == self.path, 'nothing but the archive is opened'
        return io.BytesIO(self.content)

    def members(self, pattern):
        size = len(self.content)
        archive = CorpusFile(
            self.path, self.path, size, compression_by(self.content[:32], self.path)
        )
        return [member for member, _ in ArchiveLists(self.open).find(archive, pattern)]

    def names(self, pattern):
        return [member.path.removeprefix(f'{self.path}!') for member in self.members(pattern)]

    def pieces(self, member):
        [file] = self.members(glob.escape(member))
        return list(text_pieces(file, self.open))

    def text(self, member):
        return b''.join(self.pieces(member))

    def refused(self, member):
        """What is said where a member is looked for and read, one of which must fail."""
        with pytest.raises(InputError) as refused:
            for name in self.names(member):
                self.text(name)
        assert self.path in str(refused.value) and '\n' not in str(refused.value)
        return str(refused.value)


@EVERY_KIND
def test_a_member_is_read_by_its_name(kind):
    store = Store(kind, packed(kind, MEMBERS.items()))
    for name, text in MEMBERS.items():
        assert store.names(name) == [name]
        assert store.text(name) == text


@EVERY_KIND
def test_a_glob_means_members_in_the_order_of_their_names(kind):
    store = Store(kind, packed(kind, MEMBERS.items()))
    assert store.names('*') == sorted(MEMBERS, key=str.encode)
    assert store.names('news/*') == ['news/c.en', 'news/c.zh']
    assert store.names('[ab].en') == ['a.en', 'b.en']
    assert store.names('[a].en') == ['[a].en']
    assert store.names('?.en') == ['a.en', 'b.en', '\u00e9.en']


@EVERY_KIND
def test_a_member_that_is_not_there_is_refused_with_those_that_are(kind):
    store = Store(kind, packed(kind, [('a.en', b'a'), ('b.en', b'b')]))
    for wanted in ('c.en', 'news/*', 'A.en'):
        said = store.refused(wanted)
        assert f'x.{kind} has no file {wanted!r} in it; there are a.en, b.en' in said
    assert 'there are none' in Store(kind, packed(kind, [])).refused('*')


@EVERY_KIND
def test_names_that_lead_elsewhere_are_names_and_nothing_is_written(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ['../outside.en', '/absolute.en', 'a/../../b.en', './c.en']
    store = Store(kind, packed(kind, [(name, name.encode()) for name in names]))
    for name in names:
        assert store.names(name) == [name]
        assert store.text(name) == name.encode()
    assert not list(tmp_path.parent.glob('outside.en')) and not list(tmp_path.iterdir())


def test_what_is_not_a_file_is_passed_over():
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode='w') as tar:
        for kind in (b'1', b'2', b'3', b'5', b'6'):  # links, a device, a folder, a pipe
            member = tarfile.TarInfo(f'{kind.decode()}.en')
            member.type, member.linkname = kind, 'a.en'
            tar.addfile(member)
        member = tarfile.TarInfo('a.en')
        member.size = 4
        tar.addfile(member, io.BytesIO(b'text'))
    store = Store('tar', made.getvalue())
    assert store.names('*') == ['a.en']
    assert "has no file '2.en' in it; there are a.en" in store.refused('2.en')

    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w') as archive:
        link = zipfile.ZipInfo('link.en')
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, '/etc/passwd')
        archive.writestr('folder/', b'')
        archive.writestr('a.en', b'text')
    store = Store('zip', made.getvalue())
    assert store.names('*') == ['a.en']
    assert "has no file 'link.en' in it" in store.refused('link.en')


@EVERY_KIND
@pytest.mark.parametrize('inner', [gzip.compress, bz2.compress, lzma.compress, PACKERS['tzst']])
def test_a_member_that_is_compressed_itself_is_read_as_strictly(kind, inner):
    text = ''.join(f'line {number}\n' for number in range(8_000)).encode()
    whole = inner(text)
    members = [('plain.en', b'text\n'), ('a.en.gz', whole), ('cut.gz', whole[:-9]), ('b.en', b'b')]
    store = Store(kind, packed(kind, members))
    assert store.text('plain.en') == b'text\n'
    assert store.text('a.en.gz') == text
    assert store.text('b.en') == b'b'
    assert f'x.{kind}!cut.gz ends at byte {len(whole) - 9}' in store.refused('cut.gz')


@EVERY_KIND
@pytest.mark.filterwarnings('ignore:Duplicate name')
def test_a_name_that_two_members_have_is_refused_where_it_is_asked_for(kind):
    twice = [('a.en', b'first'), ('b.en', b'other'), ('a.en', b'second')]
    store = Store(kind, packed(kind, twice))
    assert store.names('b.en') == ['b.en']
    assert store.text('b.en') == b'other'
    for wanted in ('a.en', '*'):
        assert f"x.{kind} has several files 'a.en' in it" in store.refused(wanted)


@EVERY_KIND
def test_an_archive_that_was_cut_off_anywhere_is_refused(kind):
    dice = random.Random(kind)
    members = [(f'{number}.en', bytes(dice.choices(b'abc \n', k=700))) for number in range(4)]
    whole = packed(kind, members)
    needed = len(whole)
    if kind == 'tar':
        # Four members of a header and two blocks each; of the zero bytes at the end one is enough.
        needed = 4 * 3 * 512 + 512
        assert Store(kind, whole[:needed]).names('*') == [name for name, _ in members]
    borders = [size for size in (0, 1, 512, 1536, 1537, 3072, 3073, 6143) if size < needed]
    for size in {*borders, needed - 1, *dice.sample(range(needed), 40)}:
        said = Store(kind, whole[:size]).refused('*')
        assert 'get it again' in said or 'get the file again' in said


@pytest.mark.parametrize('kind', [*PACKERS])
def test_a_damaged_header_does_not_hide_the_members_behind_it(kind):
    members = [('a.en', b'text\n'), ('b.en', b''), ('c.en', b'')]
    for number, place in enumerate((0, 1024, 1536)):
        bad = bytearray(tarred(members))
        bad[place] ^= 1
        said = Store(kind, PACKERS[kind](bytes(bad))).refused(members[number][0])
        assert f'x.{kind} is damaged or not an archive' in said


@EVERY_KIND
def test_what_is_appended_is_refused(kind):
    whole = packed(kind, [('a.en', b'text\n')])
    for more in (b'more', bytes(511) + b'x', b'x' * 70_000):
        said = Store(kind, whole + more).refused('a.en')
        assert 'damaged' in said or 'something else' in said
    both = Store(kind, whole + packed(kind, [('b.en', b'text\n')]))
    for name in ('a.en', 'b.en'):
        assert 'damaged' in both.refused(name)


def test_a_zip_may_have_a_comment():
    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w') as archive:
        archive.writestr('a.en', b'text')
        archive.comment = b'a comment'
    assert Store('zip', made.getvalue()).text('a.en') == b'text'


@pytest.mark.parametrize('method', [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=str)
def test_a_member_of_a_zip_that_may_unpack_without_bound_is_refused(method):
    whole = zipped([('a.en', b'text')], method)
    assert 'x.zip!a.en is packed by another method than deflate' in Store('zip', whole).refused(
        'a.en'
    )


def test_a_member_of_a_zip_may_have_no_name():
    whole = zipped([('a.en', b'text'), ('b', b'')], zipfile.ZIP_STORED)
    # The directory's entry says that its name has no byte, and that a comment of one follows.
    place = whole.rindex(b'PK\x01\x02')
    entry = bytearray(whole[place:])
    entry[28:30], entry[32:34] = b'\0\0', b'\1\0'
    assert Store('zip', whole[:place] + bytes(entry)).text('a.en') == b'text'


@pytest.mark.parametrize('method', [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=str)
def test_damage_within_a_member_of_a_zip_is_refused(method):
    text = bytes(random.Random(3).choices(b'abcdefgh \n', k=5000))
    whole = zipped([('other.en', b'good'), ('a.en', text)], method)
    place = whole.index(b'a.en') + 1000
    bad = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    store = Store('zip', bad)
    assert store.text('other.en') == b'good'
    assert 'x.zip is damaged or not an archive' in store.refused('a.en')


def test_a_member_of_a_zip_with_a_wrong_size_is_refused():
    whole = bytearray(zipped([('a.en', b'text')]))
    struct.pack_into('<I', whole, bytes(whole).rindex(b'PK\x01\x02') + 24, 5)
    assert 'x.zip!a.en has 4 bytes, but x.zip records 5' in Store('zip', bytes(whole)).refused(
        'a.en'
    )


def test_an_encrypted_member_is_refused_and_others_are_read():
    whole = bytearray(zipped([('open.en', b'text'), ('secret.en', b'text')]))
    # Bit 0 of a member's flags says so, in its own header and in the directory.
    for magic, flags in ((b'PK\x03\x04', 6), (b'PK\x01\x02', 8)):
        place = bytes(whole).rindex(magic) + flags
        [old] = struct.unpack_from('<H', whole, place)
        struct.pack_into('<H', whole, place, old | 1)
    store = Store('zip', bytes(whole))
    assert store.text('open.en') == b'text'
    for wanted in ('secret.en', '*.en'):
        assert 'x.zip!secret.en is encrypted; unpack it' in store.refused(wanted)


@EVERY_KIND
def test_what_is_not_an_archive_is_refused(kind):
    for content in (b'some lines\n', b'x' * 2000):
        assert f'x.{kind} is damaged or not an archive' in Store(kind, content).refused('*')
    assert f'x.{kind} ' in Store(kind, b'').refused('*')


@EVERY_KIND
def test_a_large_member_comes_in_pieces(kind):
    text = bytes(range(1, 256)) * (5 << 10) + b'end'
    pieces = Store(kind, packed(kind, [('a.en', b'\n' + text)])).pieces('a.en')
    assert b''.join(pieces) == b'\n' + text
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)


@EVERY_KIND
def test_members_are_read_in_any_order_at_once_or_in_pieces(kind):
    texts = {name: MEMBERS[name] for name in ('b.en', 'a.en', 'news/c.en', 'a!b.en')}
    store = Store(kind, packed(kind, list(texts.items())))
    members = store.members('*.en')
    for planned in itertools.permutations(members):
        opened = []

        def open_counted(path, opened=opened):
            opened.append(path)
            return store.open(path)

        with reading_on(open_counted, [(member,) for member in planned]) as open_binary:
            for number, member in enumerate(planned):
                text = texts[member.path.partition('!')[2]]
                if number % 3 == 1:
                    assert b''.join(text_pieces(member, open_binary)) == text
                assert member_text(member, open_binary) == text
        if list(planned) == sorted(members, key=lambda member: member.start):
            # The directory of a zip is read again for the member that was read already.
            assert len(opened) == (2 if kind == 'zip' else 1)


@EVERY_KIND
def test_a_member_that_unpacks_to_far_too_much_is_refused(kind, monkeypatch):
    if kind == 'tar':
        pytest.skip('a plain tar holds what it gives')
    monkeypatch.setattr(storage, '_FREE_BYTES', 1 << 20)
    monkeypatch.setattr(storage, 'MOST_RATIO', 100)
    said = Store(kind, packed(kind, [('a.en', b'x' * (8 << 20))])).refused('a.en')
    assert 'unpacks to more than 100 times its' in said


def test_a_name_that_is_not_utf8_is_no_danger_to_others():
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode='w', encoding='latin-1', format=tarfile.GNU_FORMAT) as tar:
        for name in ('\u00e9.en', 'a.en'):
            member = tarfile.TarInfo(name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b'text'))
    store = Store('tar', made.getvalue())
    assert store.names('a.en') == ['a.en']
    assert 'has a file whose name is not UTF-8' in store.refused('*')


def with_long_name(name_bytes):
    """A tar whose first member has a name of that many bytes."""
    told = tarfile.TarInfo('././@LongLink')
    told.type, told.size = tarfile.GNUTYPE_LONGNAME, name_bytes
    return told.tobuf() + b'n' * name_bytes + bytes(-name_bytes % 512) + tarred([('a.en', b'it')])


def test_a_header_is_no_larger_than_memory_has_room_for():
    assert Store('tar', with_long_name(1000)).names('*') == ['n' * 1000]
    for kind in ('tar', 'tar.zst'):
        archive = Store(kind, PACKERS[kind](with_long_name(20 << 20)))
        assert 'a header that is far too large' in archive.refused('*')


@pytest.mark.parametrize(
    ('path', 'named'),
    [
        ('x!a', ('x', 'a')),
        ('x!a!b', ('x', 'a!b')),
        ('y!z!a', ('y!z', 'a')),
        ('x!y!z!a', ('x', 'y!z!a')),
        ('gs://bucket/x.tgz!a', ('gs://bucket/x.tgz', 'a')),
        ('[!a]*.zip!a\nb', ('[!a]*.zip', 'a\nb')),
        ('x![!a]*', ('x', '[!a]*')),
        ('x', None),
        ('x!', None),
        ('!x', None),
        ('a!b.en', None),
    ],
)
def test_a_path_names_an_archive_and_a_member(path, named):
    files = {'x', 'y!z', 'gs://bucket/x.tgz', '[!a]*.zip'}
    assert archive_and_member(path, files.__contains__) == named


@pytest.mark.parametrize('form', [tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT])
@given(st.binary(max_size=120), st.integers(0, 1 << 34), st.integers(0, 511), st.integers(0, 255))
def test_a_header_is_what_python_finds_in_it(form, name, size, place, byte):
    member = tarfile.TarInfo(name.decode('utf-8', 'surrogateescape'))
    member.size = size
    sound = member.tobuf(form, 'utf-8', 'surrogateescape')[-512:]
    changed = bytearray(sound)
    changed[place] = byte
    mended = (
        changed[:148] + b'%06o\0 ' % (256 + sum(changed) - sum(changed[148:156])) + changed[156:]
    )
    is_plain = size < 1 << 33 and 0 not in name
    for header in (sound, bytes(changed), bytes(mended)):
        found = _plain_file(header)
        if found is not None or (header == sound and is_plain):
            read = tarfile.TarInfo.frombuf(header, 'utf-8', 'surrogateescape')
            assert (*found, tarfile.REGTYPE, '') == (read.name, read.size, read.type, read.linkname)
