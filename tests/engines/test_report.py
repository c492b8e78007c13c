"""`tokbeam report`: its figures are those of plain computations, and its page needs nothing else."""

import collections
import functools
import gzip
import html.parser
import json
import math
import re
import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import manifest_of, read_shards
from jobs import refuse, run, succeed, write

import tokcore
from pipelines.engines.progress import listening
from pipelines.report import corpus_figures, figures, row_text
from pipelines.report.page import table


@pytest.fixture
def report(capsys):
    def run_report(*arguments):
        capsys.readouterr()
        ended = run('report', '--json', *arguments)
        assert ended.status == 0, ended.said
        return json.loads(capsys.readouterr().out)

    return run_report


@pytest.fixture
def page(capfdbinary):
    pytest.importorskip('matplotlib', reason='the extra report is not installed')

    def run_report(*arguments):
        capfdbinary.readouterr()
        ended = run(*arguments)
        assert ended.status == 0, ended.said
        return capfdbinary.readouterr().out.decode()

    return run_report


def rows_of(folder, split='train'):
    return list(tokcore.open_dataset(folder).examples(split))


def test_lengths_and_ratios_are_those_of_the_rows(small_build, report):
    [told] = report(small_build)['rows']
    rows = [row for shard in read_shards(small_build) for row in shard]
    assert (told['split'], told['dataset'], told['rows']) == ('train', '', len(rows))
    for feature in ('inputs', 'targets'):
        lengths = sorted(len(row[feature]) for row in rows)
        own = told['lengths'][feature]
        assert own['ids'] == sum(lengths)
        assert own['mean'] == round(sum(lengths) / len(lengths), 4)
        assert own['median'] == lengths[(len(lengths) - 1) // 2]
        assert own['longest'] == lengths[-1]
        ends = [0]
        for least, most, count in own['histogram']:
            assert count == sum(least <= length <= most for length in lengths)
            assert least == ends[-1]
            ends.append(most + 1)
        assert ends[-1] == lengths[-1] + 1
    ratios = collections.Counter(
        2 ** (math.floor(4 * math.log2(len(row['targets']) / len(row['inputs']))) / 4)
        for row in rows
    )
    assert told['ratios'] == sorted(map(list, ratios.items()))


LAYOUTS = {
    'two vocabularies': ['--vocab-size', 900],
    'one vocabulary': ['--vocab-size', 900, '--shared-vocab', '--dev-share', '10%'],
    'Parquet': ['--scheme', 'wordpiece', '--vocab-size', 600, '--output-format', 'parquet'],
    'bytes': ['--scheme', 'byte'],
    'prefix': ['--scheme', 'byte', '--target-prefix', '2zh '],
}


@pytest.fixture(scope='module')
def built(small, tmp_path_factory):
    """Builds each layout once; returns its folder."""

    @functools.cache
    def build(layout):
        out = tmp_path_factory.mktemp('built') / 'out'
        succeed(
            *('build', '--tsv', small.tsv, '--name', 'n', '--shards', 3, '--output', out),
            *LAYOUTS[layout],
        )
        return out

    return build


@pytest.mark.parametrize('layout', LAYOUTS)
def test_the_use_of_each_vocabulary_is_that_of_all_rows(built, layout, report):
    out = built(layout)
    told = report(out)
    dataset = tokcore.open_dataset(out)
    of_splits = [list(dataset.examples(split)) for split in dataset.splits]
    expected_sides = {'inputs': ['inputs'], 'targets': ['targets']}
    if layout in ('one vocabulary', 'bytes', 'prefix'):
        expected_sides = {'both': ['inputs', 'targets']}
    assert [use['side'] for use in told['vocabularies']] == [*expected_sides]
    for use in told['vocabularies']:
        features = expected_sides[use['side']]
        counts = collections.Counter(
            id_
            for rows in of_splits
            for row in rows
            for feature in features
            for id_ in row[feature].tolist()
        )
        size = dataset.vocab_size(features[0])
        pieces = dataset.vocabulary(features[0]).pieces
        assert (use['size'], use['used']) == (size, len(counts))
        ordered = sorted(counts.values(), reverse=True)
        assert use['by_rank'][0] == [1, ordered[0]]
        assert use['by_rank'][-1] == [len(ordered), ordered[-1]]
        assert all(ordered[rank - 1] == count for rank, count in use['by_rank'])
        for least, most, entries in use['by_count']:
            assert entries == sum(least <= counts[id_] <= most for id_ in range(size))
        assert sum(entries for *_, entries in use['by_count']) == size
        for piece, count in use['commonest']:
            assert count in [counts[id_] for id_ in range(size) if pieces[id_] == piece]
        assert [count for _, count in use['commonest']] == ordered[:40]
        assert use['unused'] == [pieces[id_] for id_ in range(size) if not counts[id_]][:40]
        single = [
            id_ for id_ in range(size) if len(dataset.vocabulary(features[0]).decode([id_])) == 1
        ]
        assert use['single_characters'] == len(single) > 0
        share = sum(counts[id_] for id_ in single) / counts.total()
        assert use['single_share'] == pytest.approx(share, abs=1e-6)
        vocabulary = dataset.vocabulary(features[0])
        special = {id_ for id_ in vocabulary.special_ids if id_ is not None}
        lengths = sorted((-len(vocabulary.decode([id_])), id_) for id_ in {*range(size)} - special)
        assert use['longest'] == [
            [pieces[id_], -length, counts[id_]] for length, id_ in lengths[:30]
        ]


@pytest.mark.parametrize('reading', ['--corpus', '--no-corpus'])
@pytest.mark.parametrize('layout', ['two vocabularies', 'bytes', 'prefix'])
def test_text_is_that_of_the_rows(built, layout, reading, report):
    out = built(layout)
    [told] = report(out, reading)['rows']
    dataset = tokcore.open_dataset(out)
    for feature in ('inputs', 'targets'):
        texts = [dataset.text(row[feature], feature) for row in rows_of(out)]
        own = told['text'][feature]
        assert own['rows'] == len(texts)
        assert own['bytes'] == sum(len(text.encode()) for text in texts)
        assert own['characters'] == sum(map(len, texts))
        after = len(dataset.template(feature).after)
        assert own['ids'] == sum(len(row[feature]) - after for row in rows_of(out))
        named = collections.Counter(
            unicodedata.name(c, '').split()[0] if c.isalpha() else '' for c in ''.join(texts)
        )
        assert own['scripts'].get('Latin', 0) == named['LATIN']
        assert own['scripts'].get('Han', 0) == named['CJK']
        assert sum(own['scripts'].values()) == own['characters']
        words = collections.Counter(word for text in texts for word in plain_words(text))
        assert own['words'] == words.total()
        tokenizer = tokcore.ByteTokenizer()
        if layout == 'two vocabularies':
            tokenizer = dataset.vocabulary(feature)
        # A space parts words: of bytes it is a piece of the word after it.
        space = 0 if layout == 'two vocabularies' else 1
        pieces = {word: len(tokenizer.encode(word)) + space for word in words}
        assert own['word_pieces'] == sum(pieces[word] * count for word, count in words.items())
        costs = sorted(((pieces[word] - 1) * count for word, count in words.items()), reverse=True)
        assert [(count - 0) * (size - 1) for _, count, size in own['worst']] == [
            cost for cost in costs[:20] if cost
        ]
        assert all((words[w], pieces[w]) == (count, size) for w, count, size in own['worst'])


PROCESSES = ('--direct_running_mode=multi_processing', '--direct_num_workers=1')


@pytest.mark.parametrize(
    'engine',
    [
        pytest.param(('--workers', 2), id='two workers'),
        pytest.param(PROCESSES, marks=pytest.mark.slow, id='worker processes'),
    ],
)
def test_all_figures_are_those_of_any_engine_however_much_is_held(
    small, engine, report, monkeypatch, tmp_path
):
    out, job, work = tmp_path / 'out', tmp_path / 'job.toml', tmp_path / 'work'
    lines = small.tsv.read_bytes().splitlines(keepends=True)
    parts = {'begin': lines[:200], 'end': lines[200:]}
    job.write_text(
        ''.join(
            f'[[train]]\nname = "{name}"\nformat = "tsv"\n'
            f'paths = {json.dumps(str(write(tmp_path / name, b"".join(own))))}\n'
            for name, own in parts.items()
        )
    )
    succeed(
        *('build', job, '--name', 'n', '--vocab-size', 900, '--shards', 3, '--dev-share', '10%'),
        *('@item-size', '4KiB', '--output', out),
    )
    expected = report(out, '--corpus')
    assert [each['dataset'] for each in expected['rows']] == ['', 'begin', 'end'] * 2
    monkeypatch.setattr(row_text, '_ENCODED_WORDS', 3)
    monkeypatch.setattr(corpus_figures, '_FLUSH_BYTES', 1)
    monkeypatch.setattr(corpus_figures, '_BUFFER_BYTES', 0)
    monkeypatch.setattr(figures, '_ROWS', 7)
    assert report(out, '--work', work, *engine) == expected
    assert not work.exists()


def plain_words(text):
    """Runs of letters, marks and digits; of Han none, of which each pair here has many."""
    kept = [
        c if unicodedata.category(c)[0] in 'LMN' and 'CJK' not in unicodedata.name(c, '') else ' '
        for c in text
    ]
    return ''.join(kept).split()


def test_the_size_of_the_vocabulary_and_the_lines_are_as_recorded(small_build, report):
    told, manifest = report(small_build), manifest_of(small_build)
    assert told['root'] == manifest['root'] and told['options'] == manifest['options']
    assert [
        (use['side'], use['wanted'], use['size'], use['min_count']) for use in told['vocabularies']
    ] == [
        (each['side'], manifest['options']['vocab_size'], each['size'], each['min_count'])
        for each in manifest['vocabularies']
    ]
    [left_out] = told['left_out']
    [lines] = manifest['lines']
    assert left_out['lines'] == lines['lines'] == 300
    assert left_out['lines'] == left_out['examples'] + sum(left_out['reasons'].values())
    assert told['seconds'].keys() and all(each >= 0 for each in told['seconds'].values())


def test_sample_rows_are_the_first_of_each_split(built, report):
    out = built('one vocabulary')
    dataset = tokcore.open_dataset(out)
    told = report(out)['examples']
    assert [(each['split'], each['row']) for each in told] == [
        (split, number) for split in dataset.splits for number in range(3)
    ]
    for each in told:
        row = dataset[each['split']][each['row']]
        for feature, own in each['pieces'].items():
            ids, pieces = row[feature].tolist(), dataset.vocabulary(feature).pieces
            assert own == [[pieces[id_], id_] for id_ in ids[:100]]
            assert each['ids'][feature] == len(ids)


@pytest.mark.parametrize('is_packed', [False, True])
def test_the_longest_rows_are_named_by_their_lines(is_packed, report, tmp_path):
    lines = [f'{"long " * (37 * number % 41)}{number}'.encode() for number in range(41)]
    text = tmp_path / ('text.gz' if is_packed else 'text')
    data = b'\n\n' + b''.join(line + b'\n' for line in lines)
    text.write_bytes(gzip.compress(data) if is_packed else data)
    out = tmp_path / 'out'
    succeed(
        *('build', '--text', text, '--name', 'n', '--scheme', 'byte', '--dev-share', '20%'),
        *('--shards', 2, '--output', out),
    )
    dataset = tokcore.open_dataset(out)
    told = report(out)['longest_rows']
    for split in dataset.splits:
        rows = [dataset.text(row['targets']) for row in rows_of(out, split)]
        longest = sorted(range(len(rows)), key=lambda row: (-len(rows[row]), row))[:5]
        own = [each for each in told if each['split'] == split]
        assert [(each['row'], each['ids']) for each in own] == [
            (row, len(rows[row]) + 1) for row in longest
        ]
        for each in own:
            line = rows[each['row']].encode()
            assert each['text'] == {'targets': line[:12].decode()}
            number = lines.index(line)
            begin = 2 + sum(len(before) + 1 for before in lines[:number])
            assert each['position'] == {'file': text.name, 'byte': begin, 'line': number + 3}
    without = report(out, '--no-corpus')['longest_rows']
    assert without == [{**each, 'position': None} for each in told]


def test_of_a_file_of_rows_the_longest_are_named_by_number(report, tmp_path):
    texts, out = ['short', 'the longest of all', 'a longer one'], tmp_path / 'out'
    pq.write_table(pa.table({'text': texts}), tmp_path / 'rows.parquet')
    succeed(
        *(
            'build',
            '--parquet',
            tmp_path / 'rows.parquet',
            '--fields',
            'text',
            '--name',
            'n',
        ),
        *('--scheme', 'byte', '--shards', 1, '--output', out),
    )
    assert [each['position'] for each in report(out)['longest_rows']] == [
        {'file': 'rows.parquet', 'row of the file': row} for row in (1, 2, 0)
    ]


def test_rows_that_occur_again_are_counted(report, tmp_path):
    lines = {
        split: [f'{37 * n % k}' for n in range(200)] for split, k in [('train', 70), ('dev', 90)]
    }
    paths = {
        split: write(tmp_path / split, ''.join(f'{line}\n' for line in own).encode())
        for split, own in lines.items()
    }
    out, job = tmp_path / 'out', tmp_path / 'job.toml'
    job.write_text(
        ''.join(
            f'[[{split}]]\nformat = "text"\npaths = {json.dumps(str(path))}\n'
            for split, path in paths.items()
        )
    )
    succeed('build', job, '--name', 'n', '--scheme', 'byte', '--shards', 3, '--output', out)
    counts = {split: collections.Counter(own) for split, own in lines.items()}
    assert report(out)['repeats'] == [
        {
            'split': split,
            'rows': 200,
            'distinct': len(own),
            'most': max(own.values()),
            'in_train': None
            if split == 'train'
            else sum(count for line, count in own.items() if line in counts['train']),
        }
        for split, own in counts.items()
    ]


@pytest.mark.parametrize('layout', ['two vocabularies', 'one vocabulary'])
def test_padding_is_that_of_the_readers_batches(built, layout, report):
    out = built(layout)
    dataset = tokcore.open_dataset(out)
    around = {feature: dataset.template(feature).size for feature in dataset.features}

    def share(batches, names):
        cells = ids = 0
        for batch in batches:
            for feature, name in names.items():
                lengths = batch[name] + (around[feature] - (name == 'target_sequence_length')) * (
                    'sequence' in name
                )
                cells += len(lengths) * int(lengths.max())
                ids += int(lengths.sum())
        return 1 - ids / cells

    nmt = {'inputs': 'source_sequence_length', 'targets': 'target_sequence_length'}
    own = {feature: f'{feature}_length' for feature in dataset.features}
    told = report(out)['padding']
    assert [each['batch'] for each in told] == [
        *(f'{size} rows' for size in (16, 32, 64, 256)), '4,096 ids'
    ] * len(dataset.splits)  # fmt: skip
    for each in told:
        assert each['rows'] == dataset.splits[each['split']].examples
        read = functools.partial(dataset.batches, each['split'], shuffle=False)
        if 'ids' in each['batch']:
            assert each['mixed'] is None
            expected = share(read(tokens_per_batch=4096), own)
            assert each['similar'] == pytest.approx(expected, abs=1e-6)
            continue
        size = int(each['batch'].split()[0])
        of_kind = {'mixed': 1, 'similar': 5}
        for kind, buckets in of_kind.items():
            expected = share(read(batch_size=size, num_buckets=buckets, start=1, end=1), nmt)
            assert each[kind] == pytest.approx(expected, abs=1e-6)


def test_the_bytes_of_text_are_those_of_each_split(built, report):
    told = report(built('one vocabulary'), '--corpus')
    assert [each['split'] for each in told['left_out']] == ['train', 'dev']
    for left_out, rows in zip(told['left_out'], told['rows'], strict=True):
        assert left_out['text_bytes'] == sum(text['bytes'] for text in rows['text'].values())


def test_lines_left_out_have_reasons_and_samples(report, tmp_path):
    text = write(tmp_path / 'text', b'one line\n\xff broken\n\nthree lines\n' + b'more\n' * 20)
    out = tmp_path / 'out'
    succeed(
        *('build', '--text', text, '--name', 'n', '--scheme', 'byte', '--output', out),
        *('--on-error', 'skip', '--shards', 1),
    )
    told = report(out)
    [left_out] = told['left_out']
    assert left_out['reasons'] == {'empty': 1, 'invalid_utf8': 1}
    [file] = told['rejected']
    assert file['lines'] == 1
    assert [json.loads(line)['offset'] for line in file['samples']] == [9]
    assert [*told['rows'][0]['lengths']] == ['targets'] and told['rows'][0]['ratios'] == []


def test_the_order_is_held_against_the_corpus_and_datasets_are_told_apart(report, tmp_path):
    texts = {
        name: write(
            tmp_path / f'{name}.txt', b''.join(b'%s %d\n' % (word, n) for n in range(count))
        )
        for name, word, count in [('news', b'paper', 300), ('talk', b'voice', 100)]
    }
    out, job = tmp_path / 'out', tmp_path / 'job.toml'
    datasets = ''.join(
        f'[[train]]\nname = "{name}"\nformat = "text"\npaths = {json.dumps(str(path))}\n'
        for name, path in texts.items()
    )
    job.write_text(datasets)
    succeed('build', job, '--name', 'n', '--scheme', 'byte', '--shards', 3, '--output', out)
    told = report(out, '--corpus')
    dataset = tokcore.open_dataset(out)
    lines = [line for path in texts.values() for line in path.read_text().splitlines()]
    stored = [dataset.text(row['targets']) for row in rows_of(out)]
    ranks = np.array([lines.index(line) for line in stored])
    [shuffle] = told['shuffles']
    assert shuffle['rows'] == 400
    expected = np.corrcoef(ranks, np.arange(400))[0, 1]
    assert shuffle['rank_correlation'] == pytest.approx(expected, abs=2e-6)
    expected = np.corrcoef(ranks[:-1], ranks[1:])[0, 1]
    assert shuffle['serial_correlation'] == pytest.approx(expected, abs=2e-6)
    by_name = {each['dataset']: each for each in told['rows']}
    assert by_name.keys() == {'', 'news', 'talk'}
    for name, word in [('news', 'paper'), ('talk', 'voice')]:
        own = [line for line in stored if line.startswith(word)]
        assert by_name[name]['rows'] == len(own)
        assert by_name[name]['text']['targets']['bytes'] == sum(map(len, own))
        assert by_name[name]['lengths']['targets']['ids'] == sum(len(line) + 1 for line in own)
    assert report(out) == told
    without = report(out, '--no-corpus')
    assert (without['shuffles'], without['without_corpus']) == (None, '--no-corpus')
    assert [each['dataset'] for each in without['rows']] == ['']
    # Another corpus is not the one of these rows.
    for text in (b'voice\n', texts['talk'].read_bytes().replace(b'9', b'8')):
        texts['talk'].write_bytes(text)
        assert 'verify --rerun' in refuse('report', out, '--corpus', '--json')
    changed = report(out)
    assert 'talk.txt has changed' in changed.pop('without_corpus')
    without.pop('without_corpus')
    assert changed == without


def test_a_corpus_that_is_not_there_is_told(small, report, tmp_path):
    text, out, job = tmp_path / 'pairs.tsv', tmp_path / 'out', tmp_path / 'job.toml'
    text.write_bytes(small.tsv.read_bytes())
    succeed('build', '--tsv', text, '--name', 'n', '--scheme', 'byte', '--output', out)
    whole = report(out)
    moved = text.rename(tmp_path / 'moved.tsv')
    told = report(out)
    assert told['shuffles'] is None and str(text) in told['without_corpus']
    assert str(text) in refuse('report', out, '--corpus', '--json')
    record = json.loads((out / 'tokbeam.run.json').read_text())['job']
    job.write_text(record.replace(str(text), str(moved)))
    [found], [expected] = report(out, '--job', job)['shuffles'], whole['shuffles']
    assert found == expected


def test_an_encoded_dataset_has_the_figures_of_its_build(small, small_build, report, tmp_path):
    paths = [small_build / each['name'] for each in manifest_of(small_build)['vocabularies']]
    out = tmp_path / 'out'
    succeed(
        *('encode', '--tsv', small.tsv, '--name', 'small', '--shards', 3, '--output', out),
        *('--vocab', paths[0], paths[1]),
    )
    encoded, built = report(out), report(small_build)
    for use in encoded['vocabularies']:
        assert (use['wanted'], use['min_count']) == (None, None)
    for told in (encoded, built):
        for use in told['vocabularies']:
            del use['wanted'], use['min_count']
    for part in (
        'rows',
        'vocabularies',
        'left_out',
        'repeats',
        'padding',
        'longest_rows',
        'examples',
    ):
        assert encoded[part] == built[part]
    [text_bytes] = {each['text_bytes'] for each in encoded['left_out']}
    assert text_bytes == sum(text['bytes'] for text in encoded['rows'][0]['text'].values())


class Tags(html.parser.HTMLParser):
    """The tags of a page, which must be balanced, and all its attributes."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.attributes = [], collections.Counter(), []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen[tag] += 1
        self.attributes += attrs
        if tag not in ('meta',):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.slow
def test_the_page_is_whole_and_needs_nothing_else(small, page, tmp_path):
    out = tmp_path / 'out'
    succeed(
        *('build', '--tsv', small.tsv, '--name', '<script>&"$x$', '--vocab-size', 900),
        *('--shards', 2, '--output', out),
    )
    text = page('report', out, '--corpus')
    tags = Tags(text)
    assert tags.seen['svg'] == 4
    assert not tags.seen.keys() & {'script', 'link', 'img', 'iframe', 'object', 'image'}
    ids = [value for name, value in tags.attributes if name == 'id']
    assert len(ids) == len(set(ids))
    references = [value for name, value in tags.attributes if name in ('href', 'xlink:href', 'src')]
    assert {value.removeprefix('#') for value in references} <= set(ids)
    assert not re.findall(r'url\((?!#)', text) and '@import' not in text
    style = text[text.index('<style>') : text.index('</style>')]
    assert 'prefers-color-scheme: dark' in style and '@media print' in style
    drawn = ''.join(re.findall('<svg.*?</svg>', text, re.DOTALL))
    # No colour stays that is not the page's.
    assert not re.findall(r'#[0-9a-f]{6}\b', drawn) and 'currentColor' in drawn
    assert text == page('report', out)
    titles = re.findall('<h2 id="(.*?)">', text)
    assert titles == re.findall('<li><a href="#(.*?)">', text) and len(titles) > 10
    bodies = re.findall('<section>\n<h2.*?</h2>\n(.*?)\n</section>', text, re.DOTALL)
    assert len(bodies) == len(titles) and all(bodies)
    assert 'was not read: --no-corpus' in page('report', out, '--no-corpus')


def test_what_is_missing_says_why(built, page):
    without = page('report', built('bytes'), '--no-corpus')
    assert 'Not measured, because the corpus was not read: --no-corpus.' in without
    assert 'Some lines are missing, because the corpus was not read.' in without
    assert 'Unknown ids are not counted, because' in without
    assert 'Words are not counted in scripts without spaces' in without


def test_a_column_without_a_value_is_left_out_of_a_table():
    drawn = table('', ['a', 'b', 'c'], [(1, None, None), (2, None, 3)])
    assert re.findall(r'<th[^>]*>(.)</th>', drawn) == ['a', 'c']
    assert re.findall(r'<td[^>]*>(.)</td>', drawn) == ['1', '–', '2', '3']
    assert table('', ['a'], []) == ''


def test_what_cannot_be_reported_is_refused(small, small_build, tmp_path):
    assert 'no tokbeam.json' in refuse('report', tmp_path)
    assert 'leave out --no-corpus' in refuse(
        'report', small_build, '--no-corpus', '--job', small.tsv
    )
    out = tmp_path / 'out'
    succeed(
        *('build', '--tsv', small.tsv, '--name', 'n', '--scheme', 'byte', '--output', out),
        *('--output-format', 'text'),
    )
    assert 'tfrecord or parquet' in refuse('report', out)


def test_without_the_package_of_charts_no_row_is_read(small_build, monkeypatch):
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    events = []
    with listening(events.append):
        for line in (['report', small_build], ['compare', small_build, small_build]):
            sentence = refuse(*line)
            assert "pip install '.[report]'" in sentence and '--json' in sentence
    assert events == []
