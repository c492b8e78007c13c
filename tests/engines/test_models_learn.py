"""Models learn from what `for_model` gives: the loss falls, and a sentence is decoded from its first piece on.

The snippet for TensorFlow of docs/reading.md is run as it stands there, and so is each recipe, also those without a
model. A model that is never shown where sentences begin learns all but their first pieces, and cannot begin one.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from jobs import succeed
from pages import blocks_of, run_blocks, run_shell
from test_documentation import RECIPES
from test_library_calls import Interrupt

import pipelines
from pipelines.engines.progress import listening
from tokcore import open_dataset

SAMPLE = Path(__file__).parents[2] / 'pipelines' / 'sample'
STEPS = 200


def translation_model(tensorflow, size):
    """An encoder and a decoder of one recurrent layer each."""
    keras = tensorflow.keras
    keras.utils.set_random_seed(1)
    source, target = keras.Input([None], dtype='int32'), keras.Input([None], dtype='int32')
    embedded = keras.layers.Embedding(size, 64, mask_zero=True)(source)
    state = keras.layers.GRU(128)(embedded)
    decoded = keras.layers.GRU(128, return_sequences=True)(
        keras.layers.Embedding(size, 64)(target), initial_state=state
    )
    model = keras.Model([source, target], keras.layers.Dense(size)(decoded))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)
    model.compile(keras.optimizers.Adam(0.01), loss)
    return model


@pytest.mark.slow
def test_the_snippet_teaches_whole_sentences(tensorflow, tmp_path):
    folder = tmp_path / 'enzh'
    pairs = ['--source', SAMPLE / 'train.zh', '--target', SAMPLE / 'train.en', '--name', 'zhen']
    succeed('build', *pairs, '--vocab-size', 2048, '--shared-vocab', '--output', folder)
    dataset = open_dataset(folder)
    [snippet] = [
        block.code
        for block in blocks_of('docs/reading.md')
        if 'dataset.tensorflow' in block.code and 'for_model' in block.code
    ]
    names = {'dataset': dataset}
    exec(snippet, names)
    model = translation_model(tensorflow, dataset.vocab_size())
    steps = zip(range(STEPS), names['examples'].repeat())  # each iteration is another epoch
    losses = [float(model.train_on_batch(*example)) for _, example in steps]
    first, last = np.mean(losses[:10]), np.mean(losses[-10:])
    print(f'loss {first:.2f} to {last:.2f}')
    assert len(losses) == STEPS and last < 3.5 < first

    batch = next(dataset.batches('train', for_model='seq2seq', batch_size=64, num_buckets=1))
    begun = model.predict_on_batch([batch['encoder_inputs'], batch['decoder_inputs'][:, :1]])
    first_pieces = begun[:, 0].argmax(-1) == batch['labels'][:, 0]
    print(f'{first_pieces.mean():.0%} of the sentences begin with their first piece')
    assert first_pieces.mean() > 0.3  # the most frequent one begins a tenth


def shards_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).glob('*-of-*')}


def test_each_recipe_has_a_test_here():
    names = ('bert', 'gpt', 'pipeline', 'published-tokenizer', 'translation')
    assert RECIPES == [f'docs/recipe-{name}.md' for name in names]


@pytest.mark.slow
def test_the_recipe_of_a_translation_model(tensorflow, sample_alone):
    names: dict = {}
    run_blocks('docs/recipe-translation.md', names)
    assert names['losses'][0] > 4 and names['losses'][-1] < 1
    assert names['translated'][0] == names['row']['targets'][0]
    rows = names['dataset']['train'].rows(range(40))
    begun = [names['translate'](row['inputs'], most=1)[0] == row['targets'][0] for row in rows]
    print(f'{np.mean(begun):.0%} of the sentences begin with their first piece')
    assert np.mean(begun) > 0.8


@pytest.mark.slow
def test_the_recipe_of_a_gpt(tensorflow, sample_alone):
    names: dict = {}
    run_blocks('docs/recipe-gpt.md', names)
    assert names['losses'][0] > 4 and names['losses'][-1] < 3.2
    dataset = names['dataset']
    documents = [row['targets'].tolist() for row in dataset['train'][:]]
    # What is written begins as a document of the corpus does.
    assert names['written'][1] in {document[0] for document in documents}
    for split, file in (('train', 'train.bin'), ('dev', 'val.bin')):
        ids = np.memmap(f'data/gpt.nanogpt/{file}', np.uint16, 'r').tolist()
        rows = [row['targets'].tolist() for row in dataset[split][:]]
        assert ids == [id_ for row in rows for id_ in [*row, names['end']]]
    x, y = names['x'], names['y']
    assert x.shape == (16, 64) and x.dtype == y.dtype == np.int64 and (x[:, 1:] == y[:, :-1]).all()


@pytest.mark.slow
def test_the_recipe_of_rows_for_bert(tensorflow, sample_alone):
    names: dict = {}
    run_blocks('docs/recipe-bert.md', names)
    assert names['tokenizer'](names['text'])['input_ids'] == names['row']
    read, labels, mask = names['read'], names['labels'], names['mask']
    learned = labels >= 0
    assert 0.1 < learned.sum() / (read != names['pad']).sum() < 0.2
    assert 0.6 < (read[learned] == mask).mean() < 0.95
    assert not (read[~learned] == mask).any() and not np.isin(labels, names['special']).any()
    losses = names['losses']
    assert len(losses) == STEPS and np.mean(losses[-10:]) < 4.5 < 5.5 < losses[0]
    seen = [example for _, example in zip(range(10), names['examples'](seed=3))]
    wanted = np.concatenate([labels[labels >= 0] for _, labels in seen])
    filled = [names['model'].predict_on_batch(read).argmax(-1) for read, _ in seen]
    found = np.concatenate([ids[labels >= 0] for ids, (_, labels) in zip(filled, seen)])
    share, most = (found == wanted).mean(), np.bincount(wanted).max() / len(wanted)
    print(f'{share:.1%} are filled in, and {most:.1%} are the most frequent piece')
    assert share > 1.5 * most
    assert len(shards_of('data/bert.joined')) == 2


@pytest.mark.slow
def test_the_recipe_of_a_published_tokenizer(sample_alone):
    page, names = 'docs/recipe-published-tokenizer.md', {}
    run_blocks(page, names)
    tokenizer, texts = names['tokenizer'], names['texts']
    assert names['rows'] == {tuple(tokenizer(text)['input_ids']) for text in texts}
    assert len(names['dataset']['train']) == 10 * len(texts) == 80_000
    whole = shards_of('data/web')
    shutil.rmtree('data/web')
    again = next(block.code for block in blocks_of(page) if 'tokbeam encode' in block.code)
    with pytest.raises(KeyboardInterrupt, match='encoded; make the same call'):
        with listening(Interrupt()):
            pipelines.encode(
                jsonl='web/*.jsonl.gz', fields='text', vocab='published', name='web', shards=4,
                workers=1, output='data/web',
            )  # fmt: skip
    assert not Path('data/web/tokbeam.json').exists()
    run_shell(again)
    assert shards_of('data/web') == whole


def test_the_recipe_of_a_pipeline(sample_alone):
    names: dict = {}
    run_blocks('docs/recipe-pipeline.md', names)
    succeed(
        'build', '--text', 'train.en', '--scheme', 'bpe', '--vocab-size', 600, '--name', 'mine',
        '--shards', 2, '--output', 'theirs',
    )  # fmt: skip
    assert shards_of('own/shards') == shards_of('theirs')
    lines = Path('train.en').read_text().splitlines()
    texts = [names['dataset'].text(row['targets']) for row in names['rows'][:]]
    assert sorted(texts) == sorted(lines)
    assert names['batch']['labels'].shape == (8, 64)
    sizes = Path('own/sizes').read_text().splitlines()
    assert sum(int(size.split()[1]) for size in sizes if not size.startswith('index/')) == 400
