"""The README's commands, as typed: what a newcomer does first must work as it stands."""

import pathlib
import re
import shlex
import sys
import types

import pytest

from pipelines.cli.main import main

ROOT = pathlib.Path(__file__).parents[2]
README = (ROOT / 'README.md').read_text()


def command_blocks() -> list[str]:
    """The README's shell blocks, continued lines joined."""
    return [
        block.replace('\\\n', ' ') for block in re.findall(r'```bash\n(.*?)```', README, re.DOTALL)
    ]


def test_ci_runs_the_readmes_own_commands():
    ci = ' '.join((ROOT / '.ci' / 'run').read_text().replace('\\\n', ' ').split())
    install, test = command_blocks()[:2]
    build = install[install.index('tokbeam build') : install.index('--output')]
    assert ' '.join(build.split()) in ci
    assert 'pip install --quiet .' in ci
    for step in test.split('&&'):
        assert step.strip().replace('pip install', 'pip install --quiet') in ci


def test_the_first_command_builds_the_sample(tmp_path, monkeypatch, capfd):
    block = command_blocks()[0]
    words = shlex.split(block[block.index('tokbeam build') :].partition(';')[0])
    words[words.index('--output') + 1] = str(tmp_path / 'enzh')
    monkeypatch.chdir(ROOT / 'pipelines' / 'sample')
    assert main(words[1:]) == 0
    names = {path.name for path in (tmp_path / 'enzh').iterdir()}
    assert 'vocab.enzh.2048.subwords' in names
    assert {f'enzh-train-0000{shard}-of-00004' for shard in range(4)} <= names
    assert 'asked for' not in capfd.readouterr().err


def test_the_pipeline_of_ones_own_gives_what_the_command_gives(tmp_path, monkeypatch):
    [example] = re.findall(r'```python\n(import glob.*?)```', README, re.DOTALL)
    corpus = tmp_path / 'corpus'
    corpus.mkdir()
    for number in range(2):
        text = (ROOT / 'pipelines' / 'sample' / f'{["train", "dev"][number]}.en').read_bytes()
        (corpus / f'{number}.txt').write_bytes(text)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, 'README.md', 'exec'), {})
    command = 'build --text corpus/*.txt --name mine --vocab-size 1000 --shards 2 --output out'
    assert main(command.split()) == 0
    for name in ('mine-train-00000-of-00002', 'mine-train-00001-of-00002'):
        assert (tmp_path / 'records' / name).read_bytes() == (tmp_path / 'out' / name).read_bytes()
    learned = (tmp_path / 'out' / 'vocab.mine.1000.subwords').read_bytes()
    assert (tmp_path / 'vocab.subwords').read_bytes() == learned


@pytest.mark.parametrize('number', [2])
def test_the_command_on_own_files_is_one_that_tokbeam_takes(number, tmp_path, monkeypatch):
    data = tmp_path / 'data'
    data.mkdir()
    sample = ROOT / 'pipelines' / 'sample'
    for language in ('en', 'zh'):
        text = (sample / f'train.{language}').read_bytes()
        (data / f'train.0.{language}.gz').write_bytes(text)
        (data / f'dev.{language}').write_bytes((sample / f'dev.{language}').read_bytes())
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command_blocks()[number])
    assert main(words[1:]) == 0
    built = data / 'enzh'
    assert len(list(built.glob('enzh-train-?????-of-00100'))) == 100
    assert len(list(built.glob('enzh-dev-?????-of-00002'))) == 2
    assert (built / 'vocab.enzh.32768.subwords.inputs').exists()
    assert (built / 'tokbeam.json').exists()


def test_the_plain_python_example_runs(tmp_path, monkeypatch):
    sample = ROOT / 'pipelines' / 'sample'
    folder = tmp_path / 'data' / 'enzh'
    assert (
        main(
            ['vocab', '--text', str(sample / 'train.en'), '--vocab-size', '1000', '--output']
            + [str(folder / 'vocab.enzh.32768.subwords.inputs')]
        )
        == 0
    )
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r'```python\n(.*?)```', README, re.DOTALL)
    exec(next(example for example in examples if 'SubwordTextEncoder' in example), {})


@pytest.fixture
def enzh(tmp_path, monkeypatch):
    """The folder that the README reads, in the working directory."""
    sample = ROOT / 'pipelines' / 'sample'
    command = ['build', '--source', sample / 'train.en', '--target', sample / 'train.zh']
    asked = ['--name', 'enzh', '--vocab-size', 1500, '--output', tmp_path / 'data' / 'enzh']
    assert main([*map(str, [*command, *asked])]) == 0
    monkeypatch.chdir(tmp_path)


def reading_examples():
    section = README[README.index('## Reading') : README.index('## Other vocabularies')]
    return re.findall(r'```python\n(.*?)```', section, re.DOTALL)


def test_reading_with_numpy_and_tensorflow_is_as_shown(enzh, tensorflow):
    numpy, by_tensorflow, _, _, records, _ = reading_examples()
    assert all(len(each.strip().splitlines()) <= 12 for each in reading_examples())
    names: dict = {}
    exec(numpy, names)
    assert {'inputs', 'targets', 'inputs_length', 'targets_length'} == names['batch'].keys()
    assert len(next(names['batches'])['inputs'])
    exec(by_tensorflow, names)
    plain = names['dataset'].batches('train', tokens_per_batch=4096, max_length=256)
    for batch, ((inputs, given), wanted) in zip(plain, names['examples'], strict=True):
        assert (inputs.numpy() == batch['inputs']).all()
        assert (given.numpy() == batch['targets'][:, :-1]).all()
        assert (wanted.numpy() == batch['targets'][:, 1:]).all()
    exec(records, names)
    assert sum(1 for _ in names['dataset']) == 400


class StandIn:
    """What PyTorch and grain ask of classes that are derived from theirs."""

    def __iter__(self):
        return self


@pytest.mark.parametrize('workers', [0, 3])
def test_reading_with_pytorch_is_as_shown(enzh, monkeypatch, workers):
    workers = [types.SimpleNamespace(num_workers=workers, id=each) for each in range(workers)]
    torch = types.ModuleType('torch')
    torch.utils = types.ModuleType('torch.utils')
    torch.utils.data = types.ModuleType('torch.utils.data')
    torch.utils.data.IterableDataset = StandIn
    torch.utils.data.DataLoader = lambda dataset, batch_size, num_workers: dataset
    for name, module in (('', torch), ('.utils', torch.utils), ('.utils.data', torch.utils.data)):
        monkeypatch.setitem(sys.modules, f'torch{name}', module)
    numpy, _, pytorch, *_ = reading_examples()
    names: dict = {}
    exec(numpy, names)
    exec(pytorch, names)
    rows = 0
    for worker in workers or [None]:
        torch.utils.data.get_worker_info = lambda worker=worker: worker
        rows += sum(len(batch['inputs']) for batch in names['loader'])
    assert rows == 400


def test_reading_with_grain_is_as_shown(enzh, monkeypatch):
    grain = types.ModuleType('grain')
    grain.DatasetIterator = StandIn
    monkeypatch.setitem(sys.modules, 'grain', grain)
    numpy, _, _, by_grain, *_ = reading_examples()
    names: dict = {}
    exec(numpy, names)
    exec(by_grain, names)
    stream = names['Stream']()
    next(stream)
    state = stream.get_state()
    expected = [each['inputs'].tolist() for each in stream]
    stream.set_state(state)
    assert [each['inputs'].tolist() for each in stream] == expected and expected


def test_byte_pairs_of_ones_own_text_are_loaded_by_tokenizers_and_transformers(
    transformers, tokenizers, tmp_path, monkeypatch, capsys, filter_lines
):
    data = tmp_path / 'data'
    data.mkdir()
    text = (ROOT / 'pipelines' / 'sample' / 'train.en').read_bytes()
    (data / 'corpus.txt').write_bytes(text)
    monkeypatch.chdir(tmp_path)
    [command] = [block for block in command_blocks() if '--scheme bpe --vocab-size' in block]
    words = shlex.split(command.replace('\\\n', ' '))
    words[words.index('--vocab-size') + 1] = '500'
    assert main(words[1:]) == 0
    examples = re.findall(r'```python\n(.*?)```', README, re.DOTALL)
    [example] = [each for each in examples if 'BpeTokenizer' in each]
    names: dict = {}
    exec(example, names)
    fast = names['Tokenizer'].from_file('data/tokenizer.json')
    for line in text.decode().splitlines():
        ids = names['BpeTokenizer'].load('data/tokenizer.json').encode(line)
        assert ids == fast.encode(line).ids
    [commands] = [block for block in command_blocks() if '--preset subword-nmt' in block]
    learn, count, _ = commands.strip().splitlines()
    assert main(shlex.split(learn.replace('8000', '100'))[1:]) == 0
    assert main(shlex.split(count)[1:]) == 0
    entries = (data / 'bpe.vocab').read_text().split('\n')
    pieces = filter_lines(text, 'tokenize', '--vocab', data / 'bpe.codes', '--pieces').decode()
    assert set(pieces.split()) == {*entries[3:-1]}


def test_a_bert_vocabulary_of_ones_own_text_is_loaded_by_transformers(
    transformers, tmp_path, monkeypatch
):
    data = tmp_path / 'data'
    data.mkdir()
    text = (ROOT / 'pipelines' / 'sample' / 'train.en').read_bytes()
    (data / 'corpus.txt').write_bytes(text)
    monkeypatch.chdir(tmp_path)
    [command] = [block for block in command_blocks() if '--scheme wordpiece' in block]
    words = shlex.split(command)
    words[words.index('--vocab-size') + 1] = '500'
    assert main([*words[1:], '--min-count-range', '2:1000']) == 0
    examples = re.findall(r'```python\n(.*?)```', README, re.DOTALL)
    [example] = [each for each in examples if 'AutoTokenizer' in each]
    names: dict = {}
    exec(example, names)
    for line in text.decode().splitlines():
        ids = names['WordPieceTokenizer'].load('data/bert/vocab.txt').encode(line)
        assert ids == names['fast'].encode(line)
