"""`dataset.torch` in PyTorch's DataLoader, and in torchdata's StatefulDataLoader; models learn from it.

The code for PyTorch in the README and in `docs/` is run as it stands there.
"""

import math
from pathlib import Path

import numpy as np
import pytest
from environments import run_script
from jobs import succeed
from pages import blocks_of, run_shell
from written_dataset import write_dataset

from tokcore import open_dataset

HERE = 'tests/neighbours/test_torch.py runs it'

# PyPI's PyTorch for Linux brings CUDA, three gigabytes.
pytestmark = pytest.mark.large


@pytest.fixture(scope='module')
def told(environment, dataset_folder):
    return run_script(environment('PyTorch'), 'torch_batches.py', dataset_folder)


def targets(folder, **arguments):
    batches = open_dataset(folder).batches('train', tokens_per_batch=256, seed=3, **arguments)
    return [batch['targets'].tolist() for batch in batches]


def test_epochs_are_those_of_batches(told, dataset_folder):
    assert told['dtype'] == 'torch.int32'
    assert told['alone'] == [targets(dataset_folder, first_epoch=each) for each in (0, 1)]
    assert told['alone'][0] != told['alone'][1]


def test_batches_without_end_begin_with_another_epoch_in_each_iteration(told, dataset_folder):
    assert told['without end'] == [targets(dataset_folder, first_epoch=n)[:3] for n in range(3)]


def test_labels_are_what_pytorchs_loss_takes(told, dataset_folder):
    found = told['for a model']
    asked = {'tokens_per_batch': 256, 'seed': 3, 'for_model': 'seq2seq'}
    plain = next(open_dataset(dataset_folder).batches('train', **asked))
    assert found['arrays'] == {name: array.tolist() for name, array in plain.items()}
    assert found['dtypes'] == {
        name: 'torch.int64' if name == 'labels' else 'torch.int32' for name in plain
    }
    assert math.isclose(found['loss'], math.log(found['ids']), rel_tol=1e-5)


@pytest.mark.parametrize('workers', ['workers', 'persistent workers', 'spawned workers'])
def test_workers_take_turns_in_the_batches_of_each_epoch(told, dataset_folder, workers):
    for epoch, batches in enumerate(told[f'by {workers}']):
        assert batches == targets(dataset_folder, first_epoch=epoch)


def test_workers_of_several_readers_double_no_batch(told, dataset_folder):
    plain, shares = targets(dataset_folder), told['by readers']
    for reader, share in enumerate(shares):
        assert share == targets(dataset_folder, num_readers=3, reader_index=reader)
    rounds = len(plain) // 3
    found = [batch for round_ in zip(*shares, strict=True) for batch in round_]
    assert found[: rounds * 3] == plain[: rounds * 3] and rounds > 10


@pytest.mark.parametrize('loader', range(4))
def test_a_state_goes_on_with_the_next_batch_and_the_next_epoch(told, loader):
    (rest, following), resumed, state = told['resumed'][loader]
    assert resumed == [rest, following] and rest and rest != following
    assert state == {'iterations': 3, 'batches': None, 'worker': 0, 'workers': 1}


def test_a_state_within_an_epoch_of_workers_is_refused(told):
    for refused, after in told['state of workers']:
        assert 'workers of a DataLoader are within an epoch' in refused
        assert all(way in refused for way in ('StatefulDataLoader', 'num_workers=0', '.state()'))
        assert after == {'iterations': 1, 'batches': None, 'worker': 0, 'workers': 1}


def test_ranks_that_read_the_same_batches_are_warned(environment, dataset_folder):
    ranks = run_script(environment('PyTorch'), 'torch_ranks.py', dataset_folder)
    arguments = (
        'num_readers=torch.distributed.get_world_size(), reader_index=torch.distributed.get_rank()'
    )
    for rank, found in enumerate(ranks):
        assert found['alike']['targets'] == targets(dataset_folder)
        [warned] = found['alike']['warned']
        assert 'each of the 2 ranks reads the same batches' in warned and arguments in warned
        share = targets(dataset_folder, num_readers=2, reader_index=rank)
        assert found['divided'] == {'targets': share, 'warned': []}
        assert warned in found['by a forked worker']
        assert found['of a spawned worker'] == [warned]
    assert len(ranks) == 2


@pytest.fixture(scope='module')
def replaced(environment, tmp_path_factory):
    """What readers tell of a dataset that is replaced while they read, and its rows."""
    folder, datasets = tmp_path_factory.mktemp('replaced'), {}
    for name, first in {'ours': 10, 'theirs': 70}.items():
        datasets[name] = [
            [[first + (shard + row) % 50] * (row + 1) for row in range(5)] for shard in range(24)
        ]
        shards = [[{'targets': row} for row in shard] for shard in datasets[name]]
        write_dataset(folder / name, shards)
    told = run_script(
        environment('PyTorch'), 'torch_replaced.py', folder / 'ours', folder / 'theirs'
    )
    return told, [row for shard in datasets['ours'] for row in shard]


@pytest.mark.parametrize('reader', ['batches', 'no workers', 'workers', 'spawned workers'])
def test_a_dataset_that_is_replaced_is_refused_in_one_sentence(replaced, reader):
    told, rows = replaced
    found = told[reader]
    assert found['is_input_error']
    path, _, sentence = found['sentence'].partition(' was ')
    assert path.startswith(found['folder'] + '/d-train-')
    assert sentence == 'replaced, changed or deleted after the dataset was opened; open it again'
    assert found['rows'] and len(found['rows']) < len(rows)
    assert all(row in rows for row in found['rows'])
    if reader == 'no workers':
        assert found['rows'] == told['batches']['rows']


def run_for_pytorch(python, page, told):
    """Runs the code of a page that needs PyTorch; returns the values of the expression `told`."""
    code = ''.join(each.code for each in blocks_of(page) if each.needs == f'needs PyTorch: {HERE}')
    assert code
    path = Path('for_pytorch.py')
    path.write_text(f'{code}\nimport json\nprint(json.dumps({told}))\n')
    return run_script(python, path.resolve())


BEGUN = "[translate(row['inputs'], 1) == [row['targets'][0]] for row in dataset['train'][:40]]"


@pytest.mark.parametrize(
    ('page', 'expression', 'first', 'last'),
    [
        ('docs/recipe-translation.md', f"{{'losses': losses, 'begun': {BEGUN}}}", 5, 1),
        ('docs/recipe-gpt.md', "{'losses': losses, 'written': written}", 4, 3.2),
    ],
)
def test_a_recipe(environment, sample_alone, page, expression, first, last):
    run_shell(next(block.code for block in blocks_of(page) if block.language == 'bash'))
    found = run_for_pytorch(environment('PyTorch'), page, expression)
    losses = found['losses']
    assert len(losses) == 200 and losses[0] > first and np.mean(losses[-20:]) < last
    if 'begun' in found:
        assert np.mean(found['begun']) > 0.8
    else:  # what is written begins as a document of the corpus does
        rows = open_dataset('data/gpt')['train'][:]
        assert found['written'][1] in {row['targets'][0] for row in rows}


def test_the_snippet_of_a_page(environment, dataset_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path('data').mkdir()
    Path('data/enzh').symlink_to(dataset_folder)
    dtype = "str(batch['labels'].dtype)"
    assert run_for_pytorch(environment('PyTorch'), 'docs/reading.md', dtype) == 'torch.int64'


def test_the_snippet_of_the_readme(environment, sample_alone):
    build = ['--text', 'train.en', '--scheme', 'bpe', '--vocab-size', 600, '--name', 'edu']
    succeed('build', *build, '--output', 'data/edu')
    shapes = 'str((inputs.shape, labels.shape))'
    found = run_for_pytorch(environment('PyTorch'), 'README.md', shapes)
    assert '2048' in found
