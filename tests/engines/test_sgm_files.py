"""SGM through the command: entities, and files that do not fit together."""

import subprocess

import pytest
from dataset_files import manifest_of, read_shards
from jobs import refuse, succeed, write
from web_server import Page, web_server

from pipelines import source
from pipelines.trust.where import row_fields
from tokcore.tokenizers import ByteTokenizer

COUNT = 40
BUILD = ['--name', 'sgm', '--shards', 1, '--scheme', 'byte']


def sgm(language, texts):
    lines = [f'<set srclang="{language}">', '<doc docid="a">', '<p>']
    lines += [f'<seg id="{number}"> {text} </seg>' for number, text in enumerate(texts)]
    return ''.join(f'{line}\n' for line in [*lines, '</p>', '</doc>', '</set>']).encode()


SOURCES = [f'the {number} words &amp; more' for number in range(COUNT)]
TARGETS = [f'{number} Wörter &amp; mehr' for number in range(COUNT)]
SOURCE, TARGET = sgm('en', SOURCES), sgm('de', TARGETS)


@pytest.fixture
def plain(tmp_path):
    return write(tmp_path / 'a.sgm', SOURCE), write(tmp_path / 'b.sgm', TARGET)


def build(folder, source_path, target, *more):
    given = ['--source', source_path, '--target', target]
    succeed('build', *given, *BUILD, *more, '--output', folder)
    return folder


def texts_of(folder):
    """Returns the pairs of texts, of bytes that stand for themselves."""
    rows = [row for shard in read_shards(folder) for row in shard]
    encoder = ByteTokenizer()
    return [tuple(encoder.decode(row[side][:-1]) for side in ('inputs', 'targets')) for row in rows]


def examples(folder):
    return sorted(repr(each) for shard in read_shards(folder) for each in shard)


def test_entities_are_kept_if_asked_for(plain, tmp_path):
    folder = build(tmp_path / 'out', *plain, '--entities', 'keep')
    assert manifest_of(folder)['options']['entities'] == 'keep'
    assert dict(texts_of(folder)) == dict(zip(SOURCES, TARGETS, strict=True))


def test_files_without_ids_and_of_other_numbers_of_segments_are_refused(tmp_path):
    short = write(tmp_path / 'a.sgm', b'<seg>one</seg>\n')
    long = write(tmp_path / 'b.sgm', b'<p>\n<seg>eins</seg>\n')
    assert texts_of(build(tmp_path / 'out', short, long)) == [('one', 'eins')]
    write(long, b'<seg>eins</seg>\n<seg>zwei</seg>\n')
    given = ['--source', short, '--target', long, *BUILD]
    said = refuse('build', *given, '--output', tmp_path / 'more')
    assert 'a.sgm, line 1: a segment without an id' in said
    assert 'has no counterpart in the other file' in said


def test_a_segment_of_one_side_alone_stops_the_job(plain, tmp_path):
    longer = TARGET.replace(b'</p>', b'<seg id="x">one more</seg>\n</p>')
    target = write(tmp_path / 'longer.sgm', longer)
    given = ['--source', plain[0], '--target', target, *BUILD]
    said = refuse('build', *given, '--output', tmp_path / 'out')
    assert f"longer.sgm, line {COUNT + 4}: segment 'x' of document 'a' has no counterpart" in said


def test_segments_on_other_lines_are_paired_by_ids_and_traced(plain, tmp_path):
    lines = TARGET.splitlines(keepends=True)
    target = write(tmp_path / 'moved.sgm', b''.join([*lines[:3], *lines[3:-3][::-1], *lines[-3:]]))
    found = build(tmp_path / 'out', plain[0], target)
    wanted = build(tmp_path / 'wanted', *plain)
    assert examples(found) == examples(wanted)
    # Their places are those of files that are paired by lines, so that the shards are the same.
    assert [path.read_bytes() for path in sorted(found.glob('sgm-*'))] == [
        path.read_bytes() for path in sorted(wanted.glob('sgm-*'))
    ]
    [tally] = manifest_of(found)['lines']
    assert (tally['lines'], tally['examples'], tally['empty']) == (COUNT, COUNT, 0)
    succeed('verify', found, '--rerun', 'all')
    for row in map(row_fields, source(found, 'train', range(COUNT))):
        number = row['texts'][0].split()[1]
        assert f'<seg id="{number}">'.encode() in SOURCE.splitlines()[row['line'] - 1]
        assert row['files'] == [str(plain[0])]
    succeed('where', found, 'a.sgm:10')
    assert 'give the line there' in refuse('where', found, 'moved.sgm:10')


def test_a_sample_of_lines_is_not_drawn_from_segments_on_other_lines(plain, tmp_path):
    target = write(tmp_path / 'moved.sgm', TARGET.replace(b'<p>\n', b'<p>\n<hl>\n'))
    given = ['--source', plain[0], '--target', target, '--name', 'sgm', '--shards', 1]
    sampling = ['--vocab-size', 300, '--vocab-sample', 't2t:1KB', '--output', tmp_path / 'out']
    said = refuse('build', *given, *sampling)
    assert 'not on the same lines' in said


WMT = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021"><collection id="general">
<doc origlang="en" id="a">
<src lang="en"><p><seg id="1">one &amp; "1"</seg><seg id="2">two
words</seg></p></src>
<ref lang="de" translator="A"><p><seg id="2">zwei</seg></p><p><seg id="1">eins</seg></p></ref>
<ref lang="de" translator="B"><p><seg id="1">B</seg></p></ref>
</doc><doc id="b"><src lang="en"><p><seg id="1">no reference</seg></p></src></doc>
</collection></dataset>
"""


@pytest.mark.parametrize('kind', ['sgm', 'tmx'])
def test_the_xml_of_wmt_is_refused_with_a_command_that_converts_it(kind, plain, tmp_path):
    path = write(tmp_path / "wmt's.xml", WMT.encode())
    given = {
        'sgm': ['--source', plain[0], '--target', path],
        'tmx': ['--tmx', path, '--languages', 'en,de'],
    }[kind]
    said = refuse('build', *given, *BUILD, '--output', tmp_path / 'out')
    assert "wmt's.xml is the XML of WMT" in said
    command = said.partition('first: ')[2]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    converted = (tmp_path / "wmt's.xml.tsv").read_text()
    assert converted == 'one & "1"\teins\ntwo words\tzwei\n'
    succeed('build', '--tsv', tmp_path / "wmt's.xml.tsv", *BUILD, '--output', tmp_path / 'out')
    [tally] = manifest_of(tmp_path / 'out')['lines']
    assert tally['examples'] == 2


def test_entities_are_of_sgm_alone(plain, tmp_path):
    bitext = [write(tmp_path / path.name.replace('sgm', 'txt'), b'a\n') for path in plain]
    given = ['--source', bitext[0], '--target', bitext[1], *BUILD, '--entities', 'decode']
    said = refuse('build', *given, '--output', tmp_path / 'out')
    assert '--entities is for the format sgm, and the corpus is bitext' in said


def test_a_pattern_that_finds_sgm_ends_so_or_a_job_file_names_the_format(plain, tmp_path):
    words = ['--source', tmp_path / 'a*', '--target', tmp_path / 'b*', *BUILD]
    said = refuse('build', *words, '--output', tmp_path / 'out')
    assert '--source and --target find end in one of .sgm' in said and 'let a path end so' in said
    words[1] = tmp_path / 'a*.sgm'
    succeed('build', *words, '--output', tmp_path / 'out')
    assert dict(texts_of(tmp_path / 'out')) == dict(zip(SOURCES, TARGETS, strict=True))
    job = '[[train]]\nformat = "bitext"\npaths = { source = "a*", target = "b*" }\n'
    job = write(tmp_path / 'job.toml', job.encode())
    succeed('build', job, *BUILD, '--output', tmp_path / 'lines')


def test_an_address_names_sgm_by_its_end_whatever_the_file_is_called(tmp_path):
    pages = {'/get?f=a.sgm': Page(SOURCE), '/get?f=b.sgm': Page(TARGET)}
    with web_server(pages) as server:
        addresses = [f'{server.address}{path}' for path in pages]
        folder = build(tmp_path / 'out', *addresses)
    assert dict(texts_of(folder)) == dict(zip(SOURCES, TARGETS, strict=True))


def test_a_side_that_is_not_named_sgm_is_not_read_as_lines(plain, tmp_path):
    text = write(tmp_path / 'b.txt', b'a line\n' * len(SOURCE.splitlines()))
    said = refuse(
        'build', '--source', plain[0], '--target', text, *BUILD, '--output', tmp_path / 'out'
    )
    assert 'a.sgm, line 4: segment' in said and 'has no counterpart in the other file' in said
