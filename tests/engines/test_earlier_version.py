"""What version 0.1.0 at 6b30307 has finished is finished: a second run of today's only says so."""

import json
import os
import shutil
from pathlib import Path

import pytest
from dataset_files import files_of, manifest_of
from earlier_revisions import run_all
from generated_text import as_bitext, as_tsv, english_lines, pairs_with_gaps
from jobs import succeed, write
from new_records import all_without_new_records, without_new_records

VOCABULARY = ['--vocab-size', 700]
DATASET = ['--name', 'small', '--shards', 3]


def commands_in(root: Path) -> dict[str, list[object]]:
    """Command lines by what their outputs below `root` are called; some go on from others."""
    corpus = ['--tsv', root / 'pairs.tsv']
    bad = ['--text', root / 'bad.txt', '--on-error', 'skip']
    known = {
        'counts': ['count', *corpus],
        'counts.bad': ['count', *bad],
        'counts.merged': ['count', '--merge', root / 'counts', root / 'counts.bad'],
        'vocab': ['vocab', '--counts', root / 'counts', *VOCABULARY],
        'vocab.beam': [
            'vocab', '--counts', root / 'counts.merged', *VOCABULARY, '--learner', 'beam',
            '--min-count-range', '5:8',
        ],
        'vocab.text': ['vocab', '--text', root / 'good.txt', *VOCABULARY],
        'below/vocab.bad': ['vocab', *bad, *VOCABULARY],
        'files': ['encode', *corpus, '--vocab', root / 'vocab', *DATASET, '--shuffle', 'files'],
        'engine': ['encode', *corpus, '--vocab', root / 'vocab', *DATASET, '--shuffle', 'engine'],
        'rejects': ['encode', *bad, '--vocab', root / 'vocab.text', *DATASET],
        'build': [
            'build', '--source', root / 'a.en', '--target', root / 'a.zh', '--dev-tsv',
            root / 'pairs.tsv', *VOCABULARY, *DATASET,
        ],
    }  # fmt: skip
    return {name: [*command, '--output', root / name] for name, command in known.items()}


NAMES = list(commands_in(Path()))


@pytest.fixture(scope='module')
def root(packages_of_6b30307, tmp_path_factory) -> Path:
    """A folder with a corpus and what 6b30307 makes of it."""
    root = tmp_path_factory.mktemp('work') / 'root'
    pairs = pairs_with_gaps(200, seed=5)
    source, target = as_bitext(pairs)
    good = '\n'.join(english_lines(200, seed=6)).encode()
    write(root / 'pairs.tsv', as_tsv(pairs))
    write(root / 'a.en', source)
    write(root / 'a.zh', target)
    write(root / 'good.txt', good)
    write(root / 'bad.txt', b'not\xff UTF-8\n' + good + b'\n\xc3\x28\n')
    (root / 'below').mkdir()
    run_all(packages_of_6b30307, list(commands_in(root).values()))
    return root


def states_in(root: Path) -> dict[str, tuple]:
    """All files with their content and what else changes when one is written again."""
    files = [path for path in root.rglob('*') if path.is_file()]
    states = [(path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in files]
    return {str(path.relative_to(root)): state for path, state in zip(files, states)}


@pytest.mark.parametrize('name', NAMES)
def test_it_is_already_done(root, name):
    command = commands_in(root)[name]
    before = states_in(root)
    assert f'{command[0]}: already done in {command[-1]}' in succeed(*command)
    assert states_in(root) == before


@pytest.mark.parametrize('name', NAMES)
def test_it_is_already_done_where_inputs_were_touched(root, tmp_path, name):
    copy = tmp_path / 'root'
    shutil.copytree(root, copy)
    inputs = [path for path in copy.rglob('*') if path.suffix in ('.tsv', '.en', '.zh', '.txt')]
    for path in [*inputs, *copy.glob('counts*/*.parquet')]:
        os.utime(path, (1e9, 1e9))
    before = states_in(copy)
    command = commands_in(copy)[name]
    assert 'already done' in succeed(*command)
    after = states_in(copy)
    assert after.keys() == before.keys()
    changed = {each for each in after if after[each] != before[each]}
    assert {each.rpartition('/')[2].removeprefix(f'{Path(name).name}.') for each in changed} == {
        'tokbeam.run.json'
    }


def test_counts_are_learned_from(root, tmp_path):
    for name in ('vocab', 'vocab.beam'):
        command = commands_in(root)[name]
        succeed(*command[:-1], tmp_path / name)
        assert (tmp_path / name).read_bytes() == (root / name).read_bytes()
        manifest = f'{name}.tokbeam.json'
        now, before = ((folder / manifest).read_bytes() for folder in (tmp_path, root))
        assert without_new_records(manifest, now) == without_new_records(manifest, before)


def test_counts_of_a_build_that_was_not_finished_are_taken_up(root, tmp_path):
    shutil.copytree(root / 'build', tmp_path / 'build')
    whole = files_of(tmp_path / 'build')
    (tmp_path / 'build' / 'tokbeam.json').unlink()
    counts = states_in(tmp_path / 'build' / 'counts.inputs')
    said = succeed(*commands_in(root)['build'][:-1], tmp_path / 'build')
    assert 'count: already done' in said and 'build: already done' not in said
    assert states_in(tmp_path / 'build' / 'counts.inputs') == counts
    made = files_of(tmp_path / 'build')
    assert all_without_new_records(made) == all_without_new_records(whole)


def test_an_overwritten_vocabulary_leaves_no_rejected_lines_where_they_were(root, tmp_path):
    copy = tmp_path / 'root'
    shutil.copytree(root, copy)
    below = copy / 'below'
    lines = (below / 'rejected' / 'train.invalid_utf8.jsonl').read_bytes()
    succeed(*commands_in(copy)['below/vocab.bad'], '--overwrite')
    moved = below / 'vocab.bad.rejected' / 'train.invalid_utf8.jsonl'
    assert moved.read_bytes() == lines and not (below / 'rejected').exists()
    before, now = (
        manifest_of(folder, 'vocab.bad.tokbeam.json') for folder in (root / 'below', below)
    )
    [entry] = now.pop('rejected')
    [earlier] = before.pop('rejected')
    left = [
        without_new_records('tokbeam.json', json.dumps(each).encode()) for each in (now, before)
    ]
    assert left[0] == left[1]
    assert entry == {**earlier, 'name': 'vocab.bad.rejected/train.invalid_utf8.jsonl'}
    assert json.loads(lines.splitlines()[0])['file'] == 'bad.txt'
