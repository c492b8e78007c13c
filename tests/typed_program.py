"""A program that uses every public name as a user does; type checkers read it, and nothing runs it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import pipelines
import tokcore


def read(folder: str) -> Iterator[np.ndarray]:
    dataset = tokcore.open_dataset(folder)
    rows = dataset['train']
    yield rows[0]['inputs']
    yield rows[-5:][0]['targets']
    yield rows.rows([3, 1])[0]['targets']
    yield dataset.byte_lengths()
    batches = dataset.batches('train', tokens_per_batch=4096, for_model='seq2seq', epochs=None)
    for batch in batches.prefetch(2):
        yield batch['labels']
    again = dataset.from_state(batches.state(), num_readers=2, reader_index=1)
    yield next(again)['decoder_inputs']
    yield next(dataset.packed('train', 256, for_model='lm', positions=True))['inputs']
    mixed = tokcore.mixture({'one': dataset, 'two': dataset}, weights={'one': 2, 'two': 1})
    yield next(mixed.batches('train', batch_size=64))['source']
    sizes: int = dataset.splits['train'].examples + dataset.vocab_size() + len(rows)
    text: str = dataset.text(rows[0]['targets'])
    print(sizes, text, dataset.features, dataset.special_ids().pad, dataset.end_of_document())


def trainers(folder: str) -> None:
    dataset = tokcore.open_dataset(folder, cache='/tmp/copies')
    for batch in dataset.tensorflow('train', tokens_per_batch=4096, for_model='seq2seq', seed=1):
        print(batch['encoder_inputs'])
    dataset.tensorflow('train', 256, for_model='lm').prefetch(2)
    dataset.torch('train', batch_size=64, for_model='seq2seq').state_dict()
    dataset.torch('train', length=1024, strategy='concat', for_model='lm', cross_documents=True)
    iterator = iter(dataset.grain('train', batch_size=64, for_model='seq2seq'))
    iterator.set_state(iterator.get_state())
    dataset.grain('train', 256, batch_size=8)
    tokcore.training_batches('a.en', 'a.zh', 'vocab.en', 'vocab.zh', batch_size=128)
    tokcore.inference_batches('a.en', 'vocab.en', batch_size=32)


def tokenizers() -> list[tokcore.Tokenizer]:
    learn: tokcore.LearnKeywords = {'vocab_size': 300, 'preset': 'cl100k'}
    tokenizer: tokcore.Tokenizer = tokcore.learn_vocabulary(['the cat'], 'bpe', **learn)
    encoding: tokcore.Encoding = tokenizer.encode_with_offsets('the cat')
    ids: list[list[int]] = tokenizer.encode_batch(['the cat'])
    texts: list[str] = [*tokenizer.decode_batch(ids), tokenizer.decode(encoding.ids)]
    tokenizer.save('tokenizer.json')
    options: tokcore.EncodeKeywords = {'allow_special_tokens': True}
    print(
        texts, tokcore.byte_lengths(tokenizer), tokcore.load_tokenizer('tokenizer.json', **options)
    )
    learned = tokcore.learn_wordpiece_vocabulary(['the cat'], vocab_size=200)
    return [
        tokcore.BpeTokenizer.load('tokenizer.json'),
        tokcore.ByteTokenizer.load(),
        tokcore.SubwordTextEncoder.load('vocab.subwords'),
        tokcore.WordPieceTokenizer(learned),
        tokcore.WordTokenizer.load('words.txt', split='unicode'),
    ]


def tables(data: bytes) -> tokcore.SearchResult:
    table = tokcore.TokenTable.from_items([('the', 3), ('then', 2)])
    merged: tokcore.TokenTable = tokcore.merge_tables([table, table])
    learner = tokcore.MemoryLearner(merged)
    for record in tokcore.read_records(data, 'shard'):
        print(tokcore.parse_example(record))
    tokens: list[str] = tokcore.tokenize('the cat')
    print(tokcore.detokenize(tokens))
    return tokcore.search_vocabulary(
        learner.build,
        2000,
        smallest_size=learner.smallest_size,
        largest_count=learner.largest_count,
    )


def jobs() -> pipelines.Result:
    options: pipelines.BuildKeywords = {'tsv': 'a.tsv', 'name': 'x', 'output': 'out'}
    job: pipelines.BuildJob = pipelines.build_job(**options)
    try:
        result = pipelines.build(job)
    except tokcore.InputError as error:
        raise SystemExit(str(error)) from error
    counting: pipelines.CountKeywords = {'text': 'a.txt', 'output': 'counts'}
    learning: pipelines.VocabKeywords = {
        'counts': 'counts',
        'vocab_size': 300,
        'output': 'v.subwords',
    }
    encoding: pipelines.EncodeKeywords = {'text': 'a.txt', 'vocab': 'v', 'output': 'encoded'}
    updating: pipelines.UpdateKeywords = {'text': 'b.txt', 'remove': 'rows', 'output': 'updated'}
    for made in (
        pipelines.count(**counting),
        pipelines.vocab(**learning),
        pipelines.encode(**encoding),
        pipelines.update('encoded', **updating),
    ):
        print(made.path, made.files, made.vocabularies, made.manifest.root)
    print(pipelines.source('out', 'train', [5, 7])[0].place.line)
    return result


def transforms() -> None:
    scheme: tokcore.Scheme[Any, Any, Any] = tokcore.find_scheme('bpe', preset='cl100k')
    keywords: tokcore.SchemeKeywords = {'preset': 'cl100k'}
    reading: tokcore.FormatKeywords = {'fields': 'text'}
    corpus = pipelines.ReadCorpus('a.jsonl', format='jsonl', **reading)
    pipelines.CountTokens(scheme)
    pipelines.CountTokens('bpe', **keywords)
    pipelines.LearnVocabulary('bpe', path='tokenizer.json', vocab_size=300)
    pipelines.EncodeBlocks('tokenizer.json', scheme, shards=2)
    pipelines.WriteShards('mine', 'out', index=True)
    shards: pipelines.SplitShards = pipelines.SplitShards.of_size('train', 2, 1 << 20)
    print(corpus, shards.buckets)


def parts(
    block: tokcore.Block,
    file: tokcore.CorpusFile,
    split: tokcore.Split,
    feature: tokcore.Feature,
    encoded: pipelines.EncodedFeature,
    transforms: tuple[
        pipelines.CountTokensByElement,
        pipelines.WriteCounts,
    ],
) -> int:
    print(split.name, feature.side, encoded.vocabulary, transforms)
    return block.read_bytes + file.size
