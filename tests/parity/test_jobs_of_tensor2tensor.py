"""The job files of Tensor2Tensor's problems: what those compile, and a whole one beside the original.

What the original reads of a problem is asked of its class as it is installed; a whole problem runs
through `generate_data` of the original, with archives of generated text where it expects what it
would have downloaded.
"""

import collections
import html
import itertools
import re
import sys
import tarfile
from pathlib import Path

import pytest
from dataset_files import manifest_of, read_shards
from generated_text import chinese_lines, english_lines
from jobs import succeed, write
from original_problems import problem_module

from pipelines.options.commands import known_commands
from pipelines.options.job import DatasetSource
from tokcore.corpus.formats import all_formats
from tokcore.options import declared

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parents[2] / 'deploy' / 'tensor2tensor'
JOBS = sorted(path.stem for path in FOLDER.glob('*.toml'))


def job_of(name):
    return tomllib.loads((FOLDER / f'{name}.toml').read_text())


def original_of(name):
    """A problem of the original, and the module that it is in."""
    module = problem_module(name[: len('translate_enzh')])
    return module.registry.problem(name), module


def datasets_of(name):
    """What the original reads for training and development, as its `compile_data` takes it."""
    problem, module = original_of(name)
    if name.startswith('translate_enzh'):
        train = module._NC_TRAIN_DATASETS
        if problem.approx_vocab_size > 2**13:
            train = [*train, *module._CWMT_TRAIN_DATASETS, *module._UN_TRAIN_DATASETS]
        return train, module._NC_TEST_DATASETS
    if name == 'translate_encs_wmt_characters':  # it defines no `source_data_files`
        return module._ENCS_TRAIN_DATASETS, module._ENCS_TEST_DATASETS
    return problem.source_data_files('train'), problem.source_data_files('dev')


def paths_of(dataset):
    paths = dataset['paths']
    return tuple(paths.values()) if isinstance(paths, dict) else (paths,)


def expected(url, spec):
    """The format of a dataset in a job file, what it reads, and further options."""
    if spec[0] == 'tmx':
        assert url.endswith(f'/{spec[1]}')
        return 'tmx-lines', (url,), {}
    if spec[0] == 'tsv':
        _, source, target, pattern = spec
        return 'tsv', (f'{url}!{pattern}',), {'columns': f'{source},{target}'}
    form = 'sgm' if all(name.endswith('sgm') for name in spec) else 'bitext'
    return form, tuple(f'{url}!{name}' for name in spec), {}


@pytest.mark.parametrize('name', JOBS)
def test_a_job_file_reads_what_the_problem_reads(name):
    problem, _ = original_of(name)
    job = job_of(name)
    for split, datasets in zip(('train', 'dev'), datasets_of(name), strict=True):
        assert len(job[split]) == len(datasets)
        for ours, (url, spec) in zip(job[split], datasets, strict=True):
            form, paths, options = expected(url, spec)
            assert (ours['format'], paths_of(ours)) == (form, paths)
            assert {key: ours[key] for key in options} == options
            kind = {'tmx-lines': 'tmx', 'tsv': 'tsv'}.get(form, 'txt')
            is_cleaned = split == 'train' and kind in (problem.datatypes_to_clean or ())
            assert ours.get('clean', []) == (['clean_en_xx'] if is_cleaned else [])


@pytest.mark.parametrize('name', JOBS)
def test_a_job_file_writes_what_the_problem_looks_for(name):
    problem, _ = original_of(name)
    job = job_of(name)
    output, vocabulary = job['output'], job['vocabulary']
    assert output['name'] == problem.dataset_filename() == name
    shards = {each['split']: each['shards'] for each in problem.dataset_splits}
    assert (output['shards'], 1) == (shards['train'], shards['eval'])
    assert not problem.inputs_prefix and not problem.targets_prefix and not problem.packed_length
    if problem.vocab_type == 'character':
        assert vocabulary == {'scheme': 'byte'}
    elif other := problem.use_vocab_from_other_problem:
        assert vocabulary == {'vocab': f'{other.name}/{other.vocab_filename}'}
        assert other.name in JOBS
    else:
        assert problem.vocab_filename == f'vocab.{name}.{vocabulary["vocab_size"]}.subwords'


def archive(path, members):
    """Writes an archive of texts by name, a `.tgz` or `.tar`."""
    with tarfile.open(path, 'w:gz' if path.suffix == '.tgz' else 'w') as tar:
        for name, lines in members.items():
            unpacked = write(path.parent / 'unpacked' / name, lines.encode())
            tar.add(unpacked, name)
            unpacked.unlink()
    return path


def sgm(lines):
    """Lines as WMT's development sets hold them."""
    segments = [f'<seg id="{number}">{line.strip()}</seg>' for number, line in enumerate(lines, 1)]
    return '\n'.join(['<srcset setid="x">', '<doc docid="y">', '<p>', *segments, '</p>', '</doc>'])


def texts(count, seed):
    """Sentences of both sides; some are blank on one side or both, some stand in white space."""
    pairs = []
    both = zip(english_lines(count, seed), chinese_lines(count, seed + 1), strict=True)
    for number, (source, target) in enumerate(both):
        if number % 17 == 3:
            source = '  ' + source + '\t\r'
        if number % 29 == 5:
            source = ''
        if number % 31 == 7:
            target = ' \u3000'
        if number % 7 == 2:
            source += ' ' + english_lines(1, number)[0]
            target += '. Und mehr.'
        pairs.append((source, target))
    return zip(*pairs, strict=True)


def as_file(lines):
    return ''.join(f'{line}\n' for line in lines)


def examples_of(files, problem, tensorflow):
    """A multiset of the examples in TFRecords, read by the original's specification."""
    fields, _ = problem.example_reading_spec()
    assert set(fields) == {'inputs', 'targets'}
    found = collections.Counter()
    for record in tensorflow.data.TFRecordDataset([str(each) for each in sorted(files)]):
        parsed = tensorflow.io.parse_single_example(record, fields)
        found[tuple(tuple(parsed[name].values.numpy().tolist()) for name in sorted(fields))] += 1
    return found


def seen_in_training(problem, folder, split):
    """The same multiset, as the original's own input pipeline gives it from a folder."""
    mode = {'train': 'train', 'dev': 'eval'}[split]
    examples = problem.dataset(mode, data_dir=str(folder), shuffle_files=False).as_numpy_iterator()
    return collections.Counter(
        tuple(tuple(example[name].tolist()) for name in ('inputs', 'targets'))
        for example in examples
    )


@pytest.fixture
def downloaded(tmp_path):
    """A folder of the archives that `translate_enzh_wmt8k` would download."""
    folder = tmp_path / 'downloaded'
    folder.mkdir()
    source, target = texts(500, 1)
    stem = 'training-parallel-nc-v13/news-commentary-v13.zh-en'
    archive(
        folder / 'training-parallel-nc-v13.tgz',
        {f'{stem}.en': as_file(source), f'{stem}.zh': as_file(target)},
    )
    source, target = texts(60, 2)
    archive(
        folder / 'dev.tgz',
        {
            'dev/newsdev2017-enzh-src.en.sgm': sgm(source),
            'dev/newsdev2017-enzh-ref.zh.sgm': sgm(target),
        },
    )
    return folder


def local_job(name, folder, path, **replaced):
    """A job file that reads from a folder what it would fetch."""
    text = (FOLDER / f'{name}.toml').read_text()
    urls = {path.partition('!')[0] for split in ('train', 'dev') for each in job_of(name)[split]
            for path in paths_of(each)}  # fmt: skip
    for url in urls:
        text = text.replace(url, f'{folder}/{url.rpartition("/")[2]}')
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return write(path, text.encode())


@pytest.mark.slow
def test_a_whole_problem_beside_the_original(downloaded, tmp_path, tensorflow, monkeypatch):
    name = 'translate_enzh_wmt8k'
    problem, _ = original_of(name)
    monkeypatch.setattr(type(problem), 'approx_vocab_size', 900)
    theirs = tmp_path / 'theirs'
    theirs.mkdir()
    problem.generate_data(str(theirs), str(downloaded))
    job = local_job(
        name, downloaded, tmp_path / 'job.toml', **{'vocab_size = 8192': 'vocab_size = 900'}
    )
    succeed('build', job)
    ours = tmp_path / name
    vocabularies = {path.name: path.read_bytes() for path in theirs.glob('vocab.*')}
    assert set(vocabularies) == {f'vocab.{name}.900.subwords.{side}' for side in ('en', 'zh')}
    assert {path.name: path.read_bytes() for path in ours.glob('vocab.*')} == vocabularies
    for split, shards in (('train', 10), ('dev', 1)):
        files = [path.name for path in sorted(theirs.glob(f'{name}-{split}-*'))]
        assert [path.name for path in sorted(ours.glob(f'{name}-{split}-*'))] == files
        assert len(files) == shards
        found = examples_of(ours.glob(f'{name}-{split}-*'), problem, tensorflow)
        assert found == examples_of(theirs.glob(f'{name}-{split}-*'), problem, tensorflow)
        assert sum(found.values()) == len([*itertools.chain(*read_shards(ours, split))])
        assert seen_in_training(problem, ours, split) == found
    # The original's encoders take the folder: its vocabularies have the names they look for.
    encoder = problem.feature_encoders(str(ours))['inputs']
    with tarfile.open(downloaded / 'training-parallel-nc-v13.tgz') as tar:
        lines = tar.extractfile(tar.getmembers()[0]).read().decode().split('\n')
    read = {line.replace('\r', '').strip() for line in lines}
    texts_found = {encoder.decode(example['inputs'][:-1]) for example in read_shards(ours)[0]}
    assert texts_found and texts_found <= read


TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
 <body>
{units} </body>
</tmx>
"""

UNIT = """  <tu>
    <tuv xml:lang="en">
     <seg>{source}</seg>
    </tuv>
    <tuv xml:lang="de">
     <seg>{target}</seg>
    </tuv>
  </tu>
"""


def as_tmx(pairs):
    units = ''.join(
        UNIT.format(source=html.escape(source), target=html.escape(target))
        for source, target in pairs
    )
    return TMX.format(units=units).encode()


@pytest.fixture
def downloaded_german(tmp_path):
    """What `translate_ende_wmt_clean_pc_clean32k` would download: four archives and a TMX."""
    folder = tmp_path / 'downloaded'
    folder.mkdir()
    name = 'translate_ende_wmt_clean_pc_clean32k'
    archives = {}
    for split in ('train', 'dev'):
        for number, (url, spec) in enumerate(datasets_of(name)[split == 'dev']):
            source, target = texts(150, 10 * number + len(split))
            if spec[0] == 'tmx':
                both = zip(source, target, strict=True)
                pairs = [(left.strip(), right.strip()) for left, right in both]
                write(folder / spec[1], as_tmx(pairs))  # as its name says, compressed
                continue
            members = archives.setdefault(url.rpartition('/')[2], {})
            members |= dict(zip(spec, map(as_file, (source, target)), strict=True))
    for file, members in archives.items():
        archive(folder / file, members)
    return folder


@pytest.mark.slow
def test_a_cleaned_problem_beside_the_original(
    downloaded_german, tmp_path, tensorflow, monkeypatch
):
    name, first = 'translate_ende_wmt_clean_pc_clean32k', 'translate_ende_wmt32k'
    problem, module = original_of(name)
    monkeypatch.setattr(module.TranslateEndeWmt32k, 'approx_vocab_size', 700)
    # What Python 3 no longer has, and the original asks for.
    monkeypatch.setattr(itertools, 'izip', zip, raising=False)
    theirs = tmp_path / 'theirs'
    theirs.mkdir()
    problem.generate_data(str(theirs), str(downloaded_german))
    smaller = {'32768': '700'}
    succeed('build', local_job(first, downloaded_german, tmp_path / 'first.toml', **smaller))
    succeed('encode', local_job(name, downloaded_german, tmp_path / 'job.toml', **smaller))
    [vocabulary] = theirs.glob('vocab.*')
    assert (tmp_path / first / vocabulary.name).read_bytes() == vocabulary.read_bytes()
    for split in ('train', 'dev'):
        ours = examples_of((tmp_path / name).glob(f'{name}-{split}-*'), problem, tensorflow)
        assert ours == examples_of(theirs.glob(f'{name}-{split}-*'), problem, tensorflow)
        assert sum(ours.values()) > 50
    lines = [each for each in manifest_of(tmp_path / name)['datasets'] if each['split'] == 'train']
    assert all(each['filtered']['clean_en_xx'] for each in lines)
    assert sum(each.get('added', 0) for each in lines)


@pytest.mark.slow
def test_a_problem_of_characters_with_packed_columns_beside_the_original(tmp_path, tensorflow):
    name = 'translate_encs_wmt_characters'
    problem, _ = original_of(name)
    folder = tmp_path / 'downloaded'
    folder.mkdir()
    archives = {}
    for number in (0, 1):  # training, development
        for url, spec in datasets_of(name)[number]:
            source, target = texts(40, len(archives) + 7 * number)
            members = archives.setdefault(url.rpartition('/')[2], {})
            if spec[0] == 'tsv':
                pairs = zip(source, target, strict=True)
                rows = [f'id\t0.5\t{right}\t{left.replace(chr(9), " ")}' for left, right in pairs]
                members['data.plaintext-format/01train.gz'] = as_file(rows)
            else:
                members |= dict(zip(spec, map(as_file, (source, target)), strict=True))
    for file, members in archives.items():
        archive(folder / file, members)
    theirs = tmp_path / 'theirs'
    theirs.mkdir()
    problem.generate_data(str(theirs), str(folder))
    succeed('build', local_job(name, folder, tmp_path / 'job.toml'))
    for split in ('train', 'dev'):
        ours = examples_of((tmp_path / name).glob(f'{name}-{split}-*'), problem, tensorflow)
        assert ours == examples_of(theirs.glob(f'{name}-{split}-*'), problem, tensorflow)
        assert sum(ours.values()) > 25


def test_the_page_names_keys_that_a_job_file_has():
    page = (FOLDER.parents[1] / 'docs' / 'coming-from.md').read_text()
    named = set(re.findall(r'`([a-z_]+) = ', page))
    assert {'clean', 'vocab_sample', 'keep_tabs', 'vocab_languages'} <= named
    known = {'paths', *(each.key for each in known_commands()['build'].options)}
    known |= {each.key for each in declared(DatasetSource)}
    known |= {each.key for kind in all_formats() for each in declared(kind)}
    known |= {each.key for each in known_commands()['encode'].options}
    known |= {'additional', 'approx_vocab_size', 'file_byte_budget'}  # of the original
    assert not named - known
