"""What a build wrote, read by TensorFlow: all shards of all splits, in the order of the files."""

import pytest
from dataset_files import encoders_of, read_shards, texts_of
from generated_text import as_bitext, as_tsv, kept_pairs, pairs_with_gaps
from jobs import succeed, write

DATASET = ['--name', 'x', '--vocab-size', 900, '--shards', 7]


def read_with_tensorflow(tensorflow, folder, split, features):
    paths = sorted(map(str, folder.glob(f'x-{split}-*')))
    ragged = tensorflow.io.RaggedFeature(tensorflow.int64)
    examples = []
    for record in tensorflow.data.TFRecordDataset(paths):
        parsed = tensorflow.io.parse_single_example(record, dict.fromkeys(features, ragged))
        examples.append({name: parsed[name].numpy().tolist() for name in features})
    return examples


def test_pairs(tensorflow, tmp_path):
    splits = {
        name: pairs_with_gaps(count, seed=count)
        for name, count in [('train', 250), ('dev', 30), ('test', 20)]
    }
    source, target = as_bitext(splits['dev'])
    succeed(
        *('build', '--tsv', write(tmp_path / 'train.tsv.gz', as_tsv(splits['train']))),
        *('--dev-source', write(tmp_path / 'dev.en', source)),
        *('--dev-target', write(tmp_path / 'dev.zh', target)),
        *('--test', write(tmp_path / 'test.tsv', as_tsv(splits['test'], '\r\n'))),
        *(*DATASET, '--output', tmp_path / 'out'),
    )
    encoders = encoders_of(tmp_path / 'out')
    for split, pairs in splits.items():
        found = read_with_tensorflow(tensorflow, tmp_path / 'out', split, ['inputs', 'targets'])
        ours = [each for shard in read_shards(tmp_path / 'out', split) for each in shard]
        assert found == ours
        texts = [
            tuple(encoders[side].decode(each[side][:-1]) for side in ('inputs', 'targets'))
            for each in found
        ]
        assert sorted(texts) == sorted(kept_pairs(pairs))
        assert texts_of(tmp_path / 'out', split) == texts


@pytest.mark.parametrize('side, column', [('inputs', 0), ('targets', 1)])
def test_tensor2tensor_encodes_the_same_ids(t2t_text_encoder, tmp_path, side, column):
    pairs = pairs_with_gaps(120, seed=14)
    path = write(tmp_path / 'pairs.tsv', as_tsv(pairs))
    succeed('build', '--tsv', path, *DATASET, '--output', tmp_path / 'out')
    vocabulary = tmp_path / 'out' / f'vocab.x.900.subwords.{side}'
    encoder = t2t_text_encoder.SubwordTextEncoder(str(vocabulary))
    found = sorted(each[side] for shard in read_shards(tmp_path / 'out') for each in shard)
    assert found == sorted([*encoder.encode(pair[column]), 1] for pair in kept_pairs(pairs))
