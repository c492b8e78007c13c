"""Inputs from the web: fetched once into the work folder, and recorded."""

import hashlib
import io
import json
import tarfile

import pytest
from dataset_files import files_of, manifest_of
from jobs import refuse, succeed, write
from web_server import Page, web_server

from pipelines import ReadCorpus
from tokcore.errors import InputError

TEXT = ''.join(f'the {number} words of a text\n' for number in range(200)).encode()
BUILD = ['--name', 'web', '--shards', 2, '--scheme', 'byte']


@pytest.fixture
def server():
    with web_server({'/texts/a.txt': Page(TEXT)}) as running:
        yield running


def sum_of(content):
    return hashlib.sha256(content).hexdigest()


def made_of(folder):
    """Returns the files of a build except its manifest, which has the names of its inputs."""
    return {
        name: content
        for name, content in files_of(folder).items()
        if not name.endswith('tokbeam.json') and not name.startswith('.tokbeam')
    }


@pytest.fixture
def local(tmp_path):
    path = write(tmp_path / 'a.txt', TEXT)
    succeed('build', '--text', path, *BUILD, '--output', tmp_path / 'local')
    return made_of(tmp_path / 'local')


def test_a_pipeline_fetches_nothing(server):
    address = server.address.replace('://', '://me:hush@') + '/texts/a.txt'
    with pytest.raises(InputError, match='is on the web, and only the command') as refused:
        ReadCorpus(address)
    assert 'hush' not in str(refused.value)
    assert server.asked == []


def test_an_address_is_as_good_as_a_file(server, tmp_path, local):
    out, address = tmp_path / 'out', f'{server.address}/texts/a.txt'
    job = ['build', '--text', address, *BUILD, '--output', out]
    said = succeed(*job)
    assert f'fetched {address}: {len(TEXT)} bytes' in said
    assert made_of(out) == local
    [record] = manifest_of(out)['inputs']
    assert record['name'] == address
    assert (record['stored_bytes'], record['sha256']) == (len(TEXT), sum_of(TEXT))
    assert 'already done' in succeed(*job)
    succeed(*job, '--overwrite')
    assert len(server.asked) == 1


def test_a_folder_may_be_shared_and_results_do_not_depend_on_it(server, tmp_path):
    address, work = f'{server.address}/texts/a.txt', tmp_path / 'work'
    for name in ('one', 'two'):
        out = ['--work', work, '--output', tmp_path / name]
        succeed('build', '--text', address, *BUILD, *out)
    succeed('count', '--text', address, '--work', work, '--output', tmp_path / 'counts')
    assert len(server.asked) == 1
    assert files_of(tmp_path / 'one') == files_of(tmp_path / 'two')
    succeed('build', '--text', address, *BUILD, '--output', tmp_path / 'three')
    assert manifest_of(tmp_path / 'three') == manifest_of(tmp_path / 'one')


def test_a_secret_is_written_nowhere(server, tmp_path):
    server.pages['/texts/a.txt;sig=HUSH?token=HUSH'] = Page(TEXT)
    address = server.address.replace('://', '://me:hush@') + '/texts/a.txt;sig=HUSH?token=HUSH'
    out = tmp_path / 'out'
    said = succeed('build', '--text', address, *BUILD, '--output', out)
    written = b''.join(path.read_bytes() for path in out.rglob('*') if path.is_file())
    assert b'hush' not in written.lower() and 'hush' not in said.lower()
    assert not [path for path in out.rglob('*') if 'hush' in str(path).lower()]
    name = f'{server.address}/texts/a.txt;sig=***?token=***'
    assert manifest_of(out)['inputs'][0]['name'] == name


def tar_of(**members):
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode='w:gz') as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(f'news/{name}')
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return sink.getvalue()


def test_members_of_an_archive_are_fetched_with_it_once(server, tmp_path):
    archive = tar_of(a=TEXT[:1000], b=TEXT[1000:], c=b'not asked for\n')
    server.pages['/news.tgz'] = Page(archive)
    address = f'{server.address}/news.tgz#sha256={sum_of(archive)}'
    out = tmp_path / 'out'
    given = ['--text', f'{address}!news/[ab]', '--dev', f'{address}!news/c']
    succeed('build', *given, *BUILD, '--output', out)
    names = [each['name'] for each in manifest_of(out)['inputs']]
    assert names == [f'{server.address}/news.tgz!news/{name}' for name in 'abc']
    assert len(server.asked) == 1


def test_another_checksum_than_asked_for_is_refused_and_not_kept(server, tmp_path):
    address = f'{server.address}/texts/a.txt#sha256={"0" * 64}'
    out = tmp_path / 'out'
    said = refuse('build', '--text', address, *BUILD, '--output', out)
    assert sum_of(TEXT) in said and '0' * 64 in said
    assert not out.exists()


def test_a_run_that_failed_is_gone_on_with(server, tmp_path, local):
    page = server.pages['/texts/a.txt']
    page.cuts = [1000, *[0] * 9]
    out = tmp_path / 'out'
    job = ['build', '--text', f'{server.address}/texts/a.txt', *BUILD, '--output', out]
    said = refuse(*job)
    assert 'cannot fetch' in said and said.endswith('run again')
    assert not list(out.rglob('a.txt'))
    page.cuts = []
    server.asked.clear()
    said = succeed(*job)
    assert 'after 1000 bytes' in said
    assert server.ranges('/texts/a.txt') == ['bytes=1000-']
    assert made_of(out) == local


def test_a_dry_run_fetches_nothing(server, tmp_path, capsys):
    address, out = f'{server.address}/texts/a.txt', tmp_path / 'out'
    job = ['build', '--text', address, *BUILD, '--output', out]
    succeed(*job, '--dry-run')
    assert f'{address} is to be fetched to {out}/.tokbeam/fetched/' in capsys.readouterr().out
    assert server.asked == [] and not out.exists()
    missing = tmp_path / 'nowhere'
    assert f'{missing} does not exist' in refuse(*job, '--dev', missing, '--dry-run')
    (tmp_path / 'tmx').write_text('<tmx></tmx>', encoding='utf-16')
    given = ['--tmx', tmp_path / 'tmx', address, '--languages', 'en', '--dry-run']
    succeed('build', *given, *BUILD, '--output', out)
    assert server.asked == []
    succeed(*job)
    succeed(*job, '--dry-run')
    assert 'in the first block 200 lines' in capsys.readouterr().out


def test_report_compare_and_index_fetch_nothing(server, tmp_path, capsys):
    address, out = f'{server.address}/texts/a.txt', tmp_path / 'out'
    job = ['build', '--text', address, *BUILD, '--output', out]
    succeed(*job)
    capsys.readouterr()
    succeed('report', out, '--json')
    assert json.loads(capsys.readouterr().out)['without_corpus'] is None
    [fetched] = (out / '.tokbeam').rglob('a.txt')
    fetched.unlink()
    server.asked.clear()
    missing = f'the corpus is not all here: {address} is to be fetched to {fetched}; run the job of'
    for command in (['report', out, '--json'], ['compare', out, out, '--json']):
        succeed(*command)
        assert missing in capsys.readouterr().out
    assert missing in refuse('report', out, '--corpus')
    assert server.asked == [] and not fetched.exists()
    assert 'already done' in succeed(*job)
    capsys.readouterr()
    succeed('report', out, '--json')
    assert json.loads(capsys.readouterr().out)['without_corpus'] is None
    fetched.unlink()
    server.asked.clear()
    succeed('index', out)
    assert missing in capsys.readouterr().out
    assert server.asked == []


def test_a_job_file_may_name_an_address(server, tmp_path):
    job = tmp_path / 'job.toml'
    job.write_text(
        f'[[train]]\nformat = "text"\npaths = "{server.address}/texts/a.txt"\n'
        '[vocabulary]\nscheme = "byte"\n[output]\nname = "web"\noutput = "out"\n'
    )
    succeed('build', job)
    assert manifest_of(tmp_path / 'out')['inputs'][0]['sha256'] == sum_of(TEXT)


def test_a_work_folder_elsewhere_is_refused(tmp_path):
    given = ['--text', 'https://h/a', '--work', 'hdfs://h/work', *BUILD]
    said = refuse('build', *given, '--output', tmp_path / 'out')
    assert 'hdfs://h/work' in said
