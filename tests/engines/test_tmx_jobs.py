"""Jobs that read TMX: languages, codes, encodings and archives."""

import json
from html import escape

import pytest
from dataset_files import lines_of, manifest_of, shards_and_vocabularies, texts_of
from generated_text import distinct_pairs
from jobs import refuse, succeed, write

from pipelines import source
from pipelines.trust.where import row_fields

UNIT = """  <tu tuid="{number}">
    <tuv xml:lang="EN-us">
      <seg>{source}</seg>
    </tuv>
    <tuv xml:lang="{language}">
      <seg>{target}<ph>code</ph></seg>
    </tuv>
  </tu>
"""


@pytest.fixture(scope='module')
def pairs():
    return distinct_pairs(120, seed=3)


@pytest.fixture(scope='module')
def plain(pairs, tmp_path_factory):
    """A file of these pairs; every tenth unit has another language than wanted."""
    units = ''.join(
        UNIT.format(
            number=number,
            source=escape(source),
            target=escape(target),
            language='fr' if number % 10 == 9 else 'zh',
        )
        for number, (source, target) in enumerate(pairs)
    )
    content = f'<?xml version="1.0"?>\n<tmx version="1.4"><body>\n{units}</body></tmx>\n'
    return write(tmp_path_factory.mktemp('tmx') / 'x.tmx', content.encode())


def building(path, folder, *further):
    return (
        *('build', '--tmx', path, '--languages', 'en,zh', '--name', 'x', '--vocab-size', 900),
        *('--shards', 3, '--output', folder, *further),
    )


@pytest.fixture(scope='module')
def built(plain, tmp_path_factory):
    folder = tmp_path_factory.mktemp('built') / 'out'
    succeed(*building(plain, folder))
    return folder


def test_units_with_both_languages_are_examples(built, pairs):
    wanted = [pair for number, pair in enumerate(pairs) if number % 10 != 9]
    stripped = {tuple(text.strip() for text in pair) for pair in wanted}
    assert set(texts_of(built)) == {pair for pair in stripped if all(pair)}
    lines = lines_of(built)
    assert lines['lines'] == 120 and lines['missing_side'] == 12
    assert lines['examples'] + lines['empty'] == 108
    [read] = manifest_of(built)['inputs']
    assert read['role'] == 'tmx'


def test_in_another_encoding_it_is_the_same(plain, built, tmp_path):
    path = write(tmp_path / 'x.tmx', plain.read_text().encode('utf-16'))
    succeed(*building(path, tmp_path / 'out'))
    assert shards_and_vocabularies(tmp_path / 'out') == shards_and_vocabularies(built)


def test_codes_are_kept_if_asked_for(plain, tmp_path):
    succeed(*building(plain, tmp_path / 'out', '--markup', 'text'))
    assert all(target.endswith('code') for _, target in texts_of(tmp_path / 'out'))


def test_its_languages_must_be_given(plain, tmp_path):
    job = [
        each for each in building(plain, tmp_path / 'out') if each not in ('--languages', 'en,zh')
    ]
    assert 'give --languages' in refuse(*job)
    assert 'is not a language' in refuse(
        *building(plain, tmp_path / 'out')[:3], '--languages', 'en,', *job[3:]
    )


def test_by_lines_no_language_is_looked_at_and_the_codes_are_text(plain, tmp_path):
    job = write(
        tmp_path / 'job.toml', f'[[train]]\nformat = "tmx-lines"\npaths = "{plain}"\n'.encode()
    )
    succeed(
        *('build', job, '--name', 'x', '--vocab-size', 900, '--shards', 1),
        *('--output', tmp_path / 'lines'),
    )
    assert lines_of(tmp_path / 'lines')['lines'] == 120
    assert all(target.endswith('<ph>code</ph>') for _, target in texts_of(tmp_path / 'lines'))


BREAKS = ('a &#2; b', 'a & b', 'a &eacute; b', 'a \x02 b', 'a \udcff b')


@pytest.fixture(scope='module')
def broken(tmp_path_factory):
    """A file of 15 pairs, and a broken unit after every third."""
    units = ''.join(
        UNIT.format(number=number, source=f'the {number}', target=f'das {number}', language='zh')
        + (
            UNIT.format(number='x', source=BREAKS[number // 3], target='x', language='zh')
            if number % 3 == 2
            else ''
        )
        for number in range(15)
    )
    content = f'<?xml version="1.0"?>\n<tmx version="1.4"><body>\n{units}</body></tmx>\n'
    path = tmp_path_factory.mktemp('broken') / 'x.tmx'
    return write(path, content.encode('utf-8', 'surrogateescape'))


def encoding(path, folder, *further):
    return (
        *('encode', '--tmx', path, '--languages', 'en,zh', '--name', 'x', '--scheme', 'byte'),
        *('--shards', 1, '--output', folder, *further),
    )


def test_a_broken_unit_stops_the_job_at_its_line(broken, tmp_path):
    said = refuse(*encoding(broken, tmp_path / 'out'))
    line = broken.read_bytes().split(b'&#2;')[0].count(b'\n') + 1
    assert f'x.tmx, line {line}: the unit at byte' in said
    assert 'reference to invalid character number at byte' in said


def test_broken_units_are_left_out_and_others_traced(broken, tmp_path):
    succeed(*encoding(broken, tmp_path / 'out', '--on-error', 'skip'))
    lines = lines_of(tmp_path / 'out')
    reasons = ('broken_unit', 'undefined_entity', 'invalid_utf8')
    assert [lines[each] for each in ('lines', 'examples', *reasons)] == [20, 15, 3, 1, 1]
    rejected = (tmp_path / 'out/rejected/train.broken_unit.jsonl').read_text().splitlines()
    first = json.loads(rejected[0])
    assert 'a &#2; b' in broken.read_text('latin-1').splitlines()[first['number'] - 1]
    succeed('verify', tmp_path / 'out', '--rerun', 'all')
    content = broken.read_bytes().splitlines()
    for row in map(row_fields, source(tmp_path / 'out', 'train', range(15))):
        number = row['texts'][0].split()[1]
        assert f'tuid="{number}"'.encode() in content[row['line'] - 1]


def test_languages_that_are_not_there_are_named_with_those_that_are(plain, tmp_path):
    job = list(encoding(plain, tmp_path / 'out'))
    job[job.index('en,zh')] = 'de,pl'
    said = refuse(*job)
    assert "missing_side 120); they have the languages 'EN-us', 'fr', 'zh'" in said
