"""A line beyond `--max-line-size` ends a job in a sentence or is left out; none is held whole."""

import gzip
import json

import pytest
from dataset_files import lines_of, manifest_of, texts_of
from leftovers import assert_nothing_made
from small_corpus import PAIRS

pytestmark = pytest.mark.slow

MIB = 1 << 20
HUGE = 512 * MIB
LONG = 'long ' * 300  # 1,500 bytes
BOUND = ('--max-line-size', '1000')
SKIP = (*BOUND, '--on-error', 'skip')


@pytest.fixture
def vocabulary(tokbeam, write_corpus, tmp_path):
    path = tmp_path / 'given.subwords'
    # All that lines of letters, digits and zero bytes are spelled in.
    # Many before them, so that their ids take two bytes.
    many = [f'{number:03}' for number in range(200)]
    single = 'abcdefghijklmnopqrstuvwxyz0123456789\\;_u,. 的第行'
    subtokens = ['<pad>_', '<EOS>_', *many, *single]
    path.write_text(''.join(f"'{each}'\n" for each in subtokens), encoding='utf-8')
    return path


def zip_files(corpus):
    for path in corpus.files:
        path.write_bytes(gzip.compress(path.read_bytes()))


def with_long_lines(kind, places=((41, 0),)):
    """The small corpus with a long line in some places, each with its side."""
    pairs = [list(pair) for pair in PAIRS]
    for place, side in places:
        pairs[place][0 if kind == 'text' else side] = LONG
    return [tuple(pair) for pair in pairs]


def start_of(path, line):
    return sum(map(len, path.read_bytes().splitlines(keepends=True)[:line]))


@pytest.mark.parametrize(
    'kind, side, zipped',
    [('tsv', 1, True), ('bitext', 1, False)],
)
def test_it_ends_a_job_with_its_place_its_size_and_both_remedies(
    build, write_corpus, tmp_path, kind, side, zipped
):
    corpus = write_corpus(kind, pairs=with_long_lines(kind, [(41, side)]))
    path = corpus.files[side] if kind == 'bitext' else corpus.last
    start, size = start_of(path, 41), len(path.read_bytes().splitlines()[41])
    if zipped:
        zip_files(corpus)
    build(corpus, extra=BOUND).assert_refused(
        f'{path}, line 42: the line that starts at byte {start} has {size} bytes, more than the 1000 of',
        'give a larger --max-line-size, or leave such lines out with --on-error=skip',
    )
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize(
    'kind, side, item_size',
    [('text', 0, '8MiB'), ('bitext', 1, 64)],
)
def test_it_is_left_out_and_kept_under_its_reason(
    build, write_corpus, tmp_path, kind, side, item_size
):
    places = [(0, side), (41, side), (79, side)]
    corpus = write_corpus(kind, pairs=with_long_lines(kind, places))
    path = corpus.files[side] if kind == 'bitext' else corpus.last
    lines = path.read_bytes().splitlines()
    outcome = build(corpus, extra=(*SKIP, '@item-size', item_size))
    assert outcome.status == 0, outcome.stderr
    folder = tmp_path / 'out'
    counts = lines_of(folder)
    size = counts.pop('text_bytes')
    assert counts == {
        'split': 'train', 'lines': 80, 'examples': 77, 'empty': 0, 'invalid_utf8': 0,
        'missing_column': 0, 'too_long': 3,
    }  # fmt: skip
    assert size == sum(len(text.encode()) for texts in texts_of(folder) for text in texts)
    kept = [pair for number, pair in enumerate(PAIRS) if number not in (0, 41, 79)]
    assert sorted(texts_of(folder)) == sorted(kept if kind != 'text' else [(a,) for a, _ in kept])
    rejected = (folder / 'rejected' / 'train.too_long.jsonl').read_bytes().splitlines()
    assert [json.loads(line) for line in rejected] == [
        {
            'file': path.name,
            'offset': start_of(path, number),
            'bytes': len(lines[number]),
            'beginning': lines[number][:1000].decode(),
        }
        for number, _ in places
    ]


def test_manifests_say_nothing_of_it_where_nothing_is_asked_and_nothing_too_long(
    build, write_corpus, tmp_path
):
    build(write_corpus('tsv'))
    for path in (tmp_path / 'out').rglob('tokbeam.json'):
        assert b'too_long' not in path.read_bytes() and b'max_line_size' not in path.read_bytes()


def test_another_bound_makes_another_result(build, write_corpus, tmp_path):
    corpus = write_corpus('tsv')
    assert build(corpus, extra=BOUND).status == 0
    assert manifest_of(tmp_path / 'out')['options']['max_line_size'] == 1000
    assert 'already done' in build(corpus, extra=BOUND).stderr
    build(corpus).assert_refused('another --max-line-size')
    build(corpus, extra=('--max-line-size', 999)).assert_refused('another --max-line-size')
    assert build(corpus, extra=('--overwrite',)).status == 0
    assert 'already done' in build(corpus, extra=('--max-line-size', '16MiB')).stderr


def zero_bytes(path, size):
    """A file of one line that takes no room on the disk: of zero bytes, after a beginning of letters."""
    if path.suffix == '.gz':
        members = [gzip.compress(byte * MIB, mtime=0) for byte in (b'a', b'\0')]
        path.write_bytes(members[0] + members[1] * (size // MIB - 1))
    else:
        with open(path, 'wb') as file:
            file.write(b'a' * MIB)
            file.truncate(size)
    return path


@pytest.mark.parametrize(('command', 'name'), [('count', 'bomb.gz'), ('encode', 'sparse')])
def test_a_line_of_half_a_gigabyte_takes_no_more_memory_than_one_that_is_allowed(
    lane, vocabulary, tmp_path, command, name
):
    small = tmp_path / 'small'
    small.write_text('a line\n' * 1000)
    bomb = zero_bytes(tmp_path / name, HUGE)
    given = ['--vocab', vocabulary, '--name', 'n'] if command == 'encode' else []

    def run(*arguments):
        return lane.run(
            [command, *given, *arguments, '--output', tmp_path / 'out'], tmp_path, seconds=120
        )

    usual = run('--text', small, '--overwrite')
    assert usual.status == 0, usual.stderr
    stopped = run('--text', small, bomb, '--overwrite')
    assert stopped.stopped is None
    stopped.assert_refused(
        f'{bomb}, line 1: the line that starts at byte 0 has {HUGE} bytes', '--max-line-size'
    )
    skipped = run('--text', small, bomb, '--on-error', 'skip', '--overwrite')
    assert skipped.status == 0, skipped.stderr
    assert lines_of(tmp_path / 'out')['too_long'] == 1
    assert max(stopped.peak, skipped.peak) - usual.peak < 16 * 16 * MIB


def test_a_pair_of_huge_lines_is_read_over(lane, vocabulary, tmp_path):
    paths = [zero_bytes(tmp_path / name, HUGE // 2) for name in ('source', 'target.gz')]
    with open(paths[0], 'ab') as file:
        file.write(b'\nan end')
    with open(paths[1], 'ab') as file:
        file.write(gzip.compress(b'\nan end'))
    ended = lane.run(
        [
            'encode', '--source', paths[0], '--target', paths[1], '--vocab', vocabulary,
            '--name', 'n', '--shards', 1, '--on-error', 'skip', '--output', tmp_path / 'out',
        ],
        tmp_path,
    )  # fmt: skip
    assert ended.status == 0, ended.stderr
    lines = lines_of(tmp_path / 'out')
    assert (lines['lines'], lines['examples'], lines['too_long']) == (2, 1, 1)


TEXTS = {
    'letters': b'abcdefghijklmnopqrstuvwxyz',
    'digits': b'0123456789',
    'words': b'a few words, ',
    'Chinese': '的第行'.encode(),
    'control characters': b'\1',
}


@pytest.mark.parametrize('command', ['count', 'encode'])
def test_the_longest_line_takes_at_most_16_times_its_size(lane, vocabulary, tmp_path, command):
    lines = b''.join(b'line %d of a usual corpus, with words%d\n' % (n, n) for n in range(200_000))
    size = 16 * MIB
    given = ['--vocab', vocabulary, '--name', 'n'] if command == 'encode' else []
    peaks = {}
    for name, piece in [('usual', b''), *TEXTS.items()]:
        path = tmp_path / name
        longest = piece * (size // len(piece)) + b'\n' if piece else b''
        path.write_bytes(lines + longest + lines)
        ended = lane.run(
            [
                command, '--text', path, *given, '--workers', 1, '--overwrite',
                '--output', tmp_path / 'out',
            ],
            tmp_path,
        )  # fmt: skip
        assert ended.status == 0, ended.stderr
        peaks[name] = ended.peak
    assert {name for name, peak in peaks.items() if peak - peaks['usual'] >= 16 * size} == set()


def test_the_memory_asked_for_must_hold_the_longest_line(tokbeam, vocabulary, tmp_path):
    path = zero_bytes(tmp_path / 'sparse', 200 * MIB)
    arguments = ['encode', '--text', path, '--vocab', vocabulary, '--name', 'n', '--memory', '1GiB']
    refused = tokbeam(*arguments, '--max-line-size', '128MiB', '--output', tmp_path / 'out')
    refused.assert_refused('--memory', 'a smaller --max-line-size')
    assert_nothing_made(tmp_path / 'out')
