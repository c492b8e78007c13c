"""`dataset.tensorflow` in the TensorFlow that is installed: tf.data's own steps, and resuming."""

from tokcore import open_dataset

ARGUMENTS = {'tokens_per_batch': 256, 'seed': 3}


def lists(batches):
    return [batch['targets'].tolist() for batch in batches]


def test_each_iteration_continues_with_the_next_epoch(tensorflow, dataset_folder):
    dataset = open_dataset(dataset_folder)
    batches = dataset.tensorflow('train', **ARGUMENTS).prefetch(2)
    for epoch in (0, 1):
        plain = lists(dataset.batches('train', first_epoch=epoch, **ARGUMENTS))
        assert [batch['targets'].numpy().tolist() for batch in batches] == plain


def test_it_is_resumed_by_skipping_what_was_given(tensorflow, dataset_folder):
    dataset = open_dataset(dataset_folder)
    plain = lists(dataset.batches('train', first_epoch=1, **ARGUMENTS))
    resumed = dataset.tensorflow('train', first_epoch=1, **ARGUMENTS).skip(5)
    assert [batch['targets'].numpy().tolist() for batch in resumed] == plain[5:]
