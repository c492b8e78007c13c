"""Batches of a dataset through tf.data's service and a strategy. Argument: the dataset's folder.

Prints targets, as lists, by what was done; of what failed the message.
"""

import json
import os
import sys

import tensorflow as tf

from tokcore import open_dataset

ARGUMENTS = {'tokens_per_batch': 256, 'seed': 3}


def targets(batches):
    return [batch['targets'].numpy().tolist() for batch in batches]


def through_service(batches, address, policy):
    """What a service of two workers gives in one iteration."""
    return targets(
        batches.apply(
            tf.data.experimental.service.distribute(processing_mode=policy, service=address)
        )
    )


def by_strategy(dataset):
    """What the two devices of a strategy get, step by step."""
    cpus = tf.config.list_logical_devices('CPU')
    strategy = tf.distribute.MirroredStrategy([cpu.name for cpu in cpus])

    def batches(context):
        readers = {
            'num_readers': context.num_input_pipelines,
            'reader_index': context.input_pipeline_id,
        }
        return dataset.tensorflow('train', **readers, **ARGUMENTS)

    steps = [
        strategy.experimental_local_results(step['targets'])
        for step in strategy.distribute_datasets_from_function(batches)
    ]
    return [[each.numpy().tolist() for each in step] for step in steps]


def main(folder):
    [cpu] = tf.config.list_physical_devices('CPU')
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    dataset = open_dataset(folder)
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    address = dispatcher.target
    workers = [
        service.WorkerServer(
            service.WorkerConfig(
                dispatcher_address=address.split('://')[1], heartbeat_interval_ms=100
            )
        )
        for _ in range(2)
    ]
    found = {'workers': len(workers), 'strategy': by_strategy(dataset)}
    for mode in (service.ShardingPolicy.OFF, service.ShardingPolicy.DYNAMIC):
        batches = dataset.tensorflow('train', **ARGUMENTS)
        found[mode.name] = through_service(batches, address, mode)
        batches = dataset.batches('train', **ARGUMENTS).tensorflow()
        try:
            found[f'iterator, {mode.name}'] = through_service(batches, address, mode)
        except tf.errors.OpError as error:
            found[f'iterator, {mode.name}'] = error.message
    print(json.dumps(found), flush=True)
    # A server that has lost an iterator may wait for it for ever when Python deletes the server.
    os._exit(0)


if __name__ == '__main__':
    main(sys.argv[1])
