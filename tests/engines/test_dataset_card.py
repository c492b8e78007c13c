"""The card of a dataset: a header that hubs read, and what the manifest knows."""

import json
import shutil

import pytest
from dataset_files import manifest_of
from jobs import refuse, run, succeed


@pytest.fixture
def card(capsys):
    def run_card(*arguments):
        capsys.readouterr()
        ended = run('card', *arguments)
        assert ended.status == 0, ended.said
        return capsys.readouterr().out

    return run_card


@pytest.mark.parametrize('output_format', ['parquet', 'tfrecord', 'text'])
def test_the_header_is_yaml(card, small, tmp_path, output_format):
    yaml = pytest.importorskip('yaml')
    out = tmp_path / 'out'
    job = ['--name', 'n: "x" #', '--scheme', 'byte', '--shards', 2, '--dev-share', '10%']
    succeed('build', '--tsv', small.tsv, *job, '--output-format', output_format, '--output', out)
    _, header, text = card(out).split('---\n', 2)
    fields = yaml.safe_load(header)
    assert fields['pretty_name'] == 'n: "x" #'
    assert fields['tags'] == ['tokbeam', 'tokenized'] and text.startswith('\n# n')
    assert fields['size_categories'] == ['n<1K']
    assert ('configs' in fields) == (output_format == 'parquet')
    if output_format == 'parquet':
        assert fields['configs'][0]['data_files'] == [
            {'split': 'train', 'path': 'n: "x" #-train-*.parquet'},
            {'split': 'validation', 'path': 'n: "x" #-dev-*.parquet'},
        ]


def test_a_name_is_no_markup_in_the_heading(card, small_build, tmp_path):
    out = shutil.copytree(small_build, tmp_path / 'out')
    manifest = manifest_of(out)
    manifest['options']['name'] = '<b>_x_</b>\n# y'
    (out / 'tokbeam.json').write_text(json.dumps(manifest))
    headings = [line for line in card(out).splitlines() if line.startswith('# ')]
    assert headings == [r'# \<b\>\_x\_\</b\> # y']


def test_the_text_has_what_the_manifest_knows(card, small_build):
    text, manifest = card(small_build), manifest_of(small_build)
    assert 'license' not in text and 'configs' not in text
    assert manifest['root'] in text
    for each in manifest['vocabularies']:
        tokens = manifest_of(small_build / f'counts.{each["side"]}')['tokens']
        assert f'| {each["size"]:,} | {tokens:,} | {each["sha256"]} |' in text
    for each in manifest['inputs']:
        assert each['crc32c'] in text
    for name in manifest['options']:
        assert f'--{name.replace("_", "-")} ' in text.replace('\\', '')
    examples, size = (manifest['lines'][0][name] for name in ('examples', 'text_bytes'))
    assert f'| train | 300 | {examples} | {size:,} | – | {300 - examples} | 0 | 3 |' in text


@pytest.mark.parametrize(('ends', 'asked'), [(2, ", for_model='seq2seq'"), (1, ''), (0, '')])
def test_the_code_is_for_a_model_if_the_end_of_each_side_is_known(
    card, small_build, tmp_path, monkeypatch, ends, asked
):
    out = shutil.copytree(small_build, tmp_path / 'out')
    manifest = manifest_of(out)
    manifest['end_of_document'] = manifest['end_of_document'][:ends]
    (out / 'tokbeam.json').write_text(json.dumps(manifest))
    code = card(out).partition('```python\n')[2].partition('```')[0]
    assert f"dataset.batches('train', tokens_per_batch=4096{asked}):" in code
    monkeypatch.chdir(out)
    exec(code, {})


def test_what_cannot_be_typed_is_not_shown_as_an_option(card, small, tmp_path):
    corpus = ['--tsv', small.tsv, '--dev', small.tsv, '--columns', '1,0']
    succeed('build', *corpus, '--name', 'n', '--scheme', 'byte', '--output', tmp_path / 'out')
    text = card(tmp_path / 'out').replace('\\', '')
    assert '| --columns |' in text and '| dev_columns |' in text and '--dev-columns' not in text


def test_only_datasets_have_a_card(small_build, tmp_path):
    assert 'not a whole dataset' in refuse('card', tmp_path)
    assert 'not a whole dataset' in refuse('card', small_build / 'counts.inputs')
