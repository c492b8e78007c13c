"""Folders of tokenizers: the ids are those of transformers, which opens the same folder."""

import json

import pytest

from tokcore.errors import InputError
from tokcore.tokenizers import load_tokenizer

TEXTS = [
    'The Quick brown fox; it\'s 12,345.67 dollars (or "so").',
    'Größe, élan, naïve und ÀÇ Привет мир!',
    '漢字とかな、中文没有空格。한국어',
    'def f(x):\treturn x[1]  # HelloWorld  snake_case',
    '   leading, trailing   ',
    '🙂👍🏽 ½',
]


def learned_bytes(tokenizers, folder):
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(TEXTS * 3, vocab_size=400, min_frequency=2, show_progress=False)
    tokenizer.save_model(str(folder))
    return tokenizer


def write_pieces(folder, lower_case):
    texts = ' '.join(text.lower() if lower_case else text for text in TEXTS)
    letters = sorted(set(texts) - set(' \t'))
    words = ['the', 'und', 'élan', 'elan', 'quick', '##row', 'b']
    words += [] if lower_case else ['The', 'Quick']
    pieces = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *letters]
    pieces += [f'##{letter}' for letter in letters] + [word for word in words if word not in pieces]
    (folder / 'vocab.txt').write_text(''.join(f'{piece}\n' for piece in dict.fromkeys(pieces)))


def assert_same(transformers, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    ours = load_tokenizer(folder)
    for text in TEXTS:
        assert ours.encode(text) == tokenizer.encode(text), text
    return ours


@pytest.mark.parametrize('told', ['tokenizer_config.json', 'config.json'])
def test_merges_beside_entries(tokenizers, transformers, tmp_path, told):
    learned_bytes(tokenizers, tmp_path)
    config = {
        'tokenizer_config.json': {'tokenizer_class': 'GPT2Tokenizer'},
        'config.json': {'model_type': 'gpt2'},
    }[told]
    (tmp_path / told).write_text(json.dumps(config))
    assert_same(transformers, tmp_path)


@pytest.mark.parametrize(
    'states',
    [
        {},
        {'do_lower_case': False},
        {'do_lower_case': True, 'strip_accents': False},
        {'do_lower_case': False, 'strip_accents': True, 'tokenize_chinese_chars': False},
    ],
)
def test_a_vocab_txt_is_read_as_the_configuration_says(transformers, tmp_path, states):
    write_pieces(tmp_path, states.get('do_lower_case', True))
    config = {**states, 'tokenizer_class': 'BertTokenizer'}
    (tmp_path / 'tokenizer_config.json').write_text(json.dumps(config))
    ours = assert_same(transformers, tmp_path)
    assert load_tokenizer(tmp_path / 'vocab.txt').encode(TEXTS[1]) == ours.encode(TEXTS[1])
    # What is asked for goes before it.
    lower_case = not states.get('do_lower_case', True)
    other = load_tokenizer(tmp_path, lower_case=lower_case)
    assert other.encode('The') != ours.encode('The')


def test_tokenizer_json_goes_before_all(tokenizers, transformers, tmp_path):
    whole = learned_bytes(tokenizers, tmp_path)
    write_pieces(tmp_path, True)
    with pytest.raises(
        InputError, match=r'holds vocab\.json and vocab\.txt, and no tokenizer\.json'
    ):
        load_tokenizer(tmp_path)
    whole.save(str(tmp_path / 'tokenizer.json'))
    config = {'tokenizer_class': 'PreTrainedTokenizerFast'}
    (tmp_path / 'tokenizer_config.json').write_text(json.dumps(config))
    assert_same(transformers, tmp_path)


def test_a_model_of_sentencepiece(sentencepiece, tmp_path):
    text = tmp_path / 'text'
    text.write_text('\n'.join(TEXTS * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(tmp_path / 'tokenizer'), vocab_size=360,
        model_type='bpe', byte_fallback=True, character_coverage=0.99, hard_vocab_limit=False,
        minloglevel=2, vocabulary_output_piece_score=False,
    )  # fmt: skip
    text.unlink()
    theirs = sentencepiece.SentencePieceProcessor(str(tmp_path / 'tokenizer.model'))
    ours = load_tokenizer(tmp_path)
    assert [ours.encode(text) for text in TEXTS] == theirs.encode(TEXTS)


def test_a_class_that_cuts_text_otherwise_is_refused(tokenizers, tmp_path):
    learned_bytes(tokenizers, tmp_path)
    (tmp_path / 'config.json').write_text('{"model_type": "qwen2"}')
    with pytest.raises(InputError, match=r'config\.json says qwen2, whose ids vocab\.json alone'):
        load_tokenizer(tmp_path)
