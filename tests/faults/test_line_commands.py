"""`tokenize` and `detokenize` with vocabularies, ids and streams that are not as they should be."""

import io
import json
import os
import subprocess
import sys

import pytest
from command_outcome import Outcome
from generated_text import as_lines, english_lines
from jobs import run, succeed, write

GOOD_LINES = b"'<pad>_'\n'<EOS>_'\n"


@pytest.fixture
def run_lines(monkeypatch):
    """Runs a command on standard input; returns how it ended and its standard output."""

    def run_here(data: bytes, *arguments: object) -> tuple[Outcome, bytes]:
        output = io.BytesIO()
        monkeypatch.setattr(sys, 'stdin', io.TextIOWrapper(io.BytesIO(data), newline=''))
        monkeypatch.setattr(sys, 'stdout', io.TextIOWrapper(output, newline=''))
        ended = run(*arguments)
        sys.stdout.flush()
        return Outcome(ended.status, ended.said), output.getvalue()

    return run_here


def run_redirected(
    data: bytes, redirection: str, *arguments: object, unbuffered: str = ''
) -> tuple[Outcome, bytes]:
    """Runs a command in a process of its own, its streams as a shell's redirection leaves them."""
    ended = subprocess.run(
        ['sh', '-c', f'exec "$@" {redirection}', 'sh', sys.executable, '-m', 'pipelines']
        + [str(each) for each in arguments],
        input=data,
        env={**os.environ, 'PYTHONUNBUFFERED': unbuffered},
        capture_output=True,
    )
    return Outcome(ended.returncode, ended.stderr.decode()), ended.stdout


@pytest.fixture
def letters(tmp_path):
    """A vocabulary of single characters: all that escapes need, and some letters."""
    characters = '\\_u;0123456789ab'
    lines = ''.join(f"'{each}'\n" for each in characters)
    return write(tmp_path / 'letters.subwords', GOOD_LINES + lines.encode())


def spelled(vocabulary, escaped: str) -> bytes:
    """The line of ids whose subtokens are single characters."""
    characters = vocabulary.read_text().splitlines()
    return b' '.join(str(characters.index(f"'{each}'")).encode() for each in escaped) + b'\n'


@pytest.fixture
def learned(tmp_path):
    """A vocabulary with its manifest beside it."""
    text = write(tmp_path / 'text', as_lines(english_lines(100, seed=5)))
    path = tmp_path / 'v' / 'learned.subwords'
    succeed('vocab', '--text', text, '--vocab-size', 300, '--output', path)
    return path


@pytest.mark.parametrize(
    ('before', 'extra'),
    [
        (0, []),
        (3, []),
        (0, ['--template', '$A <EOS>']),
        (3, ['--template', '$A <EOS>']),
        (300_000, ['--template', '$A <EOS>']),
    ],
)
def test_a_line_that_the_vocabulary_cannot_spell_is_named(run_lines, tmp_path, before, extra):
    lacking = write(tmp_path / 'lacking', GOOD_LINES + b"'a_'\n")
    lines = b'a a\n' * before + b'\nab b\na\n'
    outcome, _ = run_lines(lines, 'tokenize', '--vocab', lacking, *extra)
    outcome.assert_refused(f'line {before + 2}:', 'no subtoken', 'learn another')


def test_a_line_feed_in_the_text_of_ids_is_a_space(run_lines, letters):
    ids = spelled(letters, 'a_\\10;_b\\10;\\13;_a_') + spelled(letters, '\\10;_') + b'\n'
    outcome, text = run_lines(ids, 'detokenize', '--vocab', letters)
    assert outcome.status == 0
    assert text == b'a b \r a\n \n\n'


@pytest.mark.parametrize(
    ('escaped', 'text'),
    [
        ('\\55296;_', '\ufffd'),
        ('a\\57343;b_', 'a\ufffdb'),
        ('\\55357;\\56832;_', '\U0001f600'),
        ('\\56832;\\55357;_', '\ufffd\ufffd'),
        ('\\55357;a_', '\ufffda'),
    ],
    ids=['first-half', 'second-half', 'pair', 'pair-the-wrong-way-round', 'half-and-letter'],
)
def test_what_utf8_cannot_hold_is_replaced(run_lines, letters, escaped, text):
    outcome, said = run_lines(spelled(letters, escaped), 'detokenize', '--vocab', letters)
    assert outcome.status == 0, outcome.stderr
    assert said.decode() == text + '\n'


@pytest.mark.parametrize('digits', [20, 5000, 100_000])
def test_an_id_of_any_length_is_not_in_the_vocabulary(run_lines, letters, digits):
    line = b'2\n' + b'9' * digits + b'\n'
    outcome, _ = run_lines(line, 'detokenize', '--vocab', letters)
    outcome.assert_refused('line 2', 'is not in the vocabulary')
    assert len(outcome.stderr) < 300
    zeros = b'0' * digits + spelled(letters, 'ab_')
    outcome, text = run_lines(zeros, 'detokenize', '--vocab', letters)
    assert (outcome.status, text) == (0, b'ab\n')


COMMANDS = ['tokenize', 'detokenize']
needs_full_device = pytest.mark.skipif(not os.path.exists('/dev/full'), reason='no /dev/full')


@pytest.mark.parametrize(
    ('command', 'streams', 'fragments'),
    [
        ('tokenize', {'stdin': None}, ['standard input', 'closed']),
        ('detokenize', {'stdout': None}, ['standard output', 'closed']),
    ],
)
def test_streams_that_are_closed_are_named(lane, letters, command, streams, fragments):
    line = [command, '--vocab', letters]
    lane.run(line, letters.parent, **streams).assert_refused(*fragments)


def test_a_stream_that_cannot_be_used_is_named(letters):
    outcome, _ = run_redirected(b'2\n2\n', '0>/dev/null', 'tokenize', '--vocab', letters)
    outcome.assert_refused('standard input', 'Bad file descriptor', 'redirection')


@needs_full_device
def test_no_room_for_the_output_is_told(lane, letters):
    lines = write(letters.parent / 'lines', b'2\n2\n')
    line = ['tokenize', '--vocab', letters]
    ended = lane.run(line, letters.parent, stdin=str(lines), stdout='/dev/full')
    ended.assert_refused('standard output', 'No space left', 'make room')


@pytest.mark.slow
@needs_full_device
def test_nor_is_there_room_if_each_line_is_written_at_once(letters):
    outcome, _ = run_redirected(
        b'2\n2\n', '>/dev/full', 'detokenize', '--vocab', letters, unbuffered='1'
    )
    outcome.assert_refused('standard output', 'No space left', 'make room')


@needs_full_device
@pytest.mark.parametrize('arguments', [['--version'], ['--help'], ['encode', '--help']])
def test_no_room_for_what_is_printed_is_told(arguments):
    outcome, _ = run_redirected(b'', '>/dev/full', *arguments)
    outcome.assert_refused('standard output', 'No space left', 'make room')


@pytest.mark.slow
@needs_full_device
def test_a_bad_line_is_named_also_where_the_others_cannot_be_written(letters):
    outcome, _ = run_redirected(b'2\nx\n', '>/dev/full', 'detokenize', '--vocab', letters)
    outcome.assert_refused('line 2', 'is not an id')


@pytest.mark.parametrize('command', COMMANDS)
def test_a_reader_that_has_had_enough_is_not_a_mistake(lane, letters, command):
    lines = write(letters.parent / 'lines', b'2 3 4 5 6\n' * 300_000)
    output = letters.parent / 'output'
    os.mkfifo(output)
    lane.start([command, '--vocab', letters], letters.parent, stdin=str(lines), stdout=str(output))
    with open(output, 'rb') as reader:
        assert reader.readline().endswith(b'\n')
    ended = lane.end()
    assert (ended.stderr, ended.stopped) == ('', None)


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('of_build', [False, True])
def test_a_flipped_bit_in_a_vocabulary_is_seen(run_lines, tmp_path, learned, command, of_build):
    vocabulary, manifest = learned, f'{learned}.tokbeam.json'
    if of_build:
        text = write(tmp_path / 'text', as_lines(english_lines(100, seed=5)))
        folder = tmp_path / 'out'
        succeed('build', '--text', text, '--vocab-size', 300, '--name', 'x', '--output', folder)
        [vocabulary], manifest = folder.glob('vocab.*'), folder / 'tokbeam.json'
    outcome, _ = run_lines(b'3 4\n', command, '--vocab', vocabulary)
    assert outcome.status == 0, outcome.stderr
    data = bytearray(vocabulary.read_bytes())
    data[data.rindex(b'e')] ^= 1
    vocabulary.write_bytes(data)
    outcome, _ = run_lines(b'3 4\n', command, '--vocab', vocabulary)
    outcome.assert_refused(vocabulary, 'CRC-32C', manifest)


@pytest.mark.parametrize('command', COMMANDS)
def test_a_vocabulary_of_another_unicode_version_is_refused(run_lines, learned, command):
    manifest = learned.parent / 'learned.subwords.tokbeam.json'
    fields = json.loads(manifest.read_bytes())
    fields['vocabularies'][0]['unicode'] = '6.0.0'
    manifest.write_text(json.dumps(fields))
    outcome, _ = run_lines(b'3 4\n', command, '--vocab', learned)
    outcome.assert_refused(learned, 'Unicode 6.0.0')
