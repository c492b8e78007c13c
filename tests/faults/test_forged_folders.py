"""Forged folders: `verify --root` finds an edit, or no reader's result changes.

Two hundred edits of each kind of folder: `FUZZ_CASES=200 pytest -n 0 tests/faults/test_forged_folders.py`.
"""

import json
import os
import random
import shutil

import pytest
from dataset_files import manifest_of
from forged_folders import all_edits, changed_readings, copy_of, readings
from jobs import succeed
from small_tokenizer import TOKENIZER

from pipelines.trust.verify import verify_folder
from tokcore.errors import InputError

SEED = int(os.environ.get('FUZZ_SEED', '0'))
CASES = int(os.environ.get('FUZZ_CASES', '12'))

LINES = [f'the {word} of {number} ab' for number in range(12) for word in ('cat', 'day', 'Äpfel')]
BYTES, WORDPIECE = ['--scheme', 'byte'], ['--scheme', 'wordpiece', '--vocab-size', 60]
KINDS = ['pairs', 'published', 'learned', 'flat', 'megatron', 'nanogpt']


def write_tokenizer(folder):
    """Writes a byte-level tokenizer as a hub has it."""
    folder.mkdir()
    for name, value in {
        'tokenizer.json': TOKENIZER,
        'tokenizer_config.json': {'eos_token': '<|end|>', 'model_max_length': 9},
        'special_tokens_map.json': {'eos_token': '<|end|>'},
    }.items():
        (folder / name).write_text(json.dumps(value))


@pytest.fixture(scope='module')
def originals(tmp_path_factory):
    """A small dataset of each kind."""
    above = tmp_path_factory.mktemp('originals')
    text, other = above / 'text', above / 'other'
    text.write_text(''.join(f'{line}\n' for line in LINES))
    other.write_text(''.join(f'{line[::-1]}\n' for line in LINES))
    write_tokenizer(above / 'hub')
    pairs = ['--source', text, '--target', other]
    commands = {
        'pairs': ['build', *pairs, '--vocab-size', 60, '--dev-share', '20%'],
        'published': ['encode', '--text', text, '--vocab', above / 'hub'],
        'learned': ['build', '--text', text, *WORDPIECE, '--output-format', 'parquet'],
        'flat': ['build', *pairs, *BYTES, '--template', '$A', '--output-format', 'flat'],
        'megatron': ['build', '--text', text, *BYTES, '--output-format', 'megatron'],
        'nanogpt': ['build', '--text', text, *BYTES, '--output-format', 'nanogpt'],
    }
    for kind, command in commands.items():
        shards = [] if kind == 'nanogpt' else ['--shards', 2]
        succeed(*command, '--name', 'd', *shards, '--workers', 1, '--output', above / kind)
        for counts in (above / kind).glob('counts*'):
            shutil.rmtree(counts)  # nobody reads a dataset's
    return {kind: above / kind for kind in KINDS}


def is_found(folder, root):
    try:
        return bool(verify_folder(str(folder), 1, root).findings)
    except InputError:
        return True


@pytest.mark.parametrize('kind', KINDS)
def test_an_edit_is_found_or_changes_no_reading(kind, originals, tmp_path):
    root, before = manifest_of(originals[kind])['root'], readings(originals[kind])
    assert not is_found(originals[kind], root)
    found, harmless = 0, []
    for edit in all_edits(random.Random(f'forged-{SEED}-{kind}'), originals[kind])[:CASES]:
        folder = copy_of(originals[kind], tmp_path / 'd')
        edit.apply(folder)
        if is_found(folder, root):
            found += 1
            continue
        changed = changed_readings(before, readings(folder))
        assert not changed, f'seed {SEED}: {edit.what}: not found, and {changed} differ'
        harmless.append(edit.what)
    print(
        f'{kind}: {found} edits are found, and {len(harmless)} change nothing:',
        *harmless,
        sep='\n  ',
    )
    assert found
