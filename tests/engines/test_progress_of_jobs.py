"""What commands tell of their progress: all work that is counted is done in the end."""

import gzip
import random
import re
import signal
import subprocess

import pytest
from generated_text import as_bitext, as_tsv, english_lines, pairs_with_gaps
from jobs import interruptible_command, succeed, write
from pseudo_terminal import PseudoTerminal
from sizes import command_of

from pipelines.engines.progress import StageBegan, StageEnded, WorkDone, listening

PAIRS = pairs_with_gaps(1000, 5)
INPUTS = {'tsv': 1, 'bitext': 2, 'gzip': 2, 'gzip bitext': 1}
"""With the number of workers."""


@pytest.fixture
def corpus(tmp_path):
    """Writes a corpus, of which a part is gzip; returns its options."""

    def make(kind):
        texts = {'tsv': as_tsv(PAIRS)}
        if 'bitext' in kind:
            texts = dict(zip(('source', 'target'), as_bitext(PAIRS), strict=True))
        if 'gzip' in kind:
            first = next(iter(texts))
            texts[first] = gzip.compress(texts[first])
        return [
            word
            for role, text in texts.items()
            for word in (f'--{role}', write(tmp_path / f'corpus.{role}', text))
        ]

    return make


@pytest.fixture
def told():
    events = []
    with listening(events.append):
        yield events


def works(events):
    """By stage and work the events of it; kernels are compiled only where no test has used them."""
    found = {}
    for each in events:
        if isinstance(each, WorkDone) and each.stage != 'compile kernels':
            found.setdefault((each.stage, each.work), []).append(each)
    return found


def assert_all_done(events):
    for each in works(events).values():
        amounts = [event.done for event in each]
        assert amounts[0] == 0 and amounts == sorted(amounts)
        assert len({event.total for event in each}) == 1
        assert amounts[-1] == each[-1].total > 0
    began = [each.stage for each in events if isinstance(each, StageBegan)]
    ended = [each.stage for each in events if isinstance(each, StageEnded)]
    assert sorted(began) == sorted(ended)


BUILD = ['build', '--name', 'n', '--vocab-size', 600, '--shards', 3, '@item-size', '4KiB']


@pytest.mark.parametrize(
    ('kind', 'workers'),
    [
        pytest.param(*each, marks=() if each[0] in ('tsv', 'gzip bitext') else pytest.mark.slow)
        for each in INPUTS.items()
    ],
)
def test_a_build_does_all_the_work_that_it_tells_of(told, corpus, tmp_path, kind, workers):
    said = succeed(*BUILD, *corpus(kind), '--output', tmp_path / 'out', '--workers', workers)
    assert_all_done(told)
    found = works(told)
    assert {
        ('count', 'reading'),
        ('encode', 'reading'),
        ('write shards', 'merging'),
    } <= found.keys()
    assert (('index', 'indexing') in found) == ('bitext' in kind)
    merged = found['write shards', 'merging'][-1]
    assert f'{merged.total:,} examples' in said and merged.unit == 'examples'
    reading = found['count', 'reading']
    if 'gzip' not in kind:
        assert len(reading) > 5


def test_work_goes_on_within_a_file_and_is_counted_as_it_is_stored(told, tmp_path):
    """Where its lines are counted, sampled and read; the sample takes two passes."""
    dice = random.Random(5)
    text = ''.join(f'{dice.getrandbits(400):x}\n' for _ in range(8_000)).encode()
    files = [write(tmp_path / f'{side}.gz', text) for side in 'ab']
    size = sum(file.stat().st_size for file in files)
    pairs = ['--source', files[0], '--target', files[1]]
    succeed('count', *pairs, '--vocab-sample', 't2t:1MB', '--output', tmp_path / 'out')
    assert_all_done(told)
    found = works(told)
    assert {each[0] for each in found} == {'index', 'sample', 'count'}
    for (stage, _), events in found.items():
        passes = 2 if stage == 'sample' else 1
        assert (events[-1].total, events[-1].unit) == (passes * size, 'B compressed')
        assert len({event.done for event in events}) > 12


def test_the_runners_own_shuffle_counts_what_is_read(told, corpus, tmp_path):
    succeed(*BUILD, *corpus('tsv'), '--output', tmp_path / 'out', '@shuffle=engine')
    assert_all_done(told)
    assert ('encode', 'reading') in works(told)


@pytest.mark.parametrize('workers', [1, 2])
def test_steps_of_a_unigram_model_are_work_of_as_many_threads(told, tmp_path, workers, monkeypatch):
    from tokcore.unigram import learner

    asked = []

    def sum_shards(*arguments):
        asked.append(arguments[-1])
        return counted(*arguments)

    counted = learner.sum_shards
    monkeypatch.setattr(learner, 'sum_shards', sum_shards)
    text = write(tmp_path / 'text', '\n'.join(english_lines(300, 1)).encode())
    output = ['--output', tmp_path / 'model', '--workers', workers]
    succeed('vocab', '--text', text, '--scheme', 'unigram', '--vocab-size', 200, *output)
    assert_all_done(told)
    steps = works(told)['vocab', 'steps of model']
    assert len(steps) == len(asked) + 1 and steps[-1].unit == 'steps'
    assert set(asked) == {workers}


def test_merging_counts_is_work_too(told, corpus, tmp_path):
    options = corpus('tsv')
    for name in ('a', 'b'):
        succeed('count', *options, '--output', tmp_path / name)
    told.clear()
    succeed('count', '--counts', tmp_path / 'a', tmp_path / 'b', '--output', tmp_path / 'c')
    assert_all_done(told)
    assert works(told)['merge', 'merging counts'][-1].unit == 'files'


def test_a_result_that_is_there_is_no_work(told, corpus, tmp_path):
    line = ['count', *corpus('tsv'), '--output', tmp_path / 'out']
    succeed(*line)
    told.clear()
    assert 'already done' in succeed(*line)
    assert not works(told)


@pytest.mark.slow
def test_worker_processes_tell_of_all_their_work(told, corpus, tmp_path):
    job = ['--name', 'n', '--scheme', 'byte', '--shards', 3, '--output', tmp_path / 'out']
    processes = ['--direct_running_mode=multi_processing', '--direct_num_workers=2']
    succeed('build', *job, *corpus('bitext'), *processes)
    assert_all_done(told)
    works_of_files = {('index', 'indexing'), ('encode', 'reading'), ('write shards', 'merging')}
    assert works(told).keys() == works_of_files
    assert not [*tmp_path.rglob('progress')]


def test_quiet_tells_nothing_but_warnings(corpus, tmp_path):
    options = corpus('tsv')
    assert succeed('count', *options, '--output', tmp_path / 'out', '--progress=none') == ''
    bad = write(tmp_path / 'bad.tsv', as_tsv(PAIRS) + b'\xff\t\xff\n')
    rejecting = ['--tsv', bad, '--on-error=skip', '--progress=none']
    [line] = succeed('count', *rejecting, '--output', tmp_path / 'other').splitlines()
    assert '1 line was left out' in line
    assert 'in ' in succeed('count', *options, '--output', tmp_path / 'third')


def on_a_terminal(*arguments):
    """What a command of its own process writes to the terminal that is its stderr."""
    terminal = PseudoTerminal()
    command = command_of(*arguments)
    ended = subprocess.run(command, stderr=terminal.stream)
    said = terminal.close()
    assert ended.returncode == 0, said
    return said


def test_a_terminal_has_a_bar(corpus, tmp_path):
    line = ['count', *corpus('tsv'), '@item-size', '8KiB', '--output', tmp_path / 'out']
    said = on_a_terminal(*line)
    assert re.search(r'\rcount: +\d+%\|', said)
    assert said.rpartition('tokbeam: ')[2].startswith('next: ')


@pytest.mark.slow
def test_a_terminal_has_none_if_quiet(corpus, tmp_path):
    line = ['count', *corpus('tsv'), '@item-size', '8KiB', '--output', tmp_path / 'out']
    assert on_a_terminal(*line, '--progress=none') == ''


@pytest.mark.slow
def test_a_signal_ends_the_bar_with_a_line_of_its_own(corpus, tmp_path):
    terminal = PseudoTerminal()
    line = [*BUILD, *corpus('tsv'), '--output', tmp_path / 'out', '--learner=beam']
    command = interruptible_command(*line)
    running = subprocess.Popen(command, stderr=terminal.stream)
    assert terminal.wait_for('vocab (2 of 3) [')
    running.send_signal(signal.SIGINT)
    assert running.wait() == 130
    before, _, after = terminal.close().partition('tokbeam: interrupted')
    assert before.endswith('\r\n')
    assert after.startswith('; kept: the counts') and after.endswith(' to continue\r\n')
