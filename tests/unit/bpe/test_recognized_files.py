"""Files are told apart by their shape: the keys of a tokenizer.json or a tekken.json may be tokens."""

import json

import pytest
from key_tokens import KEYS, write_files

from pipelines.export.exporting import exported_files
from tokcore.bpe.files import is_bpe_file, is_plain_bpe, is_tokenizer_json
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import is_pretrained_file, parse_pretrained
from tokcore.schemes import find_scheme, schemes_of_file
from tokcore.tokenizers import load_tokenizer


@pytest.mark.parametrize('keys', [*((key,) for key in KEYS), KEYS])
def test_keys_as_tokens(tmp_path, keys):
    path = write_files(tmp_path / 'hub', keys)
    data = path.read_bytes()
    assert is_bpe_file(data) and not is_pretrained_file(data)
    assert not is_tokenizer_json(json.loads(data)) and not is_plain_bpe(json.loads(data))
    assert schemes_of_file(data) == ['bpe']
    scheme = find_scheme('bpe')
    vocabulary = scheme.parse(data, str(path))
    assert scheme.options_from_file(data, str(path))['preset'] == 'gpt2'
    for place in (path, path.parent, path.with_name('merges.txt')):
        tokenizer = load_tokenizer(place, scheme='bpe')
        word = keys[0].partition('_')[0][:5]  # what the pattern and the merges leave whole
        assert tokenizer.encode(word) == [vocabulary.entries[word]]
    files = exported_files(scheme, vocabulary, 'huggingface', 'x')
    assert is_tokenizer_json(json.loads(files['tokenizer.json']))
    with pytest.raises(InputError, match='is not a tokenizer'):
        parse_pretrained(data, str(path))


def test_merges_that_begin_with_a_brace(tmp_path):
    write_files(tmp_path / 'hub', ('{"',))
    (tmp_path / 'hub' / 'merges.txt').write_text('{ "\n')
    tokenizer = load_tokenizer(tmp_path / 'hub' / 'merges.txt', scheme='bpe')
    assert tokenizer.encode('{"') == [256]


@pytest.mark.parametrize('model', [None, 5, 'BPE', []])
def test_a_model_that_is_not_an_object(model):
    data = json.dumps({'model': model, 'version': '1.0'}).encode()
    assert schemes_of_file(data) == []
    with pytest.raises(InputError, match=r"^x\.json is not a tokenizer's file that is known"):
        parse_pretrained(data, 'x.json')
