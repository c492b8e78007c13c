"""`tokbeam compare`: two vocabularies, by sets; two datasets, each with the figures of its report."""

import collections
import json

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
        assert figures['single_characters'] == sum(len(text) == 1 for text in texts)
        special = {id_ for id_ in vocabulary.special_ids if id_ is not None}
        lengths = collections.Counter(
            min(len(text), 16) for id_, text in enumerate(texts) if id_ not in special
        )
        assert figures['by_length'] == sorted(map(list, lengths.items()))
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
    assert json.loads(printed('compare', small_build, out, '--json')) == reports
    assert json.loads(printed('compare', small_build, out, '--json', '--corpus')) == reports
    without = json.loads(printed('compare', small_build, out, '--json', '--no-corpus'))
    assert [each['shuffles'] for each in without] == [None, None]


def test_the_pages(small, small_build, printed, tmp_path):
    pytest.importorskip('matplotlib', reason='the extra report is not installed')
    out = tmp_path / 'out'
    succeed('build', '--tsv', small.tsv, '--name', 'b', '--scheme', 'byte', '--output', out)
    page = printed('compare', small_build, out)
    assert '<h1>out and out</h1>' in page and page.count('<svg') == page.count('</svg>') == 6
    page = printed('compare', *vocabularies_of(small_build))
    assert page.count('<svg') == 1 and 'only in A' in page and 'only in B' in page


def test_a_folder_and_a_file_are_refused(small_build, tmp_path):
    path = vocabularies_of(small_build)[0]
    assert 'two datasets, or two vocabularies' in refuse('compare', small_build, path)
    assert 'two datasets, or two vocabularies' in refuse('compare', path, small_build)
    assert 'required: B' in refuse('compare', path)
    assert 'no tokbeam.json' in refuse('compare', small_build, tmp_path, '--json')
