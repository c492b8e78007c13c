"""Options that cannot be meant, runners that cannot work: a sentence before any work."""

import os
import re

import pytest
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.portable_runner import PortableRunner
from leftovers import assert_nothing_made, result_files
from small_corpus import PAIRS

from pipelines.engines.engine import check_engine, choose_engine
from pipelines.engines.machine import total_bytes
from tokcore.errors import InputError

GIB = 1 << 30


@pytest.fixture
def encode(tokbeam, write_corpus, tmp_path):
    """Encodes into `tmp_path/out` with a small vocabulary that was given."""
    vocabulary = tmp_path / 'given.subwords'
    characters = sorted({each for pair in PAIRS for text in pair for each in text})
    subtokens = ['<pad>_', '<EOS>_', *characters, *'\\_u;0123456789']
    vocabulary.write_text(''.join(f"'{each}'\n" for each in subtokens), encoding='utf-8')

    def run(*extra, name='small'):
        return tokbeam(
            'encode', *write_corpus('tsv').arguments, '--vocab', vocabulary,
            f'--name={name}', '--output', tmp_path / 'out', *extra,
        )  # fmt: skip

    return run


@pytest.fixture
def count(tokbeam, write_corpus, tmp_path):
    def run(*extra):
        corpus = write_corpus('tsv')
        return tokbeam('count', *corpus.arguments, '--output', tmp_path / 'out', *extra)

    return run


def test_more_memory_than_there_is_cannot_be_given(encode, tmp_path):
    outcome = encode('--memory', f'{total_bytes() // GIB + 1}GiB', '@buffer', '100GiB')
    outcome.assert_refused('--memory', f'{total_bytes() >> 20} MiB')
    assert_nothing_made(tmp_path / 'out')


def test_a_buffer_beyond_memory_is_cut_down_to_it(encode, tmp_path):
    assert encode().status == 0
    plain = result_files(tmp_path / 'out')
    outcome = encode('@buffer', '1TiB', '--overwrite')
    assert outcome.status == 0, outcome.stderr
    assert result_files(tmp_path / 'out') == plain


@pytest.mark.parametrize('character', ['x', 'ü', '语'])
def test_a_name_beyond_the_filesystems_limit_is_refused_before_work(encode, tmp_path, character):
    longest = os.pathconf(tmp_path, 'PC_NAME_MAX')
    name = character * (longest // len(character.encode()))
    encode(name=name).assert_refused('--name', f'at most {longest}')
    assert_nothing_made(tmp_path / 'out')


def test_a_name_up_to_the_limit_is_taken(encode, tmp_path):
    longest = os.pathconf(tmp_path, 'PC_NAME_MAX')
    name = 'x' * (longest - len('-train-00000-of-00010'))
    assert encode(name=name).status == 0
    assert (tmp_path / 'out' / f'{name}-train-00009-of-00010').is_file()
    encode(name=name + 'x').assert_refused('--name')


def test_a_vocabularys_name_leaves_room_for_its_run_record(tokbeam, write_corpus, tmp_path):
    longest = os.pathconf(tmp_path, 'PC_NAME_MAX')
    name = 'v' * (longest - len('.tokbeam.run.json'))
    arguments = ['vocab', *write_corpus('text').arguments, '--vocab-size', 120, '--output']
    assert tokbeam(*arguments, tmp_path / 'new' / name).status == 0
    assert (tmp_path / 'new' / f'{name}.tokbeam.run.json').is_file()
    tokbeam(*arguments, tmp_path / 'other' / f'{name}v').assert_refused('--output', longest)
    assert_nothing_made(tmp_path / 'other')


@pytest.mark.parametrize(
    ('name', 'scheme'),
    [
        ('tokenizer.json', 'bpe'), ('bpe.codes', 'bpe'), ('vocab.txt', 'wordpiece'),
        ('en.model', 'unigram'),
    ],
)  # fmt: skip
def test_subwords_are_not_written_under_the_name_of_another_schemes_file_unless_asked_for(
    tokbeam, write_corpus, tmp_path, name, scheme
):
    vocab = ['vocab', *write_corpus('text').arguments, '--vocab-size', 120]
    vocab += ['--output', tmp_path / 'new' / name]
    tokbeam(*vocab).assert_refused(f'{name} is named like a file of --scheme {scheme}')
    assert_nothing_made(tmp_path / 'new')
    assert tokbeam(*vocab, '--scheme', 'subword').status == 0


@pytest.mark.parametrize('option', ['--output', '--work'])
def test_a_path_beyond_the_limit_is_refused(encode, tmp_path, option):
    deep = tmp_path.joinpath(*['y' * 200] * 25)
    encode(option, deep).assert_refused('leave room')
    wide = tmp_path / ('y' * 256) / 'x'
    encode(option, wide).assert_refused('at most')
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize('option', ['--output', '--tsv'])
def test_an_empty_path_is_refused_and_not_the_working_directory(
    count, tmp_path, monkeypatch, option
):
    (tmp_path / 'here').mkdir()
    monkeypatch.chdir(tmp_path / 'here')
    count(option, '').assert_refused(option, 'not a path')
    assert not list((tmp_path / 'here').iterdir())


BEAM = {
    '--runner=nix': ['nix', 'not a runner'],
    '--runner=': ['not a runner'],
    '--runner=os.getcwd': ['os.getcwd'],
    '--runner=no_such_module.Runner': ['no_such_module', 'imported'],
    '--runner=DataflowRunner': ['DataflowRunner', 'project'],
    '--runner=PortableRunner': ['--job_endpoint'],
    '--direct_num_workers=-1': ['--direct_num_workers', 'from 0 to 1,024'],
    '--direct_num_workers=9999999999999999999999': ['--direct_num_workers'],
    '--parallelism=1000000000': ['--parallelism', 'from 1 to 32,768'],
    '--gcs_custom_audit_entries=x': ['options'],
    '--resource_hint=x': ['resource hint'],
    '--update_compatibility_version=x': ['--update_compatibility_version=x'],
    '--profile_cpu': ['--profile_location'],
    '--job_name=\udcff': ['--job_name', 'UTF-8'],
    '-- --help': ['help'],
    '-- --direct_num_workers=x': ['--direct_num_workers', 'int'],
    '-- --=x': ['options'],
}


@pytest.mark.parametrize('line', BEAM)
def test_options_that_beam_cannot_work_with_are_refused(count, tmp_path, line):
    count(*line.split(' ')).assert_refused(*BEAM[line])
    assert_nothing_made(tmp_path / 'out')


DOWNLOADS = {
    'FlinkRunner': '--flink_job_server_jar',
    'flink': '--flink_job_server_jar',
    'SparkRunner': '--spark_job_server_jar',
    'PrismRunner': '--prism_location',
    'TestDirectRunner': '--prism_location',
}


@pytest.fixture
def nothing_cached(monkeypatch, tmp_path):
    """No job server was downloaded here, there is a `java`, and nothing reaches a network."""
    java = tmp_path / 'bin' / 'java'
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nexit 1\n')
    java.chmod(0o700)
    monkeypatch.setenv('PATH', str(java.parent), prepend=os.pathsep)
    monkeypatch.setattr(
        'apache_beam.utils.subprocess_server.JavaJarServer.JAR_CACHE', str(tmp_path / 'jars')
    )
    monkeypatch.setattr(
        'apache_beam.runners.portability.prism_runner.PrismJobServer.BIN_CACHE',
        str(tmp_path / 'prism'),
    )

    def refuse(*_, **__):
        raise AssertionError('something was to be downloaded')

    for module in ('utils.subprocess_server', 'runners.portability.prism_runner'):
        monkeypatch.setattr(f'apache_beam.{module}.urlopen', refuse)
    return tmp_path


@pytest.mark.parametrize('runner', DOWNLOADS)
def test_no_runner_downloads_what_nobody_asked_for(count, nothing_cached, runner):
    outcome = count(f'--runner={runner}')
    option = DOWNLOADS[runner]
    outcome.assert_refused('would download', f'give {option}=https://', 'to allow it')
    assert_nothing_made(nothing_cached / 'out')


LEARNING = {
    '--preset gpt2 --merges 5 --limit-alphabet 80': ['--limit-alphabet', 'leave it out'],
    '--preset cl100k --merges 5 --total-symbols': ['--total-symbols', 'leave it out'],
    '--preset subword-nmt --merges 5 --special-tokens <pad>': ['--special-tokens'],
    '--scheme unigram --vocab-size 200 --byte-fallback': ['259 meta pieces', '--vocab-size'],
}


@pytest.mark.parametrize('line', LEARNING)
def test_a_build_counts_nothing_for_what_cannot_be_learned(tokbeam, write_corpus, tmp_path, line):
    options = ['--scheme', 'bpe', *line.split()] if '--preset' in line else line.split()
    corpus = write_corpus('text').arguments
    outcome = tokbeam('build', *corpus, '--name', 'n', *options, '--output', tmp_path / 'out')
    outcome.assert_refused(*LEARNING[line])
    assert not (tmp_path / 'out').exists()


class OwnFlinkRunner(FlinkRunner):
    """A runner of somebody's own that starts what Beam's starts."""


class OwnPortableRunner(PortableRunner):
    """One that may bring its own job server."""


def test_a_runner_of_ones_own_downloads_no_more_than_the_one_it_extends(nothing_cached):
    with pytest.raises(InputError, match='would download .* give --flink_job_server_jar=https://'):
        check_engine(choose_engine([f'--runner={__name__}.OwnFlinkRunner'], None))
    check_engine(choose_engine([f'--runner={__name__}.OwnPortableRunner'], None))


def test_a_job_server_that_is_here_needs_java(count, nothing_cached):
    jar = nothing_cached / 'server.jar'
    jar.touch()
    flags = ['--runner=FlinkRunner', f'--flink_job_server_jar={jar}']
    check_engine(choose_engine(flags, None))
    count(*flags, '--job_server_java_launcher=/nowhere/java').assert_refused('Java', '/nowhere')


def test_what_was_asked_for_or_downloaded_before_is_taken(nothing_cached):
    url = 'https://localhost:1/server-7.jar'
    check_engine(choose_engine(['--runner=FlinkRunner', f'--flink_job_server_jar={url}'], None))
    check_engine(choose_engine(['--runner=PrismRunner', f'--prism_location={url}'], None))
    flags = ['--runner=FlinkRunner', '--job_endpoint=localhost:1', '--environment_type=LOOPBACK']
    check_engine(choose_engine(flags, None))
    with pytest.raises(InputError, match='would download') as refused:
        check_engine(choose_engine(['--runner=FlinkRunner'], None))
    name = re.search(r'/([^/;]+\.jar);', str(refused.value))[1]
    (nothing_cached / 'jars').mkdir()
    (nothing_cached / 'jars' / name).touch()
    check_engine(choose_engine(['--runner=FlinkRunner'], None))


def test_a_container_that_docker_would_download_is_refused(count, nothing_cached):
    jar = nothing_cached / 'server.jar'
    jar.touch()
    outcome = count(
        '--runner=FlinkRunner', f'--flink_job_server_jar={jar}', '--flink_master=localhost:1'
    )
    outcome.assert_refused('Docker', '--environment_type')


def test_a_job_server_that_does_not_answer_is_refused(count, tmp_path):
    outcome = count(
        '--runner=PortableRunner', '--job_endpoint=localhost:1', '--job_server_timeout=1',
        '--environment_type=LOOPBACK',
    )  # fmt: skip
    outcome.assert_refused('does not take the job')
    assert_nothing_made(tmp_path / 'out')


def test_secrets_are_in_no_error_and_no_log(count, tmp_path):
    for flags in (
        ['--s3_session_token', 'HUSH', 'HUSH'],
        ['--s3_secret_access_key=HUSH', '--resource_hint=x'],
        ['--s3_secret_access_key=HUSH', '--', '--x_password', 'HUSH', '--y_token=HUSH', '-z', 'x'],
    ):
        outcome = count(*flags, '--overwrite')
        assert 'HUSH' not in outcome.stderr
    assert outcome.status == 0, outcome.stderr
    for path in (tmp_path / 'out').rglob('*'):
        assert b'HUSH' not in path.read_bytes()
