"""The transforms in a user's own pipeline: each scheme, each format, and what is refused at once."""

import functools
import json
import os

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from apache_beam.testing.util import assert_that, equal_to
from jobs import succeed

from pipelines import (
    CountTokens,
    CountTokensByElement,
    EncodeBlocks,
    EncodedFeature,
    LearnVocabulary,
    ReadCorpus,
    SplitShards,
    WriteCounts,
    WriteShards,
)
from pipelines.transforms import encode_blocks
from tokcore import Feature, find_scheme, open_dataset
from tokcore.errors import InputError
from tokcore.records.tfrecord import parse_features, read_records

PAIRS = [('the cat sat', 'die Katze sitzt'), ('a cat', 'eine Katze'), ('the mat', 'die Matte')] * 9

SCHEMES = {
    'subword': ({'vocab_size': 60}, ['--vocab-size', 60]),
    'wordpiece': (
        {'vocab_size': 60, 'min_count_range': (1, 1000)},
        ['--vocab-size', 60, '--min-count-range', '1:1000'],
    ),
    'bpe': (
        {'vocab_size': 270, 'pre_tokenizer': 'cl100k'},
        ['--vocab-size', 270, '--pre-tokenizer', 'cl100k'],
    ),
    'bpe of subword-nmt': (
        {'preset': 'subword-nmt', 'merges': 12}, ['--preset', 'subword-nmt', '--merges', 12],
    ),
    'word': (
        {'vocab_size': 20, 'special_tokens': ['<unk>', '<s>', '</s>', '<pad>']},
        ['--vocab-size', 20, '--special-tokens', '<unk>,<s>,</s>,<pad>'],
    ),
    'unigram': ({'vocab_size': 23}, ['--vocab-size', 23]),
}  # fmt: skip
QUICK = {'subword', 'bpe of subword-nmt'}


def pipeline():
    return beam.Pipeline(runner='FnApiRunner')


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    """The same pairs in every format."""
    folder = tmp_path_factory.mktemp('corpus')
    lines = {'en': [pair[0] for pair in PAIRS], 'de': [pair[1] for pair in PAIRS]}
    for language, texts in lines.items():
        (folder / f'a.{language}').write_text(''.join(f'{text}\n' for text in texts))
        segments = ''.join(f'<seg id="{n}">{text}</seg>\n' for n, text in enumerate(texts, 1))
        (folder / f'a.{language}.sgm').write_text(segments)
    (folder / 'a.labels').write_text('0\n' * len(PAIRS))
    (folder / 'a.tsv').write_text(''.join(f'{en}\t{de}\n' for en, de in PAIRS))
    objects = (json.dumps({'en': en, 'de': de}) for en, de in PAIRS)
    (folder / 'a.jsonl').write_text(''.join(f'{line}\n' for line in objects))
    parquet.write_table(pa.table(lines), folder / 'a.parquet')
    units = ''.join(
        f'<tu><tuv xml:lang="en"><seg>{en}</seg></tuv>\n<tuv xml:lang="de"><seg>{de}</seg></tuv></tu>\n'
        for en, de in PAIRS
    )
    (folder / 'a.tmx').write_text(f'<tmx version="1.4"><body>\n{units}</body></tmx>\n')
    segments = ''.join(f' <seg>{text}</seg>\n' for pair in PAIRS for text in pair)
    (folder / 'lines.tmx').write_text(segments)
    return folder


FORMATS = {
    'text': ('a.en', (), {}),
    'bitext': ('a.en', 'a.de', {}),
    'tsv': ('a.tsv', (), {'columns': (0, 1)}),
    'jsonl': ('a.jsonl', (), {'fields': ['en', 'de']}),
    'parquet': ('a.parquet', (), {'fields': 'en,de'}),
    'sgm': ('a.en.sgm', 'a.de.sgm', {}),
    'tmx': ('a.tmx', (), {'languages': ('en', 'de')}),
    'tmx-lines': ('lines.tmx', (), {}),
    'labelled': ('a.en', 'a.labels', {}),
}


@pytest.mark.parametrize('format', [*FORMATS, 'filtered'])
def test_every_format_is_read_with_its_options(corpus, format):
    paths, targets, options = FORMATS.get(format, ('a.en', (), {'clean': 'length:3:100:tokens'}))
    if format in FORMATS:
        options = options | {'format': format}
    read = ReadCorpus(corpus / paths, corpus / targets if targets else (), **options)
    sides = 1 if paths == 'a.en' and format != 'bitext' else 2
    texts = [text for pair in PAIRS for text in pair[:sides]]
    if format == 'filtered':
        texts = [text for text in texts if len(text.split()) > 2]
    words = [word for text in texts for word in text.split()]
    with pipeline() as running:
        counted = running | read | CountTokens('word')
        tokens = counted['tables'] | beam.FlatMap(lambda key_table: key_table[1].items())
        assert_that(tokens, equal_to([(word, words.count(word)) for word in set(words)]))


@pytest.mark.parametrize(
    'name',
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in SCHEMES],
)
def test_every_scheme_learns_the_bytes_of_the_command(corpus, tmp_path, name):
    scheme = name.split()[0]
    options, asked = SCHEMES[name]
    tokens = {key: options[key] for key in options if key in ('pre_tokenizer', 'preset')}
    path = tmp_path / 'mine.codes'
    with pipeline() as running:
        learned = (
            running
            | ReadCorpus(corpus / 'a.tsv', columns='0,1')
            | CountTokens(scheme, **tokens)
            | LearnVocabulary(scheme, path=path, **options)
        )
        assert_that(learned, equal_to([str(path)]))
    succeed('vocab', '--scheme', scheme, '--tsv', corpus / 'a.tsv', '--output',
            tmp_path / 'theirs.codes', *asked)  # fmt: skip
    assert path.read_bytes() == (tmp_path / 'theirs.codes').read_bytes()
    assert (tmp_path / 'mine.vocab').exists() == (name == 'bpe of subword-nmt')


@pytest.mark.parametrize('scheme', [pytest.param('subword', marks=pytest.mark.slow), 'bpe', 'byte'])
def test_one_pipeline_learns_and_encodes_the_bytes_of_the_command(corpus, tmp_path, scheme):
    options = {} if scheme == 'byte' else {'vocab_size': 290}
    with pipeline() as running:
        vocabulary = None
        if scheme != 'byte':
            counted = running | ReadCorpus(corpus / 'a.en', corpus / 'a.de') | CountTokens(scheme)
            vocabulary = counted | LearnVocabulary(scheme, path=tmp_path / 'vocabulary', **options)
        (
            running
            | 'Again' >> ReadCorpus(corpus / 'a.en', corpus / 'a.de')
            | EncodeBlocks(vocabulary, scheme, shards=2, seed=3)
            | WriteShards('cats', tmp_path / 'mine')
        )
    succeed('build', '--source', corpus / 'a.en', '--target', corpus / 'a.de', '--name', 'cats',
            '--scheme', scheme, '--shards', 2, '--seed', 3, '--output', tmp_path / 'theirs',
            *(['--shared-vocab', '--vocab-size', 290] if options else []))  # fmt: skip
    shards = sorted((tmp_path / 'mine').iterdir())
    assert len(shards) == 2
    for shard in shards:
        assert shard.read_bytes() == (tmp_path / 'theirs' / shard.name).read_bytes()


def encoded(read, encode, folder):
    """The shard of one pipeline."""
    with pipeline() as running:
        running | read | encode | WriteShards('cats', folder)
    [shard] = folder.iterdir()
    return shard.read_bytes()


def test_shards_of_many_buckets_may_share_a_folder(corpus, tmp_path, monkeypatch):
    jobs = [('en', 'train', 'cats'), ('de', 'dev', 'cats'), ('de', 'train', 'mats')]
    for folder, bucket_bytes in [('one', 16 << 20), ('many', 50)]:
        monkeypatch.setattr(encode_blocks, '_BUCKET_BYTES', bucket_bytes)
        with pipeline() as running:
            for language, split, name in jobs:
                (
                    running
                    | f'Read{name}{split}' >> ReadCorpus(corpus / f'a.{language}', split=split)
                    | f'Encode{name}{split}' >> EncodeBlocks(scheme='byte', shards=1)
                    | f'Write{name}{split}' >> WriteShards(name, tmp_path / folder)
                )
    for _, split, name in jobs:
        shard = f'{name}-{split}-00000-of-00001'
        expected = (tmp_path / 'one' / shard).read_bytes()
        assert len(list(read_records(expected, shard))) == len(PAIRS)
        assert (tmp_path / 'many' / shard).read_bytes() == expected
    assert len(os.listdir(tmp_path / 'many')) == len(jobs)  # the files of the buckets are gone


def test_shards_that_another_write_shards_of_the_pipeline_writes_are_refused(corpus, tmp_path):
    layout = [SplitShards('train', 1, 1), SplitShards('dev', 1, 1)]
    running = pipeline()

    def write(split, name, folder, label):
        blocks = running | f'Read{label}' >> ReadCorpus(corpus / 'a.en', split=split)
        encoded = blocks | f'Encode{label}' >> EncodeBlocks(scheme='byte', layout=layout)
        encoded | f'Write{label}' >> WriteShards(name, folder)

    write('train', 'cats', tmp_path / 'a', 'First')
    for split, name, folder in [
        ('dev', 'cats', 'a'),
        ('train', 'mats', 'a'),
        ('train', 'cats', 'b'),
    ]:
        write(split, name, tmp_path / folder, f'{split}{name}{folder}')
    with pytest.raises(InputError, match=r'writes the split train of cats to .*/a, and each would'):
        write('train', 'cats', tmp_path / 'b' / '..' / 'a', 'Again')


def write_indexed(corpus, folder, *jobs):
    with pipeline() as running:
        for language, split, name, seed in jobs:
            (
                running
                | f'Read{name}{split}' >> ReadCorpus(corpus / f'a.{language}', split=split)
                | f'Encode{name}{split}' >> EncodeBlocks(scheme='byte', shards=2, seed=seed)
                | f'Write{name}{split}' >> WriteShards(name, folder, index=True)
            )


def test_buckets_have_no_longer_names_than_shards(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(encode_blocks, '_BUCKET_BYTES', 50)
    end = '-train-00000-of-00001'
    name = 'x' * (os.pathconf(tmp_path, 'PC_NAME_MAX') - len(end))
    with pipeline() as running:
        (
            running
            | ReadCorpus(corpus / 'a.en')
            | EncodeBlocks(scheme='byte', shards=1)
            | WriteShards(name, tmp_path)
        )
    shard = (tmp_path / f'{name}{end}').read_bytes()
    assert len(list(read_records(shard, 'x'))) == len(PAIRS)


def listed_seed(folder):
    return json.loads((folder / 'index' / 'records.json').read_text())['seed']


@pytest.mark.parametrize('at_once', [True, False])
def test_datasets_that_share_a_folder_are_all_listed(corpus, tmp_path, at_once):
    jobs = [('en', 'train', 'cats', 3), ('de', 'dev', 'cats', 3), ('de', 'train', 'mats', 3)]
    for part in [jobs] if at_once else [[job] for job in jobs]:
        write_indexed(corpus, tmp_path / 'd', *part)
    dataset = open_dataset(tmp_path / 'd')
    assert list(dataset.splits) == ['cats-train', 'dev', 'mats-train']
    decode = find_scheme('byte').fixed.decode
    for language, split in (('en', 'cats-train'), ('de', 'dev'), ('de', 'mats-train')):
        texts = [decode(row['targets'][:-1].tolist()) for row in dataset.examples(split)]
        assert sorted(texts) == sorted((corpus / f'a.{language}').read_text().splitlines())
    assert listed_seed(tmp_path / 'd') == 3


def test_a_dataset_that_is_written_again_is_listed_once(corpus, tmp_path):
    for seed in (1, 2):
        write_indexed(corpus, tmp_path, ('en', 'train', 'cats', seed))
    assert open_dataset(tmp_path).splits['train'].examples == len(PAIRS)
    assert listed_seed(tmp_path) == 2
    write_indexed(corpus, tmp_path, ('en', 'dev', 'cats', 1))
    assert listed_seed(tmp_path) is None  # since the splits have different ones


def test_a_shard_that_is_indexed_again_leaves_the_seed_of_the_others(corpus, tmp_path):
    write_indexed(corpus, tmp_path, ('en', 'train', 'cats', 3), ('en', 'dev', 'cats', 3))
    succeed('index', tmp_path / 'cats-dev-00000-of-00002')
    assert listed_seed(tmp_path) == 3


def test_what_write_shards_returns_has_been_written(corpus, tmp_path):
    with pipeline() as running:
        written = (
            running
            | ReadCorpus(corpus / 'a.en')
            | EncodeBlocks(scheme='byte', shards=2)
            | WriteShards('cats', tmp_path, index=True)
        )
        sizes = written | beam.Map(lambda file: (tmp_path / file.name).stat().st_size - file.bytes)
        assert_that(sizes, equal_to([0] * 4))


def test_counts_are_written_where_the_driver_is(corpus, tmp_path, monkeypatch):
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path)
    write = WriteCounts(['counts'])
    monkeypatch.chdir('elsewhere')
    with pipeline() as running:
        (running | ReadCorpus(corpus / 'a.en') | CountTokens())['tables'] | write
    assert [path.name for path in tmp_path.iterdir() if any(path.iterdir())] == ['counts']


def test_a_vocabulary_that_exists_encodes_each_side(corpus, tmp_path):
    for language in ('en', 'de'):
        succeed('vocab', '--text', corpus / f'a.{language}', '--vocab-size', 60, '--output',
                tmp_path / language)  # fmt: skip
    by_side = {'inputs': tmp_path / 'en', 'targets': tmp_path / 'de'}
    read = ReadCorpus(corpus / 'a.tsv', format='tsv')
    mine = encoded(read, EncodeBlocks(by_side, shards=1), tmp_path / 'mine')
    succeed('encode', '--tsv', corpus / 'a.tsv', '--name', 'cats', '--shards', 1, '--output',
            tmp_path / 'theirs', '--vocab', tmp_path / 'en', tmp_path / 'de')  # fmt: skip
    assert mine == (tmp_path / 'theirs' / 'cats-train-00000-of-00001').read_bytes()


def test_shards_of_any_seed_are_read_in_the_order_of_the_corpus(tmp_path):
    (tmp_path / 'letters').write_text('\n'.join('abcdefghijklmnopqrstuvwxyz'))
    with pipeline() as running:
        encoded = running | ReadCorpus(tmp_path / 'letters') | EncodeBlocks(scheme='byte', seed=7)
        encoded | WriteShards('letters', tmp_path / 'd', index=True)

    def first_ids():
        asked = {'tokens_per_batch': 1, 'pad': 0, 'shuffle': 'corpus'}
        batches = open_dataset(tmp_path / 'd').batches('train', **asked)
        return [batch['targets'].item(0) for batch in batches]

    ids = first_ids()
    assert len(ids) == 26 and ids == sorted(ids)
    records = tmp_path / 'd' / 'index' / 'records.json'
    fields = json.loads(records.read_text())
    assert fields.pop('seed') == 7
    records.write_text(json.dumps(fields))
    with pytest.raises(InputError, match='does not record the seed of its order keys'):
        first_ids()


def test_a_folder_encodes_as_the_command_does(tmp_path):
    folder, text = tmp_path / 'bert', tmp_path / 'text'
    folder.mkdir()
    pieces = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'The', 'the', 'cat', 's', '##at', 'sat']
    (folder / 'vocab.txt').write_text(''.join(f'{piece}\n' for piece in pieces))
    (folder / 'tokenizer_config.json').write_text(
        '{"tokenizer_class": "BertTokenizer", "do_lower_case": false}'
    )
    text.write_text('The cat sat\nthe Cat\n')
    succeed('encode', '--text', text, '--name', 'cats', '--shards', 1, '--vocab', folder,
            '--output', tmp_path / 'theirs')  # fmt: skip
    # So does the dataset, whose tokenizer is in it.
    for path in (folder, tmp_path / 'theirs'):
        transform = EncodeBlocks(path, 'wordpiece', shards=1)
        mine = encoded(ReadCorpus(text), transform, tmp_path / f'of {path.name}')
        assert mine == (tmp_path / 'theirs' / 'cats-train-00000-of-00001').read_bytes()
    rows = [parse_features(record)['targets'] for record in read_records(mine, 'x')]
    assert sorted(rows) == [[2, 4, 6, 9, 3], [2, 5, 1, 3]]
    # What is asked for goes before it.
    assert EncodeBlocks(folder, 'wordpiece').scheme.lower_case is False
    assert EncodeBlocks(folder, 'wordpiece', lower_case=True).scheme.lower_case is True


def test_folders_of_two_sides_state_the_same_options(tmp_path):
    folders = {'inputs': tmp_path / 'cased', 'targets': tmp_path / 'uncased'}
    for folder, lowers in zip(folders.values(), ('false', 'true'), strict=True):
        folder.mkdir()
        (folder / 'vocab.txt').write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncat\n')
        (folder / 'tokenizer_config.json').write_text(
            f'{{"tokenizer_class": "BertTokenizer", "do_lower_case": {lowers}}}'
        )
    with pytest.raises(InputError, match='--lower-case is False for .*/cased/vocab.txt and True'):
        EncodeBlocks(folders, 'wordpiece')
    assert EncodeBlocks(folders, 'wordpiece', lower_case=False).scheme.lower_case is False


@pytest.mark.parametrize('sides', [('inputs', 'targets'), ('targets', 'inputs')])
@pytest.mark.parametrize('file', ['bert/vocab.txt', 'plain/vocab.txt'])
def test_a_file_takes_the_options_that_the_folder_of_the_other_side_states(tmp_path, sides, file):
    for name in ('bert', 'plain'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'vocab.txt').write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncat\n')
    (tmp_path / 'bert' / 'tokenizer_config.json').write_text(
        '{"tokenizer_class": "BertTokenizer", "do_lower_case": false}'
    )
    by_side = dict(zip(sides, (tmp_path / 'bert', tmp_path / file), strict=True))
    assert EncodeBlocks(by_side, 'wordpiece').scheme.lower_case is False


@pytest.mark.parametrize(
    ('make', 'error', 'reason'),
    [
        (lambda: ReadCorpus('missing'), InputError, 'missing does not exist'),
        (lambda: ReadCorpus('a.en', format='jsnl'), InputError, "did you mean 'jsonl'"),
        (lambda: ReadCorpus('a.en', field='x', format='jsonl'), TypeError, "did you mean 'fields'"),
        (lambda: ReadCorpus('a.tsv', columns='0,0'), InputError, 'names one column twice'),
        (lambda: ReadCorpus('a.tsv', format='tsv', keep_tabs='yes'), TypeError, 'true or false'),
        (lambda: ReadCorpus('a.en', format='bitext'), InputError, 'give targets'),
        (lambda: ReadCorpus('a.en', 'a.de', format='text'), InputError, 'give paths only'),
        (lambda: ReadCorpus('a.en', clean='lenght:1:2'), InputError, 'length'),
        (lambda: CountTokens('wordpeice'), InputError, "did you mean 'wordpiece'"),
        (lambda: CountTokens('byte'), InputError, 'learns nothing'),
        (lambda: CountTokens(3), TypeError, 'name or a Scheme'),
        (lambda: CountTokens('bpe', pretokenizer='gpt2'), TypeError, "did you mean 'pre_tokenizer'"),
        (lambda: CountTokens('bpe', pre_tokenizer='gpt-2'), InputError, "did you mean 'gpt2'"),
        (lambda: CountTokens('wordpiece', lower_case='no'), TypeError, 'true or false'),
        (lambda: CountTokens('subword', lower_case=True), TypeError, 'no options at all'),
        (lambda: LearnVocabulary('bpe', path='x'), InputError, 'vocab-size is missing'),
        (lambda: LearnVocabulary('wordpiece', path='x'), TypeError, 'no vocab_size'),
        (lambda: LearnVocabulary('bpe', path='x', vocab_size=0), InputError, 'whole number'),
        (lambda: LearnVocabulary('word', path='x', vocab_size=[3]), TypeError, 'single word'),
        (lambda: LearnVocabulary(path='x', vocab_size=9, learner='beam'), InputError, 'pipelines.vocab'),
        (lambda: LearnVocabulary(path='tokbeam.json', vocab_size=9), InputError, 'manifest'),
        (lambda: EncodeBlocks('missing'), InputError, 'missing does not exist'),
        (lambda: EncodeBlocks(), TypeError, 'vocabulary is missing'),
        (lambda: EncodeBlocks('a.en', 'byte'), InputError, 'no vocabulary files'),
        (lambda: EncodeBlocks('a.en'), InputError, 'a.en'),
        (lambda: WriteShards('a/b', 'x'), InputError, 'file name'),
        (lambda: WriteCounts('counts'), TypeError, "'counts'; give a list"),
    ],
)  # fmt: skip
def test_mistakes_are_told_when_a_transform_is_made(corpus, monkeypatch, make, error, reason):
    monkeypatch.chdir(corpus)
    with pytest.raises(error, match=reason):
        make()


def test_mistakes_of_a_pipeline_are_told_when_it_is_made(corpus, tmp_path):
    read = ReadCorpus(corpus / 'a.en')
    counted = pipeline() | read | CountTokens('bpe', pre_tokenizer='cl100k')
    scheme = find_scheme('bpe', pre_tokenizer='cl100k')
    learning = {'vocab_size': 300, 'path': tmp_path / 'x'}
    with pytest.raises(InputError, match='same scheme'):
        counted | LearnVocabulary('bpe', **learning)
    with pytest.raises(InputError, match='not one of its 1 groups'):
        counted | 'Other' >> LearnVocabulary(scheme, group=1, **learning)
    with pytest.raises(TypeError, match='give splits='):
        pipeline() | ReadCorpus(corpus / 'a.en') | beam.Filter(bool) | CountTokens()
    other = ReadCorpus(corpus / 'a.de', clean='length:3:100:tokens')
    by_element = functools.partial(CountTokensByElement, (0,))
    for transform in (CountTokens, by_element, functools.partial(EncodeBlocks, scheme='byte')):
        with pytest.raises(InputError, match='several ReadCorpus read the split train'):
            pipeline() | beam.Create([]) | transform(splits=read.splits + other.splits)
    for groups in (((0, 1),), ((0,), (-1,))):
        with pytest.raises(
            InputError, match=r'CountTokens takes side -?1, .*the sides 0 \(targets\)'
        ):
            pipeline() | ReadCorpus(corpus / 'a.en') | CountTokens(groups=groups)
    with pytest.raises(InputError, match='CountTokensByElement takes side -1'):
        pipeline() | ReadCorpus(corpus / 'a.en') | CountTokensByElement((-1,), read.splits)
    features = [EncodedFeature(Feature('inputs', 1), '')]
    with pytest.raises(InputError, match='EncodeBlocks takes side 1'):
        pipeline() | ReadCorpus(corpus / 'a.en') | EncodeBlocks(scheme='byte', features=features)
    layout = [SplitShards('train', 1, 1)]
    with pytest.raises(InputError, match='layout of EncodeBlocks has no dev'):
        encoding = EncodeBlocks(scheme='byte', layout=layout)
        pipeline() | ReadCorpus(corpus / 'a.en', split='dev') | encoding
    with pytest.raises(TypeError, match='give layout='):
        pipeline() | beam.Create([]) | WriteShards('x', tmp_path)
    pairs = pipeline() | ReadCorpus(corpus / 'a.en', corpus / 'a.de')
    by_side = pairs | CountTokens(groups=((0,), (1,)))
    with pytest.raises(InputError, match='2 groups, and WriteCounts has folders for 1'):
        by_side['tables'] | WriteCounts([tmp_path])
    with pytest.raises(InputError, match='give one for each'):
        encoding = EncodeBlocks(scheme='byte')
        encoding._paths = {'inputs': ''}
        pipeline() | ReadCorpus(corpus / 'a.en', corpus / 'a.de') | encoding


def test_the_end_of_a_corpus_is_the_last_line_that_was_counted(tmp_path):
    (tmp_path / 'a').write_text('the cat\n' + 'mat ' * 300 + '\n')
    for limit, last in [(1_000, 'cat'), (2_000, 'mat')]:
        read = ReadCorpus(tmp_path / 'a', max_line_bytes=limit)
        counted = pipeline() | read | CountTokens('unigram', on_error='skip')
        [token] = counted['tables'].corpus_end.last_tokens(1, (0,))
        assert token.decode().strip('▁\0') == last


def test_the_end_of_joined_corpora_is_that_of_the_last_with_its_limit(tmp_path):
    (tmp_path / 'a').write_text('the cat\n')
    (tmp_path / 'b').write_text('the hat\n' + 'mat ' * 300 + '\n')
    first = ReadCorpus(tmp_path / 'a', split='train')
    second = ReadCorpus(tmp_path / 'b', split='dev', max_line_bytes=1_000)
    running = pipeline()
    blocks = (running | 'a' >> first, running | 'b' >> second) | beam.Flatten()
    counting = CountTokens('unigram', splits=(*first.splits, *second.splits), on_error='skip')
    [token] = (blocks | counting)['tables'].corpus_end.last_tokens(1, (0,))
    assert token.decode().strip('▁\0') == 'hat'


def test_an_empty_corpus_is_an_error_of_the_learner(tmp_path):
    (tmp_path / 'a').write_text('\n\n')
    with pytest.raises(Exception, match='nothing to learn from'), pipeline() as running:  # noqa: B017
        counted = running | ReadCorpus(tmp_path / 'a') | CountTokens()
        counted | LearnVocabulary(vocab_size=300, path=tmp_path / 'x')
