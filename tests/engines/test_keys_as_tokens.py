"""Commands take a vocab.json whose tokens are the keys of other files, as GPT-2's has `model`."""

import json

from dataset_files import read_shards
from jobs import succeed
from key_tokens import KEYS, write_files

from tokcore.tokenizers import load_tokenizer


def test_commands(tmp_path, filter_lines):
    path = write_files(tmp_path / 'hub')
    text = tmp_path / 'text.txt'
    text.write_text(''.join(f'{key} {key}s\n' for key in KEYS) * 5)
    tokenizer = load_tokenizer(path)
    expected = sorted(map(tokenizer.encode, text.read_text().splitlines()))
    for number, vocab in enumerate((path, path.parent)):
        output = tmp_path / f'out{number}'
        encode = ['encode', '--text', text, '--vocab', vocab, '--name', 'x', '--shards', 1]
        succeed(*encode, '--workers', 1, '--output', output)
        rows = [row['targets'] for shard in read_shards(output) for row in shard]
        assert sorted(rows) == expected
        succeed('inspect', output)
        succeed('verify', output, '--rerun', 'all')
    ids = ' '.join(map(str, tokenizer.encode('model config')))
    assert filter_lines(b'model config\n', 'tokenize', '--vocab', path) == f'{ids}\n'.encode()
    exported = tmp_path / 'exported'
    succeed('export', path, '--to', 'huggingface', '--output', exported)
    assert load_tokenizer(exported).encode('model') == tokenizer.encode('model')
    larger = tmp_path / 'larger.json'
    extend = ['--scheme', 'bpe', '--extend', path, '--vocab-size', tokenizer.vocab_size + 3]
    succeed('vocab', '--text', text, *extend, '--output', larger)
    entries = json.loads(larger.read_text())['model']['vocab']
    assert len(entries) == tokenizer.vocab_size + 3 and entries['model'] == tokenizer.id_of('model')
