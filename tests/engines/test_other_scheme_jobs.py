"""What holds for subwords holds for the other schemes: bytes, rows, counts, lines in and out."""

import json
from dataclasses import dataclass

import pytest
from dataset_files import files_of, lines_of, manifest_of, read_shards
from generated_text import kept_pairs
from jobs import refuse, succeed

from tokcore.schemes import scheme_names

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Kind:
    """A scheme as these tests use it."""

    name: str
    learning: tuple[str, ...]
    vocabulary: str | None  # the name of its file for both sides
    template: str  # what surrounds the rows of examples
    options: tuple[str, ...] = ()  # others of the scheme, for all commands that take them
    keeps_blanks: bool = False  # whether a line of blanks is a row like others

    @property
    def asked(self):
        return ['--scheme', self.name, *self.options]

    @property
    def surrounding(self):
        """What asks for the template, where it is not the scheme's own."""
        return ['--template', self.template] if self.name in ('bpe', 'unigram') else []


KINDS = {
    'wordpiece': Kind(
        'wordpiece', ('--vocab-size', '700', '--min-count-range', '2:100000'),
        'vocab.small.700.wordpiece.txt', '[CLS] $A [SEP]',
    ),
    'cased': Kind(
        'wordpiece', ('--vocab-size', '700', '--min-count-range', '2:100000'),
        'vocab.small.700.wordpiece.txt', '[CLS] $A [SEP]',
        ('--no-lower-case', '--no-split-cjk', '--normalizer', 'bert-original'),
    ),
    'gpt2': Kind('bpe', ('--vocab-size', '400', '--special-tokens', '<pad>,</s>'),
        'vocab.small.400.bpe.json', '$A </s>', keeps_blanks=True,
    ),
    'cl100k': Kind('bpe', ('--merges', '150', '--special-tokens', '</s>'),
        'vocab.small.merges-150.bpe.json', '$A </s>', ('--preset', 'cl100k'), keeps_blanks=True,
    ),
    'subword-nmt': Kind(
        'bpe', ('--merges', '120'), 'vocab.small.merges-120.codes', '$A </s>',
        ('--preset', 'subword-nmt'), keeps_blanks=True,
    ),
    'textbook': Kind(
        'bpe', ('--merges', '60'), 'vocab.small.merges-60.codes', '$A </s>',
        ('--preset', 'textbook'), keeps_blanks=True,
    ),
    'word': Kind('word', ('--vocab-size', '300'), 'vocab.small.300.words.txt', '$A </s>'),
    'byte': Kind('byte', (), None, '$A <EOS>'),
    'unigram': Kind(
        'unigram', ('--vocab-size', '700', '--num-threads', '2'), 'vocab.small.700.model', '$A </s>',
        keeps_blanks=True,
    ),
}  # fmt: skip


@pytest.fixture(scope='module', params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(scope='module')
def building(small, kind):
    """The command line of a build, without its output."""
    inputs = ['--source', small.source, '--target', small.target]
    options = ['--name', 'small', '--shards', 3, '--shared-vocab', *kind.learning]
    return ['build', *inputs, *kind.asked, *options, *kind.surrounding]


@pytest.mark.parametrize(
    'cut',
    [
        ('@item-size', 64, '--workers', 2, '@buffer', '4KiB'),
        ('@item-size', '1KiB', '@shuffle', 'engine'),
    ],
    ids=str,
)
def test_a_build_gives_the_same_bytes_however_it_is_cut(building, built, tmp_path, cut):
    succeed(*building, *cut, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(built)


def test_rows_are_what_tokenize_gives_and_nothing_is_lost(small, kind, built, filter_lines):
    vocabulary = ['--vocab', built / kind.vocabulary] if kind.vocabulary else []
    scheme = [] if kind.vocabulary else kind.asked
    pairs = kept_pairs(small.pairs)
    if kind.keeps_blanks:
        pairs = [
            pair for pair in small.pairs if None not in pair and all(text.strip() for text in pair)
        ]
    expected = []
    for side in range(2):
        text = ''.join(f'{pair[side]}\n' for pair in pairs).encode()
        said = filter_lines(text, 'tokenize', *vocabulary, *scheme, '--template', kind.template)
        expected.append([[*map(int, line.split())] for line in said.decode().split('\n')[:-1]])
    rows = [example for shard in read_shards(built) for example in shard]
    found = [(row['inputs'], row['targets']) for row in rows]
    assert sorted(found) == sorted(zip(*expected, strict=True))
    assert len(found) == lines_of(built)['examples']


def test_lines_that_hold_no_text_give_what_the_template_adds(kind, built, filter_lines):
    vocabulary = ['--vocab', built / kind.vocabulary] if kind.vocabulary else kind.asked
    text = b'\n\n' if kind.keeps_blanks else b'\n  \t\n'
    assert filter_lines(text, 'tokenize', *vocabulary) == b'\n\n'
    around = filter_lines(text, 'tokenize', *vocabulary, '--template', kind.template).split(b'\n')
    assert around[0] == around[1] != b''


def test_what_the_template_adds_is_taken_off_again(kind, built, filter_lines):
    vocabulary = ['--vocab', built / kind.vocabulary] if kind.vocabulary else kind.asked
    ids = filter_lines(b'a\n', 'tokenize', *vocabulary)
    whole = filter_lines(b'a\n', 'tokenize', *vocabulary, '--template', kind.template)
    assert len(whole.split()) > len(ids.split())
    back = filter_lines(ids, 'detokenize', *vocabulary)
    assert filter_lines(whole, 'detokenize', *vocabulary) == back


def test_the_manifest_tells_how(kind, built):
    manifest = manifest_of(built)
    assert manifest['options']['scheme'] == kind.name
    for record in manifest['vocabularies']:
        assert record['scheme'] == kind.name
        assert manifest['pre_tokenizer'] == record['pre_tokenizer']
    assert [each['name'] for each in manifest['vocabularies']] == (
        [kind.vocabulary] if kind.vocabulary else []
    )
    if kind.vocabulary:
        [lines] = manifest['lines']
        beside = [each['name'] for each in manifest['vocabularies'][0].get('beside', [])]
        if kind.vocabulary.endswith('.codes'):
            assert beside == [kind.vocabulary.replace('.codes', '.vocab')]
        else:  # what AutoTokenizer and others open, of a scheme that they know
            opened = ['tokenizer.json', 'tokenizer_config.json']
            if kind.name == 'unigram':
                opened.append('tokenizer.vocab')
            has_none = kind.name == 'word' or 'bert-original' in kind.options
            assert beside == ([] if has_none else opened)
        has_unknown = manifest['vocabularies'][0]['special_ids']['unknown'] is not None
        assert not has_unknown or 0 <= lines['unknown'] < lines['ids']


def test_an_encoding_with_the_vocabulary_of_a_build_gives_its_shards(small, kind, built, tmp_path):
    vocabulary = ['--vocab', built / kind.vocabulary] if kind.vocabulary else kind.asked
    inputs = ['--source', small.source, '--target', small.target]
    options = ['--name', 'small', '--shards', 3, '--output', tmp_path / 'out']
    succeed('encode', *inputs, *vocabulary, *options, *kind.surrounding)
    shards = {name: data for name, data in files_of(built).items() if name.startswith('small-')}
    assert len(shards) == 3
    assert {
        name: data for name, data in files_of(tmp_path / 'out').items() if name.startswith('small-')
    } == shards


def test_a_second_run_does_nothing_and_another_one_is_refused(kind, building, built):
    assert 'build: already done' in succeed(*building, '--output', built)
    assert 'another' in refuse(*building, '--template', 'x $A', '--output', built)


def test_counts_that_are_merged_give_the_same_vocabulary(small, kind, built, tmp_path):
    if kind.vocabulary is None:
        said = refuse('count', '--text', small.source, *kind.asked, '--output', tmp_path / 'c')
        assert '--scheme byte has nothing to learn' in said
        return
    folders = []
    inputs = ['--source', small.source, '--target', small.target]
    for side in ('inputs', 'targets'):
        folders.append(tmp_path / side)
        succeed('count', *inputs, '--side', side, *kind.asked, '--output', folders[-1])
    succeed('count', '--counts', *folders, '--output', tmp_path / 'merged', *kind.asked)
    command = ['vocab', '--counts', tmp_path / 'merged', *kind.asked, *kind.learning]
    succeed(*command, '--output', tmp_path / 'vocab.txt')
    assert (tmp_path / 'vocab.txt').read_bytes() == (built / kind.vocabulary).read_bytes()
    [record] = json.loads((tmp_path / 'vocab.txt.tokbeam.json').read_text())['vocabularies']
    assert record['scheme'] == kind.name


def test_kinds_are_all_that_there_are():
    names = {each.name for each in KINDS.values()}
    # Of `pretrained` nothing is built: `test_pretrained_jobs` has it.
    assert names == {*scheme_names()} - {'subword', 'pretrained'}
