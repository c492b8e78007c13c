"""Options with random and absurd values: each is accepted, or refused in a sentence."""

import argparse
import random

from pipelines.cli.parser import command_parser

from .room import Room
from .vocabulary_cases import SOUND_VOCABULARY

_TEXT = 'the line of words\nand a line 2024\n语料 第\n'.encode() * 3
_LINES = {
    'encode': ['--text', 'text', '--vocab', 'vocab', '--name', 'n', '--output', 'out'],
    'count': ['--text', 'text', '--output', 'counts'],
    'vocab': ['--text', 'text', '--vocab-size', '90', '--output', 'vocab.x'],
    'build': ['--text', 'text', '--vocab-size', '90', '--name', 'n', '--output', 'out'],
    'tokenize': ['--vocab', 'vocab'],
    'detokenize': ['--vocab', 'vocab'],
}
_PAIRS = {'encode', 'count', 'vocab', 'build'}
_MADE = ['out', 'counts', 'vocab.x', 'vocab.x.tokbeam.json', 'vocab.x.tokbeam.run.json']
_COUNTS = ['out/counts', 'out/counts.inputs', 'out/counts.targets']

# Paths have a kind of their own, and a value of these might name one that matters.
_PATHS = {
    'source', 'target', 'tsv', 'text', 'vocab', 'counts',
    'output', 'work',
}  # fmt: skip

_NUMBERS = [
    '0', '1', '2', '3', '7', '-1', '+5', '007', '1_000', '1e3', '0x10', '1.5', 'nan', 'inf', '１２', '٣',
    '²', '1024', '1025', '2147483647', '2147483648', '9223372036854775807', '9223372036854775808',
    '18446744073709551615', '18446744073709551616', '9' * 30, '9' * 5000, ' 3', '3 ', '', ' ',
]  # fmt: skip
_SIZES = [
    '1', '64', '1KB', '1KiB', '1 MiB', '1mib', '8MiB', '2GiB', '100GiB', '0KiB', '-1MiB', '1.5MiB',
    '1MiBMiB', 'MiB', '99999999TiB', '1e9GiB', '9' * 20 + 'GiB', '9' * 5000 + 'K', '1K\n', '1PiB',
]  # fmt: skip
_TIMES = [
    '1s', '10s', '0s', '-1s', '1.5s', '1min', '12h', '9' * 30 + 'h', '9' * 5000 + 's', 's', '1d',
]  # fmt: skip
_FILTERS = [
    'nfc', 'nfd,nfkc,nfkd', 'length:1:9', 'length:0:4:tokens', 'ratio:3', 'ratio:1e9', 'different',
    'script:Latn:0.5', 'script:Jpan:1:target', 'paracrawl', 'length:1:9,length', ',', 'nfc,', ':', '::',
    'json:loads', 'string:capwords', 'string:digits', 'string:nothing', 'nix:nix', 'length:1', 'LENGTH:1:2',
    'length:' + '9' * 5000 + ':1', 'ratio:' + '1' * 5000, 'script:Latn:٣', 'x' * 70_000, 'a.b:c', '字:字',
]  # fmt: skip
_LISTS = [
    '0,1', '1,0', '2,5', '0,0', '0', '0,1,2', '-1,0', ',', '0,', '0, 1', '0,9223372036854775807',
    '0,9223372036854775808', '0,' + '9' * 30, '1:1', '1:4', '0:5', '5:1', '1:', ':', '1:2:3', '1:1000',
    '1:9223372036854775807', '1:9223372036854775808', '1:' + '9' * 400,
]  # fmt: skip
_SAMPLES = [
    't2t:1', 't2t:20B', 't2t:1e2', 't2t:1kB', 't2t:100MiB', 't2t:', 't2t:0', 't2t:-1', 't2t:1e99',
    't2t:' + '9' * 5000, 't2t:1PB', 't2t:1\n', 'uniform:0.5', 'uniform:.9', 'uniform:0', 'uniform:1',
    'uniform:0.' + '0' * 17 + '1', 'uniform:0.' + '1' * 5000, 'uniform:1e-3', 'uniform:nan', ':',
]  # fmt: skip
_STRINGS = [
    'none', 'None', 'null', 'auto', 'x', 'n', '-', '--', '-x', '--x', '*', '[', '~', '$HOME', '%s', '{}',
    "'", '"', '\\', '\\10;', '_', '<pad>_', '<pad>', '<EOS>', 'a b', 'a\tb', 'a\nb', 'a\rb', '\n', 'é',
    '语', '\ufeff', '\u2028', '\udcff', 'x\udcc3', '😀', 'a' * 150, 'a' * 300, 'a' * 70_000, '..', '.',
    'tokbeam.json', 'counts', 'rejected', '.tokbeam-attempt-z', '.tokbeam', 'vocab', '/', 'a/b', 'a/../b',
]  # fmt: skip
_BEAMS = [
    ['--direct_num_workers', '-1'], ['--direct_num_workers', 'x'], ['--direct_num_workers', '2'],
    ['--direct_running_mode', 'multi_threading'], ['--direct_running_mode', 'nix'],
    ['--direct_running_mode', 'in_memory'], ['--runner', 'nix'], ['--runner', ''], ['--runner', 'local'],
    ['--runner', 'DirectRunner'], ['--runner', 'FnApiRunner'], ['--runner', 'apache_beam.nix'],
    ['--runner', 'os.system'], ['--job_name', ''], ['--job_name', 'a b\n'], ['--streaming'],
    ['--pipeline_type_check'], ['--no_pipeline_type_check'], ['--runtime_type_check'],
    ['--type_check_additional', 'all'], ['--allow_unsafe_triggers'], ['--experiments', 'nix'],
    ['--direct_runner_bundle_repeat', '2'], ['--direct_runner_bundle_repeat', '-1'], ['--'],
    ['--', 'x'], ['--', '--nix', 'y'], ['--nix'], ['--nix', 'x'], ['--shard', '3'], ['--out', 'x'],
    ['x'], [''], ['--streaming=x'], ['--help'], ['--version'], ['-h'], ['--sdk_worker_parallelism', '-3'],
    ['--save_main_session'], ['--no_direct_runner_use_stacked_bundle'], ['--update'], ['-'],
    ['--direct_test_splits', '{'], ['--direct_test_splits', '{"x": 1}'], ['--profile_cpu'],
    ['--dataflow_endpoint', 'nix'], ['--max_cache_memory_usage_mb', '-1'], ['--performance_runtime_type_check'],
    ['--environment_type', 'DOCKER'], ['--password', 'x'], ['--worker_harness_container_image', 'x'],
]  # fmt: skip


def attack_options(room: Room, dice: random.Random) -> None:
    command = dice.choice(['encode', 'encode', 'count', 'vocab', 'build', 'build', *_LINES])
    room.write('text', _TEXT)
    room.write('tsv', b'a b\tc\td\nthe\tline\tx\n' * 3)
    room.write('vocab', SOUND_VOCABULARY)
    line = list(_LINES[command])
    if command in _PAIRS and dice.random() < 0.3:
        line[:2] = ['--tsv', 'tsv']
    parser = command_parser()._subparsers._group_actions[0].choices[command]
    options = [each for each in parser._actions if each.option_strings and each.dest not in _PATHS]
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        if dice.random() < 0.75:
            line += _draw_option(dice, dice.choice(options))
        else:
            line += dice.choice(_BEAMS)
    if any('beam' in word for word in line):
        line += ['--min-count-range', '1:2']  # a round takes seconds, and few do
    if dice.random() < 0.1:
        del line[dice.randrange(len(line))]
    if dice.random() < 0.03:
        command = dice.choice(['', 'bild', 'BUILD', '\udcff', '-', 'encode '])
    room.run(command, *line, stdin=b'2 3\n', may_change=_MADE, may_finish=_COUNTS)


def _draw_option(dice: random.Random, option: argparse.Action) -> list[str]:
    name = option.option_strings[-1]
    if option.nargs == 0:
        return [name] if dice.random() < 0.9 else [f'{name}=x']
    if dice.random() < 0.05:
        return [name]
    fitting = {
        'positive': _NUMBERS, 'int': _NUMBERS, 'byte_size': _SIZES,
        'columns': _LISTS, 'min_count_range': _LISTS, 'subtoken_length': _NUMBERS,
        'vocab_sample': _SAMPLES, 'filter_list': _FILTERS,
    }.get(getattr(option.type, '__name__', ''), _NUMBERS if option.type else _STRINGS)  # fmt: skip
    if option.choices and dice.random() < 0.6:
        value = dice.choice(list(option.choices))
    elif dice.random() < 0.8:
        value = dice.choice(fitting)
    else:
        value = dice.choice(dice.choice([_NUMBERS, _SIZES, _TIMES, _LISTS, _STRINGS, _SAMPLES]))
    return [f'{name}={value}'] if dice.random() < 0.5 else [name, value]
