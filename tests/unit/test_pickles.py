"""What is public goes to other processes: each class of it can be pickled, and a copy does the same."""

import inspect
import pickle
import sys
import typing
from functools import partial

import pytest
from numba.core.dispatcher import Dispatcher

import pipelines
import tokcore
from pipelines import (
    BuildJob,
    CountTokens,
    CountTokensByElement,
    EncodeBlocks,
    EncodedFeature,
    LearnVocabulary,
    ReadCorpus,
    Result,
    SplitShards,
    WriteCounts,
    WriteShards,
)
from pipelines.transforms.encode_blocks import BlockEncoder
from tokcore import (
    Block,
    BpeTokenizer,
    ByteTokenizer,
    CorpusFile,
    Encoding,
    Feature,
    InputError,
    MemoryLearner,
    Scheme,
    SearchResult,
    Split,
    SubwordTextEncoder,
    Tokenizer,
    TokenTable,
    WordPieceTokenizer,
    WordTokenizer,
)
from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary, TokenizerParts
from tokcore.corpus.corpus import BlockText
from tokcore.corpus.declarations import PlainText
from tokcore.encoding import encoder as encoding_encoder
from tokcore.encoding.kernels import encode_rows
from tokcore.learning.pruned_trie_kernels import split_frontier
from tokcore.schemes import find_scheme
from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.word.scheme import WordVocabulary
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

TEXT = 'the cat <|end|> sat'

FILE = CorpusFile('/corpus/a', 'a', 8, False)
SPLIT = Split('train', PlainText(), ((FILE,),))
BLOCK = Block('train', PlainText(), 0, (BlockText(0, b'the cat\n'),))
LAYOUT = (SplitShards('train', 1, 1),)
FEATURE = EncodedFeature(Feature('targets', 0), '')
TABLE = TokenTable.from_items([('the', 3), ('cat', 2)])


def subword():
    letters = 'abcdefghijklmnopqrstuvwxyz<|> _\\;0123456789'
    return SubwordTextEncoder(['<pad>_', '<EOS>_', 'the_', *letters])


def wordpiece(**options):
    vocabulary = WordPieceVocabulary(['[UNK]', '[CLS]', '[SEP]', 'the', 'c', '##at', '<', '>', '|'])
    return WordPieceTokenizer(vocabulary, **options)


def word(**options):
    return WordTokenizer(WordVocabulary(['<unk>', '<s>', '</s>', 'the', 'cat', 'sat']), **options)


def bpe(form=None, **options):
    characters = sorted(BYTE_TO_CHARACTER[byte] for byte in range(256))
    entries = {piece: id_ for id_, piece in enumerate([*characters, 'th', 'the'])}
    vocabulary = BpeVocabulary(
        entries,
        (('t', 'h'), ('th', 'e')),
        (AddedToken(300, '<|end|>'), AddedToken(301, 'at', special=False)),
        TokenizerParts.of(form=form),
    )
    return BpeTokenizer(vocabulary, **options)


TOKENIZERS = {
    'subword': subword,
    'wordpiece': wordpiece,
    'wordpiece of the paper': partial(wordpiece, normalizer='bert-original'),
    'wordpiece with special tokens': partial(wordpiece, allow_special_tokens=True),
    'bpe': bpe,
    'bpe of normal forms': partial(bpe, 'NFC'),
    'bpe with special tokens': partial(bpe, allow_special_tokens=True),
    'bpe of normal forms with special tokens': partial(bpe, 'NFC', allow_special_tokens=True),
    'word': word,
    'word that stops': partial(word, unknown='stop'),
    'byte': ByteTokenizer,
}

VALUES = (
    BLOCK, FILE, SPLIT, FEATURE, LAYOUT[0], Feature('inputs', 1, 'to: '),
    SearchResult(('a_', 'b_'), 3, ((3, 2),), ((3, 2), (2, 9))),
)  # fmt: skip


def transforms(folder):
    (folder / 'a').write_bytes(b'the cat\n')
    return (
        CountTokens(groups=((0,),), splits=(SPLIT,)),
        CountTokensByElement((0,), (SPLIT,)),
        EncodeBlocks(features=(FEATURE,), splits=(SPLIT,), layout=LAYOUT),
        LearnVocabulary(vocab_size=300, path='vocabulary'),
        ReadCorpus(str(folder / 'a')),
        WriteCounts(('counts',)),
        WriteShards('x', 'shards', LAYOUT),
    )


def copy_of(value):
    return pickle.loads(pickle.dumps(value))


def compiled_forms(kernel):
    """The number of types that a kernel is compiled for; perhaps none is compiled at all."""
    return len(getattr(kernel, 'signatures', ()))


def all_compiled_forms():
    """For each kernel of the package the number of types that it is compiled for."""
    modules = [module for name, module in [*sys.modules.items()] if name.startswith('tokcore.')]
    return {
        (module.__name__, name): compiled_forms(value)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher)
    }


@pytest.mark.parametrize('name', TOKENIZERS)
def test_a_copy_of_a_tokenizer_compiles_nothing_for_long_tokens(monkeypatch, name):
    monkeypatch.setattr(encoding_encoder, 'LONG_ROW_BYTES', 4)
    monkeypatch.setattr(encoding_encoder, 'LONG_TOKEN_BYTES', 2)
    tokenizer, text = TOKENIZERS[name](), 'the cat sat'
    ids = tokenizer.encode(text)
    compiled = all_compiled_forms()
    assert copy_of(tokenizer).encode(text) == ids
    assert all_compiled_forms() == compiled


@pytest.mark.parametrize('is_used', [False, True], ids=['new', 'used'])
@pytest.mark.parametrize('name', TOKENIZERS)
def test_a_copy_of_a_tokenizer_gives_the_same_ids(name, is_used):
    tokenizer = TOKENIZERS[name]()
    known = 'the cat sat' if name == 'word that stops' else TEXT
    if is_used:
        tokenizer.encode(known)
        tokenizer.encode_batch([known, known])
        tokenizer.encode_with_offsets(known)
    copy = copy_of(tokenizer)
    ids = tokenizer.encode(known)
    assert ids
    if name == 'word that stops':
        with pytest.raises(ValueError, match='dog'):
            copy_of(tokenizer).encode('the dog')
    compiled = compiled_forms(encode_rows)
    assert copy.encode(known) == ids
    assert compiled_forms(encode_rows) == compiled
    assert copy.decode(ids) == tokenizer.decode(ids)
    assert copy_of(copy).encode(known) == ids


def test_a_copy_of_a_value_is_equal():
    assert [*map(copy_of, VALUES)] == [*VALUES]
    assert list(copy_of(TABLE).items()) == list(TABLE.items())
    copy = copy_of(InputError('a: no such file; check the path'))
    assert isinstance(copy, InputError) and str(copy) == 'a: no such file; check the path'


@pytest.mark.parametrize('is_used', [False, True], ids=['new', 'used'])
def test_a_copy_of_a_learner_learns_the_same(is_used):
    learner = MemoryLearner(TABLE)
    if is_used:
        learner.build(2)
    copy = copy_of(learner)
    learned = list(learner.build(2))
    compiled = compiled_forms(split_frontier)
    assert list(copy.build(2)) == learned
    assert compiled_forms(split_frontier) == compiled


def test_a_copy_of_a_transform_has_its_fields(tmp_path):
    for transform in transforms(tmp_path):
        copy = copy_of(transform)
        assert type(copy) is type(transform)
        assert vars(copy).keys() == vars(transform).keys()
        for name in transform.__dict__.keys() - {'_learned'}:
            assert getattr(copy, name) == getattr(transform, name)


def test_a_block_encoder_can_be_pickled_after_it_was_loaded():
    encoder = BlockEncoder((FEATURE,), (SPLIT,), 0, 'stop', find_scheme('byte'))
    rows = encoder.load().encode(BLOCK).rows
    copied = copy_of(encoder).load().encode(BLOCK).rows
    assert copied.records.tobytes() == rows.records.tobytes() and len(rows) == 1


def test_every_public_class_is_among_these(tmp_path):
    public = {
        value
        for package in (tokcore, pipelines)
        for value in (getattr(package, name) for name in package.__all__)
        if inspect.isclass(value)
    }
    tried = {type(make()) for make in TOKENIZERS.values()}
    tried |= {*map(type, VALUES), *map(type, transforms(tmp_path))}
    not_sent = {Scheme, Tokenizer, Encoding, Result, BuildJob}
    public = {kind for kind in public if not typing.is_typeddict(kind)}
    assert public == tried | not_sent | {TokenTable, MemoryLearner, InputError}
