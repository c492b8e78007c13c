"""Vocabularies as other tools' files: opened and proved by the tools, or refused by a sentence."""

import base64
import io
import json
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.cli.main import main
from pipelines.export import exporting
from pipelines.export.exporting import exported_files, sample_lines
from tokcore.bpe.codes import NmtVocabulary
from tokcore.bpe.options import BpeRules
from tokcore.bpe.scheme import BpeScheme
from tokcore.bpe.trainer import learn_merges
from tokcore.bpe.vocabulary import BpeVocabulary, TokenizerParts
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.scheme import PretrainedScheme
from tokcore.text.patterns import DEFINITIONS
from tokcore.tokenizers import BpeTokenizer, tokenizer_of
from tokcore.word.scheme import WordScheme, WordVocabulary
from tokcore.wordpiece.scheme import WordPieceScheme

WORDS = {'the': 9, ' the': 12, ' other': 5, ' then': 4, ' café': 3, '字': 2, ' low': 5, ' lower': 4}
PIECES = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'the', 'fox', '##es', 't', '##h', '##e', '.', '字']  # fmt: skip


def learned(rules, words=WORDS):
    return learn_merges(TokenTable.from_items(words.items()), rules)


@pytest.fixture
def vocabularies(tmp_path):
    """The paths of small vocabularies."""
    found = learned(BpeRules(vocab_size=270, special_tokens=('<|end|>',)))
    files = {
        'tokenizer.json': BpeVocabulary.learned(
            found.entries, found.merges, found.special_tokens, TokenizerParts.of(('llama3',))
        ).dump(),
        'lines.json': BpeVocabulary.learned(
            found.entries, found.merges, found.special_tokens, TokenizerParts.of(('none',))
        ).dump(),
        'vocab.txt': ''.join(f'{piece}\n' for piece in PIECES).encode(),
        'bpe.codes': NmtVocabulary(
            learned(
                BpeRules(
                    'largest-pair', byte_level=False, end_of_word='</w>', min_count=2, merges=9
                ),
                {word: count for word, count in WORDS.items() if ' ' not in word},
            ).merges
        ).dump(),
        'ranks.tiktoken': b''.join(
            base64.b64encode(token) + b' %d\n' % rank
            for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), b'th', b'the'])
        ),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def export(capsys, folder, name, target, *more):
    status = main(['export', str(folder / name), '--to', target, '--output', str(folder / 'out'), *more])  # fmt: skip
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_hugging_face(capsys, vocabularies, transformers):
    status, said = export(capsys, vocabularies, 'tokenizer.json', 'huggingface')
    assert status == 0 and 'proved: tokenizers encodes' in said
    opened = transformers.AutoTokenizer.from_pretrained(vocabularies / 'out')
    assert opened.decode(opened.encode(' the lower café')) == ' the lower café'
    assert 'is there already' in export(capsys, vocabularies, 'tokenizer.json', 'huggingface')[1]


def test_codes_as_a_tokenizer_json(capsys, vocabularies, tokenizers):
    status, said = export(capsys, vocabularies, 'bpe.codes', 'huggingface')
    assert status == 2 and 'has no ids' in said
    pieces = '<pad>\n</s>\n<unk>\nthe\nlow@@\no@@\n字\n'
    (vocabularies / 'bpe.vocab').write_text(pieces)
    status, said = export(capsys, vocabularies, 'bpe.codes', 'huggingface')
    assert status == 0 and 'proved: tokenizers encodes' in said
    assert 'have ids from 7 on' in said
    theirs = tokenizers.Tokenizer.from_file(str(vocabularies / 'out' / 'tokenizer.json'))
    ours = BpeTokenizer.load(vocabularies / 'bpe.codes')
    for text in ('the 字', 'lowo', 'q  the '):
        assert [id_ if id_ < 7 else 2 for id_ in theirs.encode(text).ids] == ours.encode(text)
    assert theirs.decode(theirs.encode('the 字').ids) == 'the 字'
    (vocabularies / 'bpe.vocab').write_text(pieces.replace('<unk>', '<unknown>'))
    status, said = export(capsys, vocabularies, 'bpe.codes', 'huggingface', '--output', str(vocabularies / 'o'))  # fmt: skip
    assert status == 2 and 'it has no <unk>' in said


@given(st.randoms(use_true_random=False), st.lists(st.text('ab ', min_size=1, max_size=24)))
def test_ranks_as_a_tokenizer_json(tokenizers, tiktoken, dice, texts):
    """Also where several merges have equal results, and where tokens have none."""
    parts, tokens = [b'a', b'b', b' '], {bytes([byte]): byte for byte in range(256)}
    for _ in range(dice.randint(0, 20)):
        joined = dice.choice(parts) + dice.choice(parts)
        parts += [joined] if len(joined) < 9 else []
    longer = sorted({*parts} - tokens.keys())
    dice.shuffle(longer)
    tokens |= {token: 256 + rank for rank, token in enumerate(longer)}
    scheme = PretrainedScheme(pattern=dice.choice(['none', 'gpt2']))
    data = b''.join(base64.b64encode(token) + b' %d\n' % rank for token, rank in tokens.items())
    files = exported_files(scheme, scheme.parse(data, 'x'), 'huggingface', 'x')
    theirs = tokenizers.Tokenizer.from_str(files['tokenizer.json'].decode())
    expression = {'none': r'[\s\S]+', 'gpt2': DEFINITIONS['gpt2'].expressions[0]}[scheme.pattern]
    original = tiktoken.Encoding('x', pat_str=expression, mergeable_ranks=tokens, special_tokens={})
    for text in texts:
        assert theirs.encode(text).ids == original.encode_ordinary(text)


def test_a_tekken_file_as_a_tokenizer_json(tmp_path, capsys, tokenizers):
    tokens = [bytes([byte]) for byte in range(256)] + [b'th', b'the']
    file = {
        'config': {
            'pattern': DEFINITIONS['tekken'].expressions[0],
            'default_vocab_size': 260,
            'default_num_special_tokens': 2,
        },
        'vocab': [
            {'rank': rank, 'token_bytes': base64.b64encode(token).decode()}
            for rank, token in enumerate(tokens)
        ],
        'special_tokens': [{'rank': 0, 'token_str': '<unk>'}, {'rank': 1, 'token_str': '<s>'}],
    }
    (tmp_path / 'tekken.json').write_text(json.dumps(file))
    status, said = export(capsys, tmp_path, 'tekken.json', 'huggingface')
    assert status == 0 and 'proved: tokenizers encodes' in said
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / 'out' / 'tokenizer.json'))
    assert theirs.encode('<s>the').ids == [1, 259]
    vocabulary = PretrainedScheme().parse(json.dumps(file).encode(), 'tekken.json')
    file['vocab'][257]['token_bytes'] = base64.b64encode(b'<s>').decode()
    vocabulary = PretrainedScheme().parse(json.dumps(file).encode(), 'tekken.json')
    with pytest.raises(InputError, match='special token is spelled as the bytes of another'):
        exported_files(PretrainedScheme(), vocabulary, 'huggingface', 'x')


def test_a_folder_that_the_library_cannot_open(capsys, vocabularies, tokenizers):
    file = json.loads((vocabularies / 'tokenizer.json').read_bytes())
    del file['decoder']['trim_offsets']
    (vocabularies / 'short.json').write_text(json.dumps(file))
    status, said = export(capsys, vocabularies, 'short.json', 'huggingface')
    assert status == 2 and 'huggingface cannot open the folder' in said
    assert not (vocabularies / 'out').exists()


@pytest.mark.parametrize('patterns', [(r'\w+',), (r'\p{N}', 'gpt2')])
def test_vocabularies_of_other_patterns(capsys, vocabularies, tokenizers, patterns):
    found = learned(BpeRules(vocab_size=270))
    vocabulary = BpeVocabulary.learned(found.entries, found.merges, (), TokenizerParts.of(patterns))
    (vocabularies / 'own.json').write_bytes(vocabulary.dump())
    status, said = export(capsys, vocabularies, 'own.json', 'huggingface', '--scheme', 'bpe')
    assert status == 0 and 'proved: tokenizers encodes' in said
    status, said = export(capsys, vocabularies, 'own.json', 'tiktoken', '--scheme', 'bpe', '--output', str(vocabularies / 'o'))  # fmt: skip
    assert status == 2 and 'its patterns are several, or an expression for another engine' in said


@pytest.mark.parametrize(
    ('name', 'more'),
    [
        ('tokenizer.json', ()),
        ('lines.json', ()),
        ('ranks.tiktoken', ('--scheme', 'pretrained', '--pattern', 'o200k')),
    ],
)
def test_tiktoken(capsys, monkeypatch, vocabularies, tiktoken, name, more):
    status, said = export(capsys, vocabularies, name, 'tiktoken', *more)
    assert status == 0 and 'proved: tiktoken encodes' in said
    monkeypatch.syspath_prepend(vocabularies / 'out')
    monkeypatch.setattr(tiktoken.registry, 'ENCODING_CONSTRUCTORS', None)
    monkeypatch.setattr(tiktoken.registry, 'ENCODINGS', {})
    encoding = tiktoken.get_encoding('out')
    assert encoding.decode(encoding.encode(' the lower')) == ' the lower'


def test_a_model_of_sentencepiece(capsys, vocabularies, sentencepiece):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(['the lower the fox'] * 9), model_writer=written, vocab_size=22,
        model_type='bpe', hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (vocabularies / 'x.model').write_bytes(written.getvalue())
    status, said = export(capsys, vocabularies, 'x.model', 'sentencepiece')
    assert status == 0 and 'proved: sentencepiece encodes' in said
    assert '--to huggingface cannot hold' in export(capsys, vocabularies, 'x.model', 'huggingface', '--output', str(vocabularies / 'o'))[1]  # fmt: skip


@pytest.mark.parametrize(
    ('name', 'scheme', 'target', 'file', 'again'),
    [
        ('tokenizer.json', BpeScheme(), 'huggingface', 'tokenizer.json', BpeScheme()),
        ('tokenizer.json', BpeScheme(), 'tiktoken', 'x.tiktoken', PretrainedScheme(pattern='llama3')),
        ('lines.json', BpeScheme(), 'huggingface', 'tokenizer.json', BpeScheme()),
        ('ranks.tiktoken', PretrainedScheme(pattern='o200k'), 'tiktoken', 'x.tiktoken',
         PretrainedScheme(pattern='o200k')),
        ('vocab.txt', WordPieceScheme(), 'vocab.txt', 'vocab.txt', WordPieceScheme()),
        ('vocab.txt', WordPieceScheme(), 'huggingface', 'tokenizer.json', PretrainedScheme()),
    ],
)  # fmt: skip
def test_what_is_exported_is_read_and_exported_again(
    vocabularies, name, scheme, target, file, again
):
    path = vocabularies / name
    vocabulary = scheme.parse(path.read_bytes(), str(path))
    files = exported_files(scheme, vocabulary, target, 'x')
    read = again.parse(files[file], file)
    ours, theirs = tokenizer_of(vocabulary, scheme), tokenizer_of(read, again)
    lines = sample_lines(vocabulary)
    # A file of ranks has no special tokens.
    special = {'add_special_tokens': False} if target == 'tiktoken' else {}
    assert theirs.encode_batch(lines) == ours.encode_batch(lines, **special)
    assert exported_files(again, read, target, 'x')[file] == files[file]


def test_a_playground(capsys, vocabularies):
    status, said = export(capsys, vocabularies, 'tokenizer.json', 'playground')
    assert status == 0 and 'whenever a browser opens it' in said
    [page] = (vocabularies / 'out').iterdir()
    [packed] = re.findall('id="data">(.*?)<', page.read_text())
    data = json.loads(zlib.decompress(base64.b64decode(packed)))
    tokenizer = BpeTokenizer.load(vocabularies / 'tokenizer.json')
    assert tuple(data['pieces']) == tokenizer.pieces and data['name'] == 'out'
    assert len(data['samples']) > 6
    assert all(tokenizer.encode(line) == ids for line, ids in data['samples'])
    assert sum(size for _, size in data['categories']) == 0x110000


def test_a_playground_of_parts_that_it_lacks(capsys, vocabularies):
    file = json.loads((vocabularies / 'tokenizer.json').read_bytes())
    file['normalizer'] = {'type': 'Lowercase'}
    (vocabularies / 'lower.json').write_text(json.dumps(file))
    status, said = export(capsys, vocabularies, 'lower.json', 'playground')
    assert (
        status == 2 and '--to playground of out: the normalizer Lowercase at $.normalizer' in said
    )


def test_without_the_library_it_is_not_proved(capsys, monkeypatch, vocabularies):
    monkeypatch.setitem(__import__('sys').modules, 'tiktoken', None)
    status, said = export(capsys, vocabularies, 'tokenizer.json', 'tiktoken')
    assert status == 0 and "UNPROVED: install 'tiktoken'" in said


def test_a_difference_leaves_no_folder(capsys, monkeypatch, vocabularies, tokenizers):
    package, make, _ = exporting._TARGETS['huggingface']
    opened = package, make, lambda folder, name: lambda line: [0]
    monkeypatch.setitem(exporting._TARGETS, 'huggingface', opened)
    status, said = export(capsys, vocabularies, 'tokenizer.json', 'huggingface')
    assert status == 2 and 'would encode' in said and 'otherwise' in said
    assert not [path for path in vocabularies.iterdir() if path.is_dir()]


def test_a_line_that_only_the_library_cannot_encode(capsys, monkeypatch, vocabularies, tokenizers):
    package, make, _ = exporting._TARGETS['huggingface']
    opened = package, make, lambda folder, name: {}.__getitem__
    monkeypatch.setitem(exporting._TARGETS, 'huggingface', opened)
    status, said = export(capsys, vocabularies, 'tokenizer.json', 'huggingface')
    assert status == 2 and 'huggingface cannot encode' in said and 'which has ids here' in said


def test_a_mistake_of_the_encoder_is_no_refusal(capsys, monkeypatch, vocabularies, tokenizers):
    def encode(tokenizer, text):
        raise IndexError(text)

    monkeypatch.setattr(BpeTokenizer, 'encode', encode)
    monkeypatch.setattr('tempfile.tempdir', str(vocabularies))  # for the traceback
    status, said = export(capsys, vocabularies, 'tokenizer.json', 'huggingface')
    assert status == 1 and 'failed: IndexError: The quick brown fox' in said
    assert not (vocabularies / 'out').exists()


@pytest.mark.parametrize('target', ['huggingface', 'vocab.txt'])
def test_a_line_that_cannot_be_encoded_leaves_no_folder(
    capsys, vocabularies, tokenizers, transformers, target
):
    pieces = (vocabularies / 'vocab.txt').read_text()
    (vocabularies / 'vocab.txt').write_text(pieces.replace('[UNK]', 'unknown'))
    status, said = export(capsys, vocabularies, 'vocab.txt', target, '--scheme', 'wordpiece')
    assert status == 2 and 'cannot be encoded' in said and 'a token for unknown text' in said
    assert not (vocabularies / 'out').exists()


def without_order(vocabularies):
    file = json.loads((vocabularies / 'tokenizer.json').read_bytes())
    merges = file['model']['merges']
    merges[0], merges[1] = merges[1], merges[0]
    return BpeScheme().parse(json.dumps(file).encode(), 'x')


def of_file(name, scheme):
    return lambda vocabularies: scheme.parse((vocabularies / name).read_bytes(), name)


def with_added_token(scheme, **flags):
    """Returns what reads a vocabulary with an added token that is found in all text."""

    def read(vocabularies):
        file = json.loads((vocabularies / 'tokenizer.json').read_bytes())
        id_ = len(file['model']['vocab'])
        file['added_tokens'].append({'id': id_, 'content': '<x>', **flags})
        return scheme.parse(json.dumps(file).encode(), 'x')

    return read


def of_parts(parts, left_out=''):
    found = learned(BpeRules(vocab_size=256))
    entries = {entry: id_ for id_, entry in enumerate(found.entries) if entry != left_out}
    return lambda _: BpeVocabulary(entries, (), (), parts)


ORIGINAL = WordPieceScheme('bert-original')
EXPRESSION = PretrainedScheme(pattern=r'\w+|\W')
CODES = BpeScheme('subword-nmt')


@pytest.mark.parametrize(
    ('scheme', 'read', 'target'),
    [
        (BpeScheme(), of_file('bpe.codes', BpeScheme()), 'tiktoken'),
        (WordPieceScheme(), of_file('vocab.txt', WordPieceScheme()), 'sentencepiece'),
        (BpeScheme(), of_file('tokenizer.json', BpeScheme()), 'vocab.txt'),
        (BpeScheme(), of_file('tokenizer.json', BpeScheme()), 'subword-nmt'),
        (BpeScheme(), without_order, 'tiktoken'),
        (BpeScheme(), with_added_token(BpeScheme()), 'tiktoken'),
        (BpeScheme(), of_parts(TokenizerParts.of(), left_out='a'), 'tiktoken'),
        (EXPRESSION, of_file('ranks.tiktoken', EXPRESSION), 'huggingface'),
        (
            CODES,
            lambda _: NmtVocabulary((('ab', 'c</w>'), ('a', 'b')), ('<unk>', 'abc', 'ab@@')),
            'huggingface',
        ),
        (CODES, lambda _: NmtVocabulary((('</s', '></w>'),), ('<unk>', '</s>')), 'huggingface'),
        (CODES, lambda _: NmtVocabulary((('</s', '></w>'),), ('<unk>', '</s>')), 'playground'),
        (ORIGINAL, of_file('vocab.txt', ORIGINAL), 'playground'),
        (ORIGINAL, of_file('vocab.txt', ORIGINAL), 'huggingface'),
        (WordScheme(), lambda _: WordVocabulary(['<unk>', '<s>', '</s>', 'the']), 'playground'),
        (BpeScheme(), of_parts(TokenizerParts.of((r'\w+',))), 'playground'),
        (BpeScheme(), of_parts(TokenizerParts.of(('gpt2', 'qwen2'))), 'playground'),
        (BpeScheme(), of_parts(TokenizerParts(('gpt2',), False)), 'playground'),
        (BpeScheme(), of_parts(TokenizerParts.of(), left_out='a'), 'playground'),
        (EXPRESSION, of_file('ranks.tiktoken', EXPRESSION), 'playground'),
        (PretrainedScheme(), with_added_token(PretrainedScheme(), lstrip=True), 'playground'),
        (BpeScheme(), with_added_token(BpeScheme(), content='end'), 'playground'),
        (BpeScheme(), with_added_token(BpeScheme(), content='|>.'), 'playground'),
    ],
)
def test_what_a_tool_cannot_hold(vocabularies, scheme, read, target):
    with pytest.raises(InputError, match=f'--to {target} cannot hold this vocabulary: '):
        exported_files(scheme, read(vocabularies), target, 'x')


@pytest.mark.parametrize(
    ('name', 'target', 'library', 'more'),
    [
        ('vocab.txt', 'vocab.txt', 'transformers', ('--scheme', 'wordpiece')),
        ('bpe.codes', 'subword-nmt', 'subword_nmt', ()),
    ],
)
def test_the_other_tools(capsys, vocabularies, request, name, target, library, more):
    request.getfixturevalue(library)
    status, said = export(capsys, vocabularies, name, target, *more)
    assert status == 0 and f'proved: {library.replace("_", "-")} encodes' in said
    assert (vocabularies / 'out' / name).read_bytes() == (vocabularies / name).read_bytes()
