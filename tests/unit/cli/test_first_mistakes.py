"""What beginners get wrong first, and what the message says to do."""

import sys

import pytest
from jobs import refuse, succeed, write

MISTAKES = {
    'build': 'required: the files to read (--text',
    'bulid --help': "no command 'bulid'; did you mean build?",
    'speak': "no command 'speak'; there are build, count, vocab",
    'build --text train.en train.zh --dev': 'argument --dev: expected at least one argument',
    'build nojob.toml': 'which is TOML (--print-job prints one)',
    'vocab --text a --vocab-size 32k --output v': 'write 32000 or 32768',
    'vocab --text bad --vocab-size 9 --output v': 'leave such lines out with --on-error=skip',
    'vocab --text han --vocab-size 5 --output v': 'each character of the text is an entry',
    'count --tsv lonely.gz --output v': 'lonely.gz, line 3: the line at byte 5 has too few columns',
    'build --tsv lonely.gz --scheme byte --name n --output v --dry-run': 'lonely.gz, line 3: ',
    'build --seed 1 train.en train.zh': 'belongs to no option; files are given by options',
    'count --text s3://library-missing/a --output v': "pip install '.[s3]'",
    'help formats filters': 'help takes one topic',
}


@pytest.mark.parametrize('line', MISTAKES)
def test_the_message_says_what_to_do(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, 'obstore', None)
    write(tmp_path / 'bad', b'good\nbad \xff\n')
    write(tmp_path / 'han', '一二三四五六七八九十\n'.encode())
    write(tmp_path / 'lonely.gz', b'a\tb\n\nlonely\n')
    assert MISTAKES[line] in refuse(*line.split())


def test_a_folder_with_other_files_is_warned_of_at_once_and_they_stay(tmp_path):
    text, out = write(tmp_path / 'text', b'a b\n' * 9), tmp_path / 'out'
    for name in ('thesis.tex', 'a', 'b', 'c', 'counts', '.tokbeam/x'):
        write(out / name / 'file', b'')
    command = ['build', '--text', text, '--scheme', 'byte', '--name', 'n', '--output', out]
    said = succeed(*command).splitlines()
    assert said[0] == (
        f'tokbeam: warning: {out} has other files, which stay there: a, b, c and 1 more; give a '
        'folder of its own if readers are not to meet them'
    )
    assert (out / 'thesis.tex' / 'file').exists()
    assert 'warning' not in ' '.join(said[1:])
    assert 'other files' not in succeed(*command, '--overwrite')  # it has a result of ours now
    counts = ['count', '--text', text, '--output', tmp_path]
    assert f'{tmp_path} has other files, which stay there: out, text;' in succeed(*counts)
    assert 'other files' not in succeed('vocab', *counts[1:-1], tmp_path / 'v', '--vocab-size', 60)
