"""Every code block of the README and of `docs/` is run, page by page, in the order of the page.

Shell blocks run with the `tokbeam` of this checkout, Python blocks share their names, and a job file
is built. A block below a comment `<!-- needs … -->` is not run here; the comment says what does.
"""

import gzip
import json
import shlex
from pathlib import Path

import option_table
import pytest
import zstandard
from dataset_files import manifest_of
from jobs import succeed
from pages import ROOT, blocks_of, is_installation, run_blocks, run_shell

from tokcore import open_dataset
from tokcore.corpus.formats import all_formats

SAMPLE = ROOT / 'pipelines' / 'sample'
README = (ROOT / 'README.md').read_text()
FIRST_COMMAND = next(
    block.code.replace('\\\n', ' ')
    for block in blocks_of('README.md')
    if block.code.startswith('tokbeam build')
)
CORPORA = (ROOT / 'docs' / 'corpora.md').read_text()
RECIPES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob('docs/recipe-*.md'))
"""Pages that train a model, each run from a folder with the sample alone: `test_models_learn.py`."""

PAGES = [
    'README.md',
    *sorted({str(path.relative_to(ROOT)) for path in ROOT.glob('docs/*.md')} - {*RECIPES}),
]
LONG_PAGES = ['docs/corpora.md', 'docs/reading.md', 'docs/schemes.md', 'docs/trust.md']


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the pages read."""
    texts = {}
    for name in ('train.en', 'train.zh', 'dev.en', 'dev.zh'):
        texts[name] = (SAMPLE / name).read_bytes()
        (tmp_path / name).write_bytes(texts[name])
    data = tmp_path / 'data'
    data.mkdir()
    (tmp_path / 'corpus.txt').write_bytes(texts['train.en'])
    (data / 'corpus.txt').write_bytes(texts['train.en'])
    for language in ('en', 'zh'):
        packed = gzip.compress(texts[f'train.{language}'])
        (data / f'train.0.{language}.gz').write_bytes(packed)
        (data / f'dev.{language}').write_bytes(texts[f'dev.{language}'])
    pairs = list(
        zip(*(texts[name].decode().splitlines() for name in ('train.en', 'train.zh')), strict=True)
    )
    (tmp_path / 'pairs.tsv').write_text(''.join(f'{en}\t{zh}\n' for en, zh in pairs))
    (tmp_path / 'pairs.jsonl').write_text(
        ''.join(json.dumps({'pair': {'en': en, 'zh': zh}}) + '\n' for en, zh in pairs)
    )
    _write_inputs_of_the_job_file(tmp_path, pairs, texts)
    (tmp_path / 'pipelines').mkdir()
    (tmp_path / 'pipelines' / 'sample').symlink_to(SAMPLE)  # as in a clone
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('HF_HOME', str(tmp_path / 'cache'))
    return tmp_path


def _write_inputs_of_the_job_file(folder, pairs, texts):
    for side, language in enumerate(('en', 'zh')):
        half = ''.join(pair[side] + '\n' for pair in pairs[:150])
        (folder / f'news.0.{language}.gz').write_bytes(gzip.compress(half.encode()))
    rest = [json.dumps({'pair': {'en': en, 'zh': zh}}) for en, zh in pairs[150:]]
    (folder / 'web-0.jsonl.zst').write_bytes(zstandard.compress('\n'.join(rest).encode()))
    dev = zip(*(texts[name].decode().splitlines() for name in ('dev.en', 'dev.zh')), strict=True)
    (folder / 'dev.tsv').write_text(''.join(f'{en}\t{zh}\n' for en, zh in dev))


@pytest.mark.parametrize(
    'page',
    [pytest.param(each, marks=pytest.mark.slow if each in LONG_PAGES else ()) for each in PAGES],
)
def test_every_block_of_a_page_runs(page, folder, tensorflow):
    names: dict = {}
    if page == 'docs/reading.md':
        sides = ['--source', 'train.en', '--target', 'train.zh']
        succeed(
            'build', *sides, '--name', 'enzh', '--vocab-size', 2048, '--shared-vocab',
            '--output', 'data/enzh',
        )  # fmt: skip
        Path('data/t2t').mkdir()
        for path in [*Path('data/enzh').glob('enzh-train-*'), *Path('data/enzh').glob('vocab.*')]:
            Path('data/t2t', path.name).write_bytes(path.read_bytes())
    run_blocks(page, names)


def test_blocks_that_are_not_run_say_what_they_need():
    left = [block for page in [*PAGES, *RECIPES] for block in blocks_of(page) if block.needs]
    assert {block.needs.split(':')[0] for block in left} == {
        'needs PyTorch', 'needs a server', 'needs grain', 'needs the web',
    }  # fmt: skip


def test_ci_runs_the_readmes_own_commands():
    ci = ' '.join((ROOT / '.ci' / 'run').read_text().replace('\\\n', ' ').split())
    _, test = (block.code for block in blocks_of('README.md') if is_installation(block))
    assert ' '.join(FIRST_COMMAND.partition('--output')[0].split()) in ci
    assert 'pip install --quiet .' in ci
    for step in test.split('&&'):
        assert step.strip().replace('pip install', 'pip install --quiet') in ci


def test_the_readmes_first_command_builds_the_sample_without_a_warning(folder):
    process = succeed(*shlex.split(FIRST_COMMAND)[1:])
    names = {path.name for path in (folder / 'data' / 'enzh').iterdir()}
    assert 'vocab.enzh.2048.subwords' in names
    assert {f'enzh-train-0000{shard}-of-00004' for shard in range(4)} <= names
    assert 'warning' not in str(process)


def test_the_readme_is_one_page():
    assert len(README) <= 4500


def test_the_page_of_options_follows_from_their_declarations():
    assert option_table.PAGE.read_text() == option_table.page(), (
        'run `python -m tests.option_table`'
    )


def test_the_table_of_corpora_has_every_format():
    for corpus_format in all_formats():
        if corpus_format.is_in_job_files_only:
            assert f'format = "{corpus_format.name}"' in CORPORA
            continue
        for role in corpus_format.roles:
            assert f'--{role.replace("_", "-")} ' in CORPORA


def test_the_job_file_of_the_page_has_the_rows_of_both_datasets(folder):
    [job] = [block.code for block in blocks_of('docs/corpora.md') if block.language == 'toml']
    (folder / 'job.toml').write_text(job)
    succeed('build', 'job.toml', '--vocab-size', 2000)
    datasets = manifest_of(folder / 'data')['datasets']
    lines = {dataset['dataset']: dataset['lines'] for dataset in datasets if dataset['dataset']}
    assert lines == {'news': 150, 'web': 250}
    assert len(list((folder / 'data').glob('enzh-train-?????-of-00100'))) == 100


def test_texts_saved_by_datasets_are_the_texts_of_the_dataset(folder):
    names: dict = {}
    for block in blocks_of('docs/corpora.md'):
        if block.language == 'python':
            exec(compile(block.code, 'docs/corpora.md', 'exec'), names)
        elif '--parquet texts' in block.code:
            run_shell(block.code)
            run_shell(
                block.code.replace('--parquet texts.parquet', '--jsonl texts.jsonl').replace(
                    '--output texts', '--output again'
                )
            )
    dataset = open_dataset('texts')
    texts = {dataset.text(row['targets']) for row in names['rows']}
    assert texts == {'No text is left out.', 'No line of it either.'}
    for path in (folder / 'texts').glob('texts-train-*'):
        assert (folder / 'again' / path.name).read_bytes() == path.read_bytes()
