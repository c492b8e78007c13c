"""The sample for a vocabulary against `generate_lines_for_vocab` itself, line for line."""

import collections
import gzip

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from dataset_files import manifest_of
from generated_text import chinese_lines, english_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import refuse, run, succeed, write
from original_problems import problem_module

from tokcore.corpus.corpus import CorpusFile
from tokcore.counts.sampling import sample_file

MANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(MANY, max_examples=4)

LINES = st.lists(
    st.text(
        st.one_of(
            st.sampled_from('ab é中 \t\r\x85\u3000\u2028\ufeff'),
            st.characters(exclude_categories=['Cs'], exclude_characters='\n'),
        ),
        max_size=12,
    ),
    max_size=40,
)


@st.composite
def texts(draw) -> bytes:
    lines = draw(LINES)
    text = '\n'.join(lines) + draw(st.sampled_from(['', '\n']))
    # To the original a byte order mark is text of the first line.
    return text.lstrip('\ufeff').encode()


class Original:
    """Files in a folder as Tensor2Tensor's problems have them: beside the archive they come from."""

    def __init__(self, generator_utils, folder):
        self._utils, self.folder = generator_utils, folder
        write(folder / 'corpus.tar', b'')

    def sources(self, *names):
        return [['http://host.invalid/corpus.tar', list(names)]]

    def lines(self, budget, *names):
        found = self._utils.generate_lines_for_vocab(str(self.folder), self.sources(*names), budget)
        return list(found)


@pytest.fixture(scope='module')
def t2t_generator_utils():
    return problem_module('generator_utils')


@pytest.fixture
def original(t2t_generator_utils, tmp_path_factory):
    def new_folder():
        return Original(t2t_generator_utils, tmp_path_factory.mktemp('t2t'))

    return new_folder


def lines_as_gfile_reads_them(data: bytes) -> list[bytes]:
    lines = data.split(b'\n')
    # A last line of nothing but '\r' is none to TensorFlow, which has dropped them all.
    if not lines[-1].replace(b'\r', b''):
        lines.pop()
    return lines


@MANY
@given(data=texts(), compressed=st.booleans(), budget=st.integers(1, 700))
def test_the_lines_are_the_originals(original, data, compressed, budget):
    compressed = compressed and bool(data)
    theirs = original()
    name = 'text.gz' if compressed else 'text'
    path = write(theirs.folder / name, data)
    file = CorpusFile(str(path), name, path.stat().st_size, compressed)
    sampled = sample_file(file, budget, lambda path: open(path, 'rb'), 1 << 20).lines
    lines = lines_as_gfile_reads_them(data)
    ours = [lines[at].replace(b'\r', b'').decode().strip() for at in range(len(lines))]
    assert ours[sampled.among(0, len(lines))] == theirs.lines(budget, name)


@pytest.mark.parametrize('budget', [2501, 2500, 2499, 1000, 500, 17, 2, 1])
@pytest.mark.parametrize('budget_type', [int, float])
def test_the_originals_rounding_is_kept(original, budget, budget_type):
    theirs = original()
    data = b''.join(b'%04d\n' % number for number in range(1000))
    path = write(theirs.folder / 'text', data)
    file = CorpusFile(str(path), 'text', len(data), False)
    sampled = sample_file(file, budget, lambda path: open(path, 'rb'), 1 << 20).lines
    numbers = list(range(1000))[sampled.among(0, 1000)]
    assert [f'{number:04d}' for number in numbers] == theirs.lines(budget_type(budget), 'text')


def counts_in(folder) -> dict[str, int]:
    tables = [parquet.read_table(path) for path in sorted(folder.glob('*.parquet'))]
    table = pa.concat_tables(tables).to_pydict()
    return dict(zip(table['token'], table['count'], strict=True))


def count_as_the_original(tokenizer, text_encoder, lines) -> dict[str, int]:
    counts: collections.Counter[str] = collections.Counter()
    for line in lines:
        counts.update(tokenizer.encode(text_encoder.native_to_unicode(line)))
    return dict(counts)


@FEW
@given(
    files=st.lists(texts(), min_size=1, max_size=3),
    budget=st.integers(20, 400),
    item_bytes=st.integers(1, 60),
)
def test_what_is_counted_of_text_is_what_the_original_counts(
    original, t2t_tokenizer, t2t_text_encoder, files, budget, item_bytes
):
    theirs = original()
    # An empty file that is compressed it fails at; below.
    names = [
        f'text-{number}.gz' if number == 1 and data else f'text-{number}'
        for number, data in enumerate(files)
    ]
    paths = [write(theirs.folder / name, data) for name, data in zip(names, files, strict=True)]
    lines = theirs.lines(budget, *names)
    if not any(lines):
        return
    output = theirs.folder / 'counts'
    succeed(
        'count', '--text', *paths, '--vocab-sample', f't2t:{budget}',
        '@item-size', item_bytes, '--workers', 2, '--output', output,
    )  # fmt: skip
    assert counts_in(output) == count_as_the_original(t2t_tokenizer, t2t_text_encoder, lines)
    [told] = manifest_of(output)['sample']
    assert (told['how'], told['side']) == (f't2t:{budget}', 'text')
    assert told['taken'] >= len(lines)


@pytest.mark.slow
@FEW
@given(
    pairs=st.lists(st.tuples(*[st.text('ab é中\r ', max_size=8)] * 2), min_size=1, max_size=40),
    budget=st.integers(20, 400),
    item_bytes=st.integers(1, 60),
)
def test_what_is_counted_of_pairs_is_what_the_original_counts(
    original, t2t_tokenizer, t2t_text_encoder, pairs, budget, item_bytes
):
    """Also the lines whose other side is empty, of which it knows nothing."""
    theirs = original()
    pairs = [('first', 'erste'), *pairs]
    paths = [
        write(theirs.folder / name, '\n'.join([*lines, '']).encode())
        for name, lines in zip(('a.en', 'a.de'), zip(*pairs, strict=True))
    ]
    sides = [theirs.lines(budget, name) for name in ('a.en', 'a.de')]
    if not all(any(lines) for lines in sides):
        return
    output = theirs.folder / 'counts'
    succeed(
        'count', '--source', paths[0], '--target', paths[1], '--vocab-sample', f't2t:{budget}',
        '@item-size', item_bytes, '--output', output,
    )  # fmt: skip
    assert counts_in(output) == count_as_the_original(
        t2t_tokenizer, t2t_text_encoder, sum(sides, [])
    )
    assert [each['taken'] for each in manifest_of(output)['sample']] == [*map(len, sides)]


@pytest.fixture
def problem(original):
    """A problem's files: pairs, one side compressed."""
    theirs = original()
    source, target = english_lines(400, seed=1), chinese_lines(400, seed=2)
    (theirs.folder / 'a.en.gz').write_bytes(
        gzip.compress('\n'.join([*source, '']).encode(), mtime=0)
    )
    write(theirs.folder / 'a.zh', '\n'.join([*target, '']).encode())
    write(theirs.folder / 'b.en', '\n'.join(reversed(source)).encode())
    write(theirs.folder / 'b.zh', '\n'.join(reversed(target)).encode())
    return theirs


def vocab(folder, *options):
    sides = ['--source', folder / 'a.en.gz', folder / 'b.en']
    sides += ['--target', folder / 'a.zh', folder / 'b.zh']
    return ('vocab', *sides, '--max-subtoken-length', 'none', '--search', 't2t', *options)


@pytest.mark.parametrize('budget', [5_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_problems_vocabulary_is_the_originals_file(problem, t2t_generator_utils, budget):
    names = ('a.en.gz', 'a.zh', 'b.en', 'b.zh')
    t2t_generator_utils.get_or_generate_vocab(
        str(problem.folder / 'data'), str(problem.folder), 'vocab.theirs', 1000,
        problem.sources(*names), file_byte_budget=budget,
    )  # fmt: skip
    output = problem.folder / 'vocab.ours'
    said = succeed(*vocab(
        problem.folder, '--vocab-size', 1000, '--vocab-sample', f't2t:{budget}', '--output', output
    ))  # fmt: skip
    assert output.read_bytes() == (problem.folder / 'data' / 'vocab.theirs').read_bytes()
    assert 'lines of inputs and ' in said


@pytest.mark.slow
def test_3_1_an_existing_vocabulary_is_checked_for_size_and_reserved_tokens(
    problem, t2t_generator_utils
):
    """The original loads whatever file there is by that name."""

    def theirs(size):
        return t2t_generator_utils.get_or_generate_vocab(
            str(problem.folder / 'data'), str(problem.folder), 'vocab', size,
            problem.sources('a.zh'), file_byte_budget=20_000,
        ).vocab_size  # fmt: skip

    assert theirs(1500) == theirs(900)
    output = problem.folder / 'vocab.ours'
    asked = ['--vocab-sample', 't2t:20kB', '--output', output]
    succeed(*vocab(problem.folder, '--vocab-size', 1500, *asked))
    assert '--vocab-size' in refuse(*vocab(problem.folder, '--vocab-size', 900, *asked))
    more = ['--vocab-size', 1500, '--reserved-token', '<sep>']
    assert '--reserved-token' in refuse(*vocab(problem.folder, *more, *asked))
    # Nor does what was counted from another sample, or from all, pass for this one.
    for other in (['--vocab-sample', 't2t:30kB'], []):
        again = vocab(problem.folder, '--vocab-size', 1500, *other, '--output', output)
        assert '--vocab-sample' in refuse(*again)
    assert 'already done' in succeed(*vocab(problem.folder, '--vocab-size', 1500, *asked))


def test_3_1_a_budget_too_small_for_any_line_is_refused(problem, t2t_generator_utils):
    """The original makes a vocabulary of its escape characters alone, and says nothing."""
    theirs = t2t_generator_utils.get_or_generate_vocab(
        str(problem.folder / 'data'), str(problem.folder), 'vocab', 1000,
        problem.sources('b.en'), file_byte_budget=1,
    )  # fmt: skip
    assert theirs.vocab_size == 24
    said = refuse(*vocab(
        problem.folder, '--vocab-size', 1000, '--vocab-sample', 't2t:1',
        '--output', problem.folder / 'vocab.ours',
    ))  # fmt: skip
    assert 'takes no line' in said and 'larger budget' in said
    assert not (problem.folder / 'vocab.ours').exists()


def test_3_1_a_file_that_was_unpacked_before_is_not_another_text(problem):
    """The original takes what lies at the name without `.gz`, whatever it is."""
    budget = 20_000
    stale = problem.folder / 'a.en'
    stale.write_bytes(b'stale\n' * 3000)
    assert set(problem.lines(budget, 'a.en.gz')) == {'stale'}
    output = problem.folder / 'counts'
    succeed(
        'count', '--text', problem.folder / 'a.en.gz', '--vocab-sample', f't2t:{budget}',
        '--output', output,
    )  # fmt: skip
    assert 'stale' not in counts_in(output)


def test_3_1_an_empty_compressed_file_has_no_lines(problem):
    """The original unpacks it to a file that TensorFlow never makes, and fails to find that."""
    empty = write(problem.folder / 'empty.gz', b'')
    with pytest.raises(Exception, match='No such file'):
        problem.lines(100, 'empty.gz')
    output = problem.folder / 'counts'
    succeed(
        'count', '--text', problem.folder / 'b.en', empty, '--vocab-sample', 't2t:9kB',
        '--output', output,
    )  # fmt: skip
    [told] = manifest_of(output)['sample']
    assert told['lines'] == 400


def test_3_1_a_line_that_is_not_utf8_is_told_by_file_and_byte(problem):
    """The original ends with a traceback of Python's codecs, which names neither."""
    bad = write(problem.folder / 'bad', b'one\ntwo \xff\nthree\n')
    with pytest.raises(UnicodeDecodeError):
        problem.lines(100, 'bad')
    ended = run(
        'count', '--text', bad, '--vocab-sample', 't2t:100', '--output', problem.folder / 'c'
    )
    assert ended.status == 2
    assert f'{bad}, line 2: invalid UTF-8 at byte 8' in ended.said
