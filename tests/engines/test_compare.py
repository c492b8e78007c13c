"""`tokbeam compare`: two vocabularies, by sets; two datasets, each with the figures of its report."""

import collections
import json
import re
import unicodedata

import pytest
from dataset_files import manifest_of
from jobs import refuse, run, succeed

import tokcore


@pytest.fixture
def printed(capfdbinary):
    def run_command(*arguments):
        capfdbinary.readouterr()
        ended = run(*arguments)
        assert ended.status == 0, ended.said
        return capfdbinary.readouterr().out.decode()

    return run_command


def vocabularies_of(folder):
    return [folder / each['name'] for each in manifest_of(folder)['vocabularies']]


def test_vocabularies_of_one_scheme_are_compared_by_pieces(small_build, printed):
    paths = vocabularies_of(small_build)
    told = json.loads(printed('compare', *paths, '--json'))
    pieces = [list(tokcore.SubwordTextEncoder.load(path).pieces) for path in paths]
    first, second = map(set, pieces)
    assert (told['unit'], told['shared']) == ('pieces', len(first & second))
    for path, own, other, figures in zip(
        paths, pieces, (second, first), told['vocabularies'], strict=True
    ):
        assert (figures['path'], figures['scheme']) == (str(path), 'subword')
        assert figures['size'] == len(own)
        assert figures['own'] == len(set(own) - other)
        assert figures['examples'] == [piece for piece in own if piece not in other][:100]
        vocabulary = tokcore.SubwordTextEncoder.load(path)
        texts = [vocabulary.decode([id_]) for id_ in range(len(own))]
        first = [next(filter(str.isalpha, text), ' ') for text in texts]
        names = collections.Counter(unicodedata.name(c, '').split()[0] for c in first)
        assert figures['scripts'].get('Han', 0) == names['CJK']
        assert figures['scripts']['Latin'] == names['LATIN']
        assert sum(figures['scripts'].values()) == len(own)


def test_vocabularies_of_two_schemes_are_compared_by_texts(small, small_build, printed, tmp_path):
    other = tmp_path / 'vocab.txt'
    succeed(
        *('vocab', '--text', small.source, '--scheme', 'wordpiece', '--vocab-size', 400),
        *('--output', other),
    )
    path = vocabularies_of(small_build)[0]
    told = json.loads(printed('compare', path, other, '--json'))
    first, second = (
        {vocabulary.decode([id_]).strip() for id_ in range(vocabulary.vocab_size)}
        for vocabulary in (
            tokcore.SubwordTextEncoder.load(path),
            tokcore.load_tokenizer(other, 'wordpiece').vocabulary,
        )
    )
    assert (told['unit'], told['shared']) == ('texts', len(first & second))
    assert [each['own'] for each in told['vocabularies']] == [
        len(first - second),
        len(second - first),
    ]


def test_datasets_have_the_figures_of_their_reports(small, small_build, printed, tmp_path):
    out = tmp_path / 'out'
    succeed('build', '--tsv', small.tsv, '--name', 'b', '--scheme', 'byte', '--output', out)
    reports = [json.loads(printed('report', folder, '--json')) for folder in (small_build, out)]
    told = json.loads(printed('compare', small_build, out, '--json'))
    assert told['datasets'] == reports
    assert json.loads(printed('compare', small_build, out, '--json', '--corpus')) == told
    without = json.loads(printed('compare', small_build, out, '--json', '--no-corpus'))
    assert [each['shuffles'] for each in without['datasets']] == [None, None]
    assert without['text'] == told['text'] and [*told['text']] == ['inputs', 'targets']
    dataset = tokcore.open_dataset(small_build)
    for feature, cut in told['text'].items():
        rows = [dataset.text(row[feature], feature) for row in dataset.examples('train')]
        tokenizers = [dataset.vocabulary(feature), tokcore.ByteTokenizer()]
        assert cut == plain_cut(tokenizers, [*dict.fromkeys(rows)])


def plain_cut(tokenizers, texts):
    """How tokenizers cut a text, with each word by itself."""

    def ends(tokenizer, word):
        lead = len(tokenizer.encode('a'))
        ids = tokenizer.encode(f'a {word}')[lead:]
        return ids, {len(tokenizer.decode(ids[:end]).strip()) for end in range(1, len(ids) + 1)}

    words = collections.Counter(
        word
        for text in texts
        for word in re.findall(r'[^\W_]+', re.sub(r'[\u3400-\u9fff]', ' ', text))
    )
    differing = [
        (word, count, *(ids for ids, _ in both))
        for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0]))
        for both in [[ends(tokenizer, word) for tokenizer in tokenizers]]
        if both[0][1] != both[1][1]
    ]
    return {
        'bytes': sum(len(text.encode()) for text in texts),
        'left_out': 0,
        'ids': [sum(len(each.encode(text)) for text in texts) for each in tokenizers],
        'unknown': [0, 0],
        'words': words.total(),
        'differing': sum(count for _, count, *_ in differing),
        'examples': [
            [
                word,
                count,
                *([t.pieces[id_] for id_ in ids] for t, ids in zip(tokenizers, both, strict=True)),
            ]
            for word, count, *both in differing[:60]
        ],
    }


def test_a_text_without_ids_is_left_out_and_unknown_ids_are_counted(printed, tmp_path):
    text = tmp_path / 'text'
    text.write_text('one two one two\n' * 30)
    paths = [tmp_path / 'word', tmp_path / 'piece']
    for path, scheme, size in zip(paths, ('word', 'wordpiece'), (10, 40), strict=True):
        succeed(
            *('vocab', '--text', text, '--scheme', scheme, '--vocab-size', size, '--output', path)
        )
    own = tmp_path / 'own'
    own.write_text('one three\nTWO\n\n')
    told = json.loads(printed('compare', *paths, '--json', '--common-text', own))['text']
    tokenizers = [tokcore.load_tokenizer(path, s) for path, s in zip(paths, ('word', 'wordpiece'))]
    unknown = [tokenizer.special_ids.unknown for tokenizer in tokenizers]
    lines = own.read_text().splitlines()
    ids = [[t.encode(line, add_special_tokens=False) for line in lines] for t in tokenizers]
    assert told['ids'] == [sum(map(len, each)) for each in ids]
    assert told['unknown'] == [
        sum(row.count(id_) for row in each) for each, id_ in zip(ids, unknown, strict=True)
    ]
    assert told['bytes'] == len('one threeTWO') and told['words'] == 3


@pytest.mark.parametrize('lower', [False, True])
def test_the_common_text_is_that_of_a_tokenizer_that_keeps_it(small, lower, printed, tmp_path):
    out, other = tmp_path / 'out', tmp_path / 'other'
    pairs = ('--tsv', small.tsv, '--name', 'n', '--shards', 2)
    succeed('build', *pairs, '--scheme', 'wordpiece', '--vocab-size', 600, '--output', out)
    scheme = ('wordpiece', '--vocab-size', 500) if lower else ('byte',)
    succeed('build', *pairs, '--scheme', *scheme, '--output', other)
    told = json.loads(printed('compare', out, other, '--json', '--no-corpus'))['text']['inputs']
    dataset, exact = tokcore.open_dataset(out), tokcore.open_dataset(other)
    texts = [exact.text(row['inputs'], 'inputs') for row in exact.examples('train')]
    if lower:  # neither keeps it
        texts += [dataset.text(row['inputs'], 'inputs') for row in dataset.examples('train')]
    assert told['bytes'] == sum(len(text.encode()) for text in {*texts})


def test_the_pages(small, small_build, printed, tmp_path):
    out = tmp_path / 'out'
    page = printed('compare', *vocabularies_of(small_build))
    assert 'only in A' in page and 'only in B' in page
    assert page.count('Not counted, because no text was given') == 2
    page = printed('compare', *vocabularies_of(small_build), '--common-text', small.source)
    assert 'Not counted' not in page and 'are cut differently; the most frequent first' in page
    pytest.importorskip('matplotlib', reason='the extra report is not installed')
    succeed('build', '--tsv', small.tsv, '--name', 'b', '--scheme', 'byte', '--output', out)
    page = printed('compare', small_build, out)
    assert '<h1>out and out</h1>' in page and page.count('<svg') == page.count('</svg>') == 4
    titles = re.findall('<h2.*?>(.*?)</h2>', page)
    assert titles[:2] == ['Bytes per token of the same text', 'Words that are cut differently']


def test_a_folder_and_a_file_are_refused(small_build, tmp_path):
    path = vocabularies_of(small_build)[0]
    assert 'two datasets, or two vocabularies' in refuse('compare', small_build, path)
    assert 'two datasets, or two vocabularies' in refuse('compare', path, small_build)
    assert 'required: B' in refuse('compare', path)
    assert 'no tokbeam.json' in refuse('compare', small_build, tmp_path, '--json')
