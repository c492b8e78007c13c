"""Reserved and special tokens in prefixes have their ids in datasets, however the prefix is given."""

import collections
import json

import pytest
from dataset_files import read_shards
from jobs import run, write

import pipelines
from tokcore.tokenizers import load_tokenizer

TAG, PREFIX = '<2zh>', 'to <2zh> '
PAIRS = [('the cat sat', 'le chat'), ('the dog', 'le chien dort'), ('a cat, a dog', 'un chat')]

LEARNING = {
    'subword': {'vocab_size': 60, 'reserved_token': [TAG]},
    'wordpiece': {'vocab_size': 80, 'special_tokens': ['[PAD]', '[UNK]', '[CLS]', '[SEP]', TAG]},
    'bpe': {'vocab_size': 290, 'special_tokens': [TAG]},
    'codes': {'preset': 'subword-nmt', 'merges': 9},
    'word': {'min_count': 1, 'special_tokens': ['<unk>', '<s>', '</s>', TAG]},
    'byte': {},
}
TAGS = {'codes': '</s>', 'byte': '<pad>'}
"""Special tokens of schemes that have no option for others."""


@pytest.mark.parametrize('name', LEARNING)
def test_rows_begin_with_the_ids_of_their_prefix(tmp_path, capsys, name):
    tsv = write(tmp_path / 'a.tsv', ''.join(f'{a}\t{b}\n' for a, b in PAIRS).encode())
    scheme, tag = {'codes': 'bpe'}.get(name, name), TAGS.get(name, TAG)
    prefix = PREFIX.replace(TAG, tag)
    options = {'scheme': scheme, 'name': 'a', 'shards': 1, 'output': tmp_path / 'out'}
    options |= LEARNING[name] | ({} if name == 'byte' else {'shared_vocab': True})
    built = pipelines.build(tsv=tsv, source_prefix=prefix, target_prefix=tag, **options)
    path = built.vocabularies.get('both')
    tokenizer = load_tokenizer(path, scheme=scheme)
    special = {} if name in ('byte', 'subword', 'word', 'codes') else {'add_special_tokens': False}
    expected = collections.Counter()
    for source, target in PAIRS:
        rows = {
            'inputs': [
                *tokenizer.encode('to ', **special),
                tokenizer.id_of(tag),
                *tokenizer.encode(f' {source}', **special),
            ],
            'targets': [tokenizer.id_of(tag), *tokenizer.encode(target, **special)],
        }
        expected[json.dumps(rows)] += 1
    begin, end = {
        'wordpiece': ([tokenizer.id_of('[CLS]')], [tokenizer.id_of('[SEP]')]),
        'bpe': ([], []), 'codes': ([], []), 'word': ([], [tokenizer.id_of('</s>')]),
    }.get(name, ([], [1]))  # fmt: skip
    found = collections.Counter()
    for shard in read_shards(tmp_path / 'out'):
        for row in shard:
            ids = {side: list(row[side]) for side in ('inputs', 'targets')}
            for side, all_ids in ids.items():
                assert all_ids[: len(begin)] == begin and all_ids[len(all_ids) - len(end) :] == end
                ids[side] = all_ids[len(begin) : len(all_ids) - len(end)]
            found[json.dumps(ids)] += 1
    assert found == expected
    # The rows can be made again from the corpus, and traced to it.
    ended = run('verify', tmp_path / 'out', '--rerun', 'all', '--progress=none')
    assert ended.status == 0, ended.said
    capsys.readouterr()
    assert run('where', tmp_path / 'out', f'{tsv}:2').status == 0
    assert 'the dog' in capsys.readouterr().out
