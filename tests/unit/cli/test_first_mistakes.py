"""What beginners get wrong first, and what they are told to do."""

import sys

from jobs import refuse, succeed, write

from pipelines.cli.parser import parse_command

SIZES = ['--vocab-size', 2000]
DATASET = ['--name', 'n', '--output', 'out']


def test_a_command_alone_names_its_input_first():
    said = refuse('build')
    assert said.startswith(
        'tokbeam: the following arguments are required: the files to read (--text'
    )
    assert '--name, --output, --vocab-size' in said


def test_a_mistyped_command_is_told_with_the_nearest():
    assert refuse('bulid', '--help') == "tokbeam: there is no command 'bulid'; did you mean build?"
    said = refuse('speak')
    assert "no command 'speak'; there are build, count, vocab" in said and 'completion' in said


def test_files_without_an_option_are_told_which_options_name_files(tmp_path):
    files = [write(tmp_path / name, b'a\n') for name in ('train.en', 'train.zh')]
    said = refuse('build', *files, *DATASET, *SIZES)
    assert 'belongs to no option' in said and '--text FILE, or --source FILE --target FILE' in said


def test_a_missing_job_file_says_what_a_job_file_is():
    assert 'which is TOML (--print-job prints one)' in refuse('build', 'nojob.toml')


def test_thousands_are_written_out():
    said = refuse('vocab', '--text', 'a', '--vocab-size', '32k', '--output', 'v')
    assert "'32k' is not a whole number" in said and 'write 32000 or 32768' in said


def test_invalid_text_names_the_option_that_leaves_it_out(tmp_path):
    text = write(tmp_path / 'text', b'good\nbad \xff\n')
    said = refuse('count', '--text', text, '--output', tmp_path / 'counts')
    assert said.endswith('mend the line, or leave such lines out with --on-error=skip')


def test_a_line_without_its_column_is_told_by_its_number(tmp_path):
    pairs = write(tmp_path / 'pairs.tsv.gz', b'a\tb\n\nlonely\n')
    said = refuse('count', '--tsv', pairs, '--output', tmp_path / 'counts')
    assert f'{pairs}, line 3: the line at byte 5 has too few columns for --columns 0,1' in said
    assert "and no tab, which separates columns: 'lon" in said
    assert said.endswith('or leave such lines out with --on-error=skip')
    assert f'{pairs}, line 3: ' in refuse(
        *('build', '--tsv', pairs, *DATASET[:3], tmp_path / 'out', *SIZES, '--dry-run')
    )


def test_a_folder_with_other_files_is_told_at_once_and_they_stay(tmp_path):
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


def test_a_size_below_the_alphabet_says_why(tmp_path):
    text = write(tmp_path / 'text', '一二三四五六七八九十\n'.encode())
    said = refuse('vocab', '--text', text, '--vocab-size', 5, '--output', tmp_path / 'v')
    assert 'each character of the text is an entry' in said and '--scheme bpe' in said


def test_s3_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'obstore', None)
    said = refuse('count', '--text', 's3://library-missing/a', '--output', tmp_path / 'counts')
    assert 's3://library-missing needs a package' in said and "pip install 'tokbeam[s3]'" in said


def test_a_flag_of_two_schemes_takes_no_value():
    line = ['tokenize', '--vocab', 'v', '--scheme', 'bpe', '--allow-special-tokens']
    options, _ = parse_command(line)
    assert options.allow_special_tokens is True
    options, _ = parse_command(line[:-1])
    assert not getattr(options, 'allow_special_tokens', False)
