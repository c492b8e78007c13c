"""The README's section on corpora as they come: its job file, its table, and the way to `datasets`."""

import gzip
import json
import os
import re
import shlex
import sys
from pathlib import Path

import zstandard
from dataset_files import manifest_of
from jobs import succeed

from tokcore import open_dataset
from tokcore.corpus.formats import all_formats

ROOT = Path(__file__).parents[2]
README = (ROOT / 'README.md').read_text()
SECTION = README[README.index('## Corpora as they come') : README.index('## Reading')]
SAMPLE = ROOT / 'pipelines' / 'sample'


def blocks(language):
    return re.findall(rf'```{language}\n(.*?)```', SECTION, re.DOTALL)


def test_the_table_has_every_format():
    for each in all_formats():
        assert all(f'--{role.replace("_", "-")} ' in SECTION for role in each.roles)


def test_the_job_file_builds(tmp_path):
    [job] = blocks('toml')
    texts = {side: (SAMPLE / f'train.{side}').read_text().splitlines() for side in ('en', 'zh')}
    for side in ('en', 'zh'):
        half = '\n'.join(texts[side][:150]) + '\n'
        (tmp_path / f'news.0.{side}.gz').write_bytes(gzip.compress(half.encode()))
    rest = zip(texts['en'][150:], texts['zh'][150:], strict=True)
    objects = [json.dumps({'pair': {'en': en, 'zh': zh}}) for en, zh in rest]
    packed = zstandard.compress('\n'.join(objects).encode())
    (tmp_path / 'web-0.jsonl.zst').write_bytes(packed)
    dev = zip(
        *((SAMPLE / f'dev.{side}').read_text().splitlines() for side in ('en', 'zh')), strict=True
    )
    (tmp_path / 'dev.tsv').write_text(''.join(f'{en}\t{zh}\n' for en, zh in dev))
    (tmp_path / 'job.toml').write_text(job)
    succeed('build', tmp_path / 'job.toml', '--vocab-size', 2000)
    manifest = manifest_of(tmp_path / 'data')
    found = {each['dataset']: each['lines'] for each in manifest['datasets'] if each['dataset']}
    assert found == {'news': 150, 'web': len(objects)}
    assert len(list((tmp_path / 'data').glob('enzh-train-?????-of-00100'))) == 100


def test_a_dataset_saved_by_datasets_is_built_and_opened_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('HF_HOME', str(tmp_path / 'cache'))
    monkeypatch.setenv('PATH', f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}')
    save, load = blocks('python')
    exec(compile(save, 'README.md', 'exec'), {})
    [command] = [block for block in blocks('bash') if '--parquet texts' in block]
    words = shlex.split(command.replace('\\\n', ' '))
    succeed(*words[1:])
    scope = {}
    exec(compile(load, 'README.md', 'exec'), scope)
    rows = scope['rows']
    dataset = open_dataset('texts')
    texts = {dataset.text(row['targets']) for row in rows}
    assert texts == {'No text is left out.', 'No line of it either.'}
    from_json = [*words[1:]]
    from_json[1:3] = ['--jsonl', 'texts.jsonl']
    from_json[-1] = 'again'
    succeed(*from_json)
    for path in (tmp_path / 'texts').glob('texts-train-*'):
        assert (tmp_path / 'again' / path.name).read_bytes() == path.read_bytes()
