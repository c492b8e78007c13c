"""The commands as calls: the same files, checks and resume as on the command line."""

import logging
import os
import signal

import pytest
from jobs import succeed, write

import pipelines
from pipelines.engines.progress import WorkDone, listening
from pipelines.transforms.read import READING
from tokcore.errors import InputError


def test_build_makes_what_the_command_makes(small, tmp_path):
    options = {'name': 'small', 'shards': 2, 'vocab_size': 900, 'max_subtoken_length': 30}
    mine = pipelines.build(tsv=small.tsv, output=tmp_path / 'mine', workers=1, **options)
    succeed('build', '--tsv', small.tsv, '--name', 'small', '--shards', 2, '--vocab-size', 900,
            '--max-subtoken-length', 30, '--output', tmp_path / 'theirs')  # fmt: skip
    assert mine.path == str(tmp_path / 'mine')
    for path in [*mine.vocabularies.values(), *mine.files, f'{mine.path}/tokbeam.json']:
        name = path.removeprefix(mine.path + '/')
        assert (tmp_path / 'mine' / name).read_bytes() == (tmp_path / 'theirs' / name).read_bytes()
    assert sorted(mine.vocabularies) == ['inputs', 'targets'] and len(mine.files) == 2
    assert repr(mine) == f'<Result of build in {mine.path}>'
    lines = str(mine).splitlines()
    assert len(lines) == 5 and max(map(len, lines)) < 200
    assert lines[0] == f'build: {mine.path}' and lines[-1] == f'root: {mine.manifest.root}'
    assert lines[1] == f'examples: train {mine.manifest.lines[0].examples:,}'


def test_a_job_is_made_once_and_another_is_refused(small, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    job = pipelines.build_job(tsv=small.tsv, output=tmp_path / 'out', name='x', scheme='byte')
    made = pipelines.build(job)
    caplog.clear()
    assert made == pipelines.build(job) and 'already done' in caplog.text
    with pytest.raises(TypeError, match='leave them out'):
        pipelines.build(job, seed=3)
    with pytest.raises(InputError, match='--seed'):
        pipelines.build(tsv=small.tsv, output=tmp_path / 'out', name='x', scheme='byte', seed=3)
    job_file = tmp_path / 'job.toml'
    job_file.write_text(
        f'[[train]]\nformat = "tsv"\npaths = ["{small.tsv}"]\n[output]\nname = "x"\n'
        f'output = "{tmp_path / "of-file"}"\n[vocabulary]\nscheme = "byte"\n'
    )
    of_file = pipelines.build(job_file, seed=7)
    assert of_file.manifest.options['seed'] == 7 and of_file.manifest.options['scheme'] == 'byte'


def test_count_vocab_and_encode_follow_one_another(small, tmp_path):
    counted = pipelines.count(
        tsv=str(small.tsv), output=tmp_path / 'counts', scheme=['subword', 'word'], side='both'
    )
    assert sorted(counted.manifests) == [f'{counted.path}/{name}' for name in ('subword', 'word')]
    vocabularies = {
        learner: pipelines.vocab(
            counts=tmp_path / 'counts' / 'subword', vocab_size=900, learner=learner,
            min_count_range=(2, 9),
            output=tmp_path / learner,
        ).path
        for learner in ('memory', 'beam')
    }  # fmt: skip
    assert (tmp_path / 'memory').read_bytes() == (tmp_path / 'beam').read_bytes()
    encoded = pipelines.encode(
        tsv=small.tsv, vocab=vocabularies['beam'], name='x', shards=1, output=tmp_path / 'shards'
    )
    assert encoded.files == [str(tmp_path / 'shards' / 'x-train-00000-of-00001')]


@pytest.mark.parametrize(
    ('options', 'error', 'reason'),
    [
        ({}, InputError, '--name, --output'),
        ({'vocab_sise': 3}, TypeError, "did you mean 'vocab_size'"),
        ({'progress': 'none'}, TypeError, 'no option'),
        ({'vocab_size': '32k'}, InputError, 'not a whole number'),
        ({'vocab_size': True}, TypeError, 'a word or a number'),
        ({'scheme': 'wordpeice'}, InputError, "did you mean 'wordpiece'"),
        ({'lower_case': False}, InputError, '--lower-case goes with --scheme=wordpiece'),
        ({'scheme': 'wordpiece', 'min_count_range': (5, 1)}, InputError, 'not a range'),
        ({'tsv': 'missing.tsv'}, InputError, 'missing.tsv does not exist'),
        ({'on_error': 'ignore'}, InputError, 'is not stop, skip'),
        ({'overwrite': 1}, TypeError, 'true or false'),
        ({'beam_options': ['--runer=x']}, InputError, 'belongs to no option'),
        ({'beam_options': '--runner=x'}, TypeError, 'in a list'),
        ({'job': 3}, TypeError, 'neither a job'),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_any_work(tmp_path, monkeypatch, options, error, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'a.tsv').write_text('a\tb\n')
    whole = {'tsv': 'a.tsv', 'name': 'x', 'output': 'out', 'vocab_size': 300}
    with pytest.raises(error, match=reason):
        pipelines.build(**({**whole, **options} if options else {}))
    assert not (tmp_path / 'out').exists()


class Interrupt:
    """Sends this process a SIGINT when half of the text is read, as Jupyter does."""

    is_sent = False

    def __call__(self, event):
        is_encoding = isinstance(event, WorkDone) and (event.stage, event.work) == (
            'encode',
            READING,
        )
        if is_encoding and event.done > event.total // 2 and not self.is_sent:
            self.is_sent = True
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_call_keeps_what_it_has_encoded(tmp_path):
    text = write(tmp_path / 'text', b''.join(b'the line %d\n' % each for each in range(400_000)))
    options = {'text': text, 'scheme': 'byte', 'name': 'd', 'shards': 2, 'workers': 1}
    with pytest.raises(KeyboardInterrupt, match='kept: .*encoded; make the same call to continue'):
        with listening(Interrupt()):
            pipelines.build(**options, output=tmp_path / 'out')
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not (tmp_path / 'out' / 'tokbeam.json').exists()
    assert [*(tmp_path / 'out').rglob('run-*')]
    made = pipelines.build(**options, output=tmp_path / 'out')
    assert made.manifest.root == pipelines.build(**options, output=tmp_path / 'whole').manifest.root
