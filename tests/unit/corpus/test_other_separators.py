"""Columns that commas or semicolons separate, given as tab-separated ones."""

import csv
import gzip
import io
import logging
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.declarations import Tsv
from tokcore.corpus.formats import format_reader
from tokcore.errors import InputError


def check(content, compressed=False, path='x.csv', stated=None, **options):
    stored = gzip.compress(content) if compressed else content
    file = CorpusFile(str(path), 'x.csv', len(stored), compressed)
    format_reader(Tsv(**options)).check((file,), lambda _: io.BytesIO(stored), stated)


NAMED = {'columns': ('en', 'de'), 'header': True}


@pytest.mark.parametrize('compressed', [False, True])
@pytest.mark.parametrize(
    ('content', 'options', 'separator'),
    [
        (b'en,de\none,eins\n', NAMED, 'commas'),
        (b'\xef\xbb\xbfen,de\r\none,eins\r\n', NAMED, 'commas'),
        (b'id,de,en\n1,"a, b",c\n', NAMED, 'commas'),
        (b'en,de\n1,2,3\n', NAMED, 'commas'),
        (b'en;de\none, two;eins\n', NAMED, 'semicolons'),
        (b'en,de\none,eins\n', {'columns': ('en',), 'header': True}, 'commas'),
        (b'one,eins\n"two\n\tlines",zwei\n', {}, 'commas'),
        (b'one,eins\n' * 20_000, {}, 'commas'),
        (b'one,1\n', {'columns': (0,), 'label': '1'}, 'commas'),
    ],
)
def test_files_with_another_separator_are_refused(content, options, separator, compressed):
    with pytest.raises(
        InputError, match=f'x.csv has columns separated by {separator}, and'
    ) as raised:
        check(content, compressed, **options)
    assert '--quoting csv, made first: ' in str(raised.value)


@pytest.mark.parametrize(
    ('content', 'options'),
    [
        (b'one, two\teins\nfour\tvier\n', {}),
        (b'one, two\nthree\n', {}),  # these lines are rejected one by one
        (b'', {}),
        (b'a,b\n', {'columns': ('a,b',), 'header': True}),
        (b'text\none, two\n', {'columns': ('text',), 'header': True}),
        (b'en\tde\n', NAMED),
    ],
)
def test_other_files_are_not(content, options, caplog):
    check(content, **options)
    assert not caplog.records


@pytest.mark.parametrize(
    ('content', 'question'),
    [
        (b'one, two\nthree, four\n', '; do commas separate its columns?'),
        (b'one, two\nthree\n', ''),
        (b'one\ttwo\n', None),
        (b'one, two\nthree\tfour\n', None),
    ],
)
def test_whole_lines_as_the_only_column_give_a_warning(content, question, caplog):
    with caplog.at_level(logging.WARNING):
        check(content, columns=(0,))
    said = [record.getMessage() for record in caplog.records]
    wanted = f'x.csv has no tab in its first {len(content)} bytes, so that a row is a whole line'
    assert said == ([] if question is None else [wanted + question])


def test_the_command_makes_a_file_that_is_read(tmp_path):
    rows = [['en', 'de'], ['a "b", c', 'x\ty'], ['two\nlines', 'z']]
    for separator in ',;':
        path = tmp_path / f"it's {ord(separator)}.csv.gz"
        text = io.StringIO()
        csv.writer(text, delimiter=separator).writerows(rows)
        path.write_bytes(gzip.compress(text.getvalue().encode()))
        with pytest.raises(InputError) as raised:
            check(text.getvalue().encode(), True, path, **NAMED)
        command = str(raised.value).partition('made first: ')[2]
        subprocess.run(command, shell=True, check=True, cwd=tmp_path)
        made = tmp_path / f'{path.name}.tsv'
        with open(made, newline='') as lines:
            assert list(csv.reader(lines, delimiter='\t')) == rows
        check(made.read_bytes(), path=made, quoting='csv', **NAMED)


@pytest.mark.parametrize('end', ['\n', '\r\n', ''])
@pytest.mark.parametrize('field', ['"He said ""no"", twice"', '""""', '"""yes"""'])
@pytest.mark.parametrize('place', range(3))
def test_a_field_of_csv_is_refused_unless_it_is_stated_what_quotes_are(place, field, end):
    fields = ['a', 'b', 'c']
    fields[place] = field
    content = ('a\tb\tc\n' + '\t'.join(fields) + end).encode()
    with pytest.raises(InputError, match='--quoting csv if it is, or --quoting none if') as raised:
        check(content, stated=['columns'])
    assert f'x.csv has {field!r}' in str(raised.value)
    for quoting in ('none', 'csv'):
        check(content, stated=['quoting'], quoting=quoting)
    check(content)


@pytest.mark.parametrize(
    'field', ['""', '"no"', '"no" or "yes"', 'no ""', '"no', '"a"b""c"', '"" x ""']
)
def test_other_quotes_are_text(field):
    check(f'{field}\tb\n'.encode(), stated=[])


@given(st.text(st.sampled_from('a,;"\n\r\té'), max_size=60), st.booleans())
def test_any_beginning_is_passed_or_refused(text, header):
    try:
        check(text.encode(), columns=(0, 1), header=header)
    except InputError as error:
        assert 'separated by' in str(error)
        assert '\t' not in text.partition('\n')[0]
