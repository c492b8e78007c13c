"""`--scheme unigram`, from text to a model's file, gives what SentencePiece's trainer gives."""

import io
import random
import struct

import apache_beam as beam
import pytest
from dataset_files import manifest_of
from generated_text import english_lines
from hypothesis import example, given
from hypothesis import strategies as st
from jobs import succeed, write
from sentencepiece_words import words_of

import pipelines
import tokcore
from tokcore.foreign_tokenizers.sentencepiece import message_fields, read_model
from tokcore.foreign_tokenizers.sentencepiece_files import model_file
from tokcore.foreign_tokenizers.sentences import check_words
from tokcore.learn import count_tokens
from tokcore.schemes import find_scheme

sentencepiece = pytest.importorskip('sentencepiece', '0.2.3')

WORDS = [
    'the', 'cat', 'sat', 'Ünder', 'e\u0301te', 'sonuc\u0327', '漢字かな', '日本', '<s>', '<unk>x', '</s', '▁', '\u200b', '.', '1',
    'Ａ', '👍🏽', 'x\0y', '<x>',
]  # fmt: skip
LINES = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=5).map(' '.join)
    | st.sampled_from(['', ' ', '\u3000', '\u200b ', '\x01', 'a ▅ b', 'long ' * 900]),
    max_size=25,
)
CONTROL, USER = ('<c>', '<x>'), ('<u>', 'th')


def corpus_lines():
    """Lines with all that the trainer treats in its own way; the last sentences are empty."""
    dice = random.Random(62)
    lines = [line or 'empty' for line in english_lines(300, seed=5)]
    lines += [' '.join(dice.choices(WORDS, k=4)) for _ in range(60)]
    lines += [*WORDS[:9], 'a ▅ b', 'x' * 4200] * 2
    dice.shuffle(lines)
    # No sentence of the first file is empty, so that the last word is in the second one's counts.
    return [*lines, '', ' ', 'and the last  one', '', ' ', '\u200b', 'x' * 4200, '▅', ' ']


LINES_OF_CORPUS = corpus_lines()


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    """A corpus in two files."""
    folder = tmp_path_factory.mktemp('corpus')
    parts = LINES_OF_CORPUS[:200], LINES_OF_CORPUS[200:]
    return [
        write(folder / f'{number}.txt', ''.join(f'{line}\n' for line in part).encode())
        for number, part in enumerate(parts)
    ]


@pytest.mark.parametrize('rule', ['nmt_nfkc', 'identity'])
@given(lines=LINES, cut=st.integers(0, 25))
@example(lines=['the cat', ' ', 'sat', ' ', 'a', '', ' '], cut=3)
@example(lines=['a', 'b ▅', 'c', '\u200b'], cut=1)
def test_words_are_those_of_the_trainer(tmp_path_factory, rule, lines, cut):
    scheme = find_scheme('unigram', normalization_rule_name=rule)
    path = tmp_path_factory.mktemp('lines') / 'lines.txt'
    path.write_bytes(''.join(f'{line}\n' for line in lines[cut:]).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('tokcore.learn._BLOCK_BYTES', 20)  # several blocks of texts
        found = count_tokens(scheme, lines[:cut], [path])
    plain = [token for line in lines for token in scheme.tokens(line)]
    assert dict(found.items()) == {token: plain.count(token) for token in plain}
    if any(scheme.tokens(line) not in ([], ['\0']) for line in lines):
        check_words(found)
        expected = words_of(lines, rule)
        words = {token: count for token, count in found.items() if token != '\0'}
        assert words == dict(expected.items())
        assert found.last_word == expected.last_word
    else:
        assert found.last_word == b''


def trained(paths, vocab_size, **options):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=','.join(map(str, paths)), model_writer=written, vocab_size=vocab_size, minloglevel=2, **options
    )  # fmt: skip
    return written.getvalue()


def without_paths(model):
    """All fields of a model but the names of its input and output."""
    return [
        (number, value)
        if number != 2
        else [(key, each) for key, each, _ in message_fields(value, '') if key > 2]
        for number, value, _ in message_fields(model, 'a model')
    ]


OPTIONS = {
    'one thread': {'num_threads': 1},
    'two threads': {'num_threads': 2},
    'sixteen threads': {'num_threads': 16},
    'bytes, identity': {
        'num_threads': 16, 'byte_fallback': True, 'normalization_rule_name': 'identity', 'vocab_size': 700,
    },
    'symbols': {
        'num_threads': 16, 'control_symbols': ','.join(CONTROL), 'user_defined_symbols': ','.join(USER),
    },
    'learner': {
        'num_threads': 2, 'character_coverage': 0.98, 'shrinking_factor': 0.5, 'num_sub_iterations': 3,
        'seed_sentencepiece_size': 0, 'max_sentencepiece_length': 6, 'max_sentence_length': 60,
        'hard_vocab_limit': False, 'vocab_size': 1000,
    },
    'few seeds': {'num_threads': 16, 'seed_sentencepiece_size': 600, 'vocab_size': 300},
}  # fmt: skip


def as_typed(options):
    for name, value in options.items():
        flag = '--' + name.replace('_', '-')
        if isinstance(value, bool):
            yield flag if value else flag.replace('--', '--no-', 1)
        else:
            yield from (flag, value)


@pytest.mark.parametrize('name', OPTIONS)
def test_the_command_writes_the_model_of_the_trainer(corpus, tmp_path, name):
    options = {'vocab_size': 400, **OPTIONS[name]}
    path = tmp_path / 'unigram.model'
    command = ['vocab', '--scheme', 'unigram', '--text', *corpus, *as_typed(options)]
    succeed(*command, '--output', path, '@item-size', 997)
    theirs = trained(corpus, **options)
    model = path.read_bytes()
    assert without_paths(model) == without_paths(theirs)
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokenizer = tokcore.load_tokenizer(path)
    assert tokenizer.vocab_size == library.vocab_size()
    lines = [line for line in LINES_OF_CORPUS if '\0' not in line]
    assert [tokenizer.encode(line) for line in lines] == library.encode(lines)


@pytest.fixture(scope='module')
def model(corpus):
    return trained(corpus, vocab_size=400, num_threads=2)


LEARNING = ['--vocab-size', 400, '--num-threads', 2]


def test_counts_know_the_last_word_and_merged_ones_that_of_the_last(corpus, model, tmp_path):
    counts = ['count', '--scheme', 'unigram', '@item-size', 300, '--workers', 2]
    succeed(*counts, '--text', *corpus, '--output', tmp_path / 'all')
    for number, path in enumerate(corpus):
        succeed(*counts, '--text', path, '--output', tmp_path / str(number))
    succeed('count', '--counts', tmp_path / '0', tmp_path / '1', '--output', tmp_path / 'sum')
    tally = manifest_of(tmp_path / 'all')['lines'][0]
    assert tally['filtered'] == {
        'has_u_2585': 3,
        'longer_than_max_sentence_length': 3,
    }
    assert tally['empty'] == 2
    for number, folders in enumerate([['all'], ['sum'], ['0', '1']]):
        path = tmp_path / f'{number}.model'
        of = [tmp_path / folder for folder in folders]
        succeed('vocab', '--scheme', 'unigram', '--counts', *of, *LEARNING, '--output', path)
        assert without_paths(path.read_bytes()) == without_paths(model)


def test_whole_factors_are_those_of_files_that_are_read_again(corpus, tmp_path):
    # Empty sentences would change places with others than in the files.
    lines = [line for line in LINES_OF_CORPUS if line.strip(' \u200b\u3000')]
    parts = [
        write(tmp_path / f'{name}.txt', ''.join(f'{line}\n' for line in part).encode())
        for name, part in (('a', lines[:150]), ('b', lines[150:]))
    ]
    for path in parts:
        succeed('count', '--scheme', 'unigram', '--text', path, '--output', tmp_path / path.stem)
    weighted = ['--counts', f'{tmp_path}/a=2x', f'{tmp_path}/b=3x']
    model = tmp_path / 'weighted.model'
    succeed('vocab', '--scheme', 'unigram', *weighted, *LEARNING, '--output', model)
    theirs = trained([*2 * parts[:1], *3 * parts[1:]], vocab_size=400, num_threads=2)
    assert without_paths(model.read_bytes()) == without_paths(theirs)


def test_a_build_a_pipeline_and_a_call_have_the_same_model(corpus, model, tmp_path):
    succeed(
        'build', '--scheme', 'unigram', '--text', *corpus, *LEARNING, '--name', 'x', '--shards', 1,
        '--output', tmp_path / 'built',
    )  # fmt: skip
    built = (tmp_path / 'built' / 'vocab.x.400.model').read_bytes()
    assert without_paths(built) == without_paths(model)
    options = {'vocab_size': 400, 'num_threads': 2}
    learned = tokcore.learn_vocabulary(LINES_OF_CORPUS, 'unigram', **options)
    assert learned.vocabulary.dump() == built
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        counted = pipeline | pipelines.ReadCorpus(corpus) | pipelines.CountTokens('unigram')
        path = tmp_path / 'unigram.model'
        _ = counted | pipelines.LearnVocabulary('unigram', path=path, **options)
    assert path.read_bytes() == built
    dataset = tokcore.open_dataset(tmp_path / 'built')
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    rows = sorted(row['targets'].tolist() for row in dataset.examples('train'))
    assert rows == sorted(library.encode([line for line in LINES_OF_CORPUS if line.strip()]))


def test_both_sides_of_pairs_are_one_text_after_the_other(tmp_path):
    source, target = (english_lines(120, seed=seed) for seed in (1, 2))
    source[-1], target[7], target[-2] = 'the end of it', '\u200b', 'x ▅'
    paths = [
        write(tmp_path / name, ''.join(f'{line}\n' for line in lines).encode())
        for name, lines in (('source', source), ('target', target))
    ]
    succeed(
        'build', '--scheme', 'unigram', '--source', paths[0], '--target', paths[1], '--shared-vocab',
        '--vocab-size', 120, '--name', 'x', '--shards', 1, '--output', tmp_path / 'out',
    )  # fmt: skip
    del source[-2], target[-2]  # a pair is left out if the trainer would leave out one of its lines
    both = write(tmp_path / 'both', ''.join(f'{line}\n' for line in source + target).encode())
    built = (tmp_path / 'out' / 'vocab.x.120.model').read_bytes()
    assert without_paths(built) == without_paths(trained([both], 120, num_threads=16))


@pytest.mark.parametrize('options', [{}, OPTIONS['bytes, identity'], OPTIONS['symbols']], ids=str)
def test_a_model_that_is_read_and_written_again_has_the_same_bytes(corpus, options):
    data = trained(corpus, **{'vocab_size': 400, **options})
    pieces, _ = read_model(data, '')
    specs = {
        number: [(key, as_number(value)) for key, value, _ in message_fields(message, '')]
        for number, message, _ in message_fields(data, '')
        if number in (2, 3)
    }
    assert model_file(pieces, specs[2], specs[3]) == data


def as_number(value):
    return struct.unpack('<f', value)[0] if isinstance(value, bytes) and len(value) == 4 else value


def test_tokenizers_and_transformers_open_the_folder(corpus, tmp_path):
    tokenizers = pytest.importorskip('tokenizers')
    transformers = pytest.importorskip('transformers')
    path = tmp_path / 'x.model'
    command = ['vocab', '--scheme', 'unigram', '--text', *corpus, '--output', path]
    succeed(*command, *LEARNING, '--user-defined-symbols', 'th,<u>', '--control-symbols', '<c>')
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    folder = tmp_path / 'x.model.tokenizer'
    opened = tokenizers.Tokenizer.from_file(str(folder / 'tokenizer.json'))
    auto = transformers.AutoTokenizer.from_pretrained(folder)
    assert (auto.unk_token, auto.bos_token, auto.eos_token) == ('<unk>', '<s>', '</s>')
    lines = [line for line in english_lines(200, seed=9) if line] + [
        '  a  the b ', '\u3000th', 'sonuc\u0327', 'ｗｉｄｅ ①', 'e\u0301t\u00e9\u200b', 'a<u>b 漢字', '',
    ]  # fmt: skip
    ids = library.encode(lines)
    assert [each.ids for each in opened.encode_batch(lines, add_special_tokens=False)] == ids
    assert [auto.encode(line, add_special_tokens=False) for line in lines] == ids
    known = [line for line, of_line in zip(lines, ids, strict=True) if 0 not in of_line]
    assert [opened.decode(library.encode(line)) for line in known] == library.decode(
        library.encode(known)
    )
    vocab = (folder / 'tokenizer.vocab').read_text('utf-8').split('\n')
    assert [line.split('\t')[0] for line in vocab[:-1]] == [
        library.id_to_piece(id_) for id_ in range(400)
    ]


def test_a_dataset_is_encoded_with_a_model_that_has_symbols(corpus, tmp_path):
    path, folder = tmp_path / 'x.model', tmp_path / 'x'
    symbols = ['--user-defined-symbols', 'th,<u>', '--control-symbols', '<c>', '--byte-fallback']
    learning = ['--vocab-size', 700, '--num-threads', 2]
    succeed(
        'vocab', '--scheme', 'unigram', '--text', *corpus, *learning, *symbols, '--output', path
    )
    encode = ['encode', '--text', *corpus, '--vocab', path, '--name', 'x', '--shards', 2]
    succeed(*encode, '--output', folder, '--target-prefix', '<c> ')
    tokenizer = tokcore.load_tokenizer(folder)
    symbol = tokenizer.id_of('<c>')
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    rows = [row['targets'].tolist() for row in tokcore.open_dataset(folder).examples('train')]
    assert all(row[0] == symbol for row in rows)
    lines = [line for line in LINES_OF_CORPUS if line.strip() and '\0' not in line]
    assert {tuple(row[1:]) for row in rows} >= {tuple(library.encode(line)) for line in lines}


def test_the_vocab_file_is_the_trainers(corpus, tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        input=','.join(map(str, corpus)), model_prefix=str(tmp_path / 'theirs'), vocab_size=400,
        num_threads=2, minloglevel=2,
    )  # fmt: skip
    path = tmp_path / 'x.model'
    succeed('vocab', '--scheme', 'unigram', '--text', *corpus, *LEARNING, '--output', path)
    ours = tmp_path / 'x.model.tokenizer' / 'tokenizer.vocab'
    assert ours.read_bytes() == (tmp_path / 'theirs.vocab').read_bytes()
