"""Paths that are missing, unreadable or unwritable end a job before its first stage."""

import os

import pytest
from leftovers import assert_nothing_made
from small_corpus import KINDS, SPLITS


def spoil_path(path, how):
    path.unlink()
    if how == 'folder':
        path.mkdir()
    elif how == 'dangling':
        path.symlink_to(path.parent / 'nowhere')
    elif how == 'loop':
        path.symlink_to(path)


@pytest.mark.parametrize('how', ['missing', 'folder', 'dangling', 'loop'])
@pytest.mark.parametrize('kind', KINDS)
def test_a_path_that_is_not_a_file(build, write_corpus, tmp_path, kind, how):
    corpus = write_corpus(kind)
    spoil_path(corpus.last, how)
    outcome = build(corpus)
    outcome.assert_refused(corpus.last, 'folder' if how == 'folder' else 'does not exist')
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize('split', SPLITS[1:])
@pytest.mark.parametrize('kind', KINDS)
def test_a_missing_path_of_another_split_ends_it_before_counting(
    build, write_corpus, tmp_path, kind, split
):
    train, other = write_corpus(kind), write_corpus(kind, split)
    other.files[0].unlink()
    build(train, other).assert_refused(other.files[0], 'does not exist')
    assert_nothing_made(tmp_path / 'out')


def test_a_missing_path_ends_each_command(tokbeam, each_command, write_corpus, tmp_path):
    corpus = write_corpus('tsv')
    corpus.last.unlink()
    tokbeam(*each_command, *corpus.arguments).assert_refused(corpus.last, 'does not exist')
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize('path', ['train.text/deeper', 'news-*.txt'])
def test_a_path_below_a_file_and_a_glob_without_a_match(tokbeam, write_corpus, tmp_path, path):
    write_corpus('text')
    wanted = tmp_path / path
    tokbeam('count', '--text', wanted, '--output', tmp_path / 'out').assert_refused(wanted)
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.skipif(not os.path.exists('/proc/self/mem'), reason='needs Linux')
@pytest.mark.parametrize('kind', KINDS)
def test_a_file_that_opens_but_cannot_be_read(build, write_corpus, tmp_path, kind):
    corpus = write_corpus(kind)
    corpus.last.unlink()
    # Its first page is never mapped, so reading fails, for root as well.
    corpus.last.symlink_to('/proc/self/mem')
    build(corpus).assert_refused(corpus.last, 'cannot be read')
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.skipif(os.geteuid() == 0, reason='root may read everything')
def test_a_file_without_the_permission_to_read(build, write_corpus, tmp_path):
    corpus = write_corpus('tsv')
    corpus.last.chmod(0)
    build(corpus).assert_refused(corpus.last, 'Permission denied')
    assert_nothing_made(tmp_path / 'out')


def test_a_pipe_is_refused_as_one_and_not_called_empty(tokbeam, tmp_path):
    # A pipe, as a shell's <(...) gives it, can be read only once and tells no size.
    pipe = tmp_path / 'pipe'
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR)
    try:
        os.write(descriptor, b'some text\n')
        outcome = tokbeam('count', '--text', pipe, '--output', tmp_path / 'out')
    finally:
        os.close(descriptor)
    outcome.assert_refused(pipe)
    assert 'empty' not in outcome.stderr
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize('split', SPLITS)
def test_another_number_of_source_than_of_target_files(build, write_corpus, tmp_path, split):
    train, corpus = write_corpus('bitext'), write_corpus('bitext', split)
    source = '--source' if split == 'train' else f'--{split}-source'
    corpora = [train, corpus] if split != 'train' else [corpus]
    outcome = build(*corpora, extra=(source, corpus.files[0]))
    outcome.assert_refused(f'{source} names 2 files', source.replace('source', 'target'), 'names 1')
    assert_nothing_made(tmp_path / 'out')


def stage_arguments(command, write_corpus, tmp_path):
    vocabulary = tmp_path / 'given.subwords'
    vocabulary.write_text("'<pad>_'\n'<EOS>_'\n'a'\n")
    return {
        'build': ('--name', 'small', '--vocab-size', 120),
        'count': (),
        'vocab': ('--vocab-size', 120),
        'encode': ('--vocab', vocabulary, '--name', 'small'),
    }[command] + write_corpus('tsv').arguments


@pytest.mark.parametrize('command', ['build', 'count', 'vocab', 'encode'])
@pytest.mark.parametrize('below', ['', 'out'])
def test_an_output_that_is_a_file_or_below_one(tokbeam, write_corpus, tmp_path, command, below):
    if command == 'vocab' and not below:
        pytest.skip('a vocabulary is a file')
    blocker = tmp_path / 'blocker'
    blocker.write_text('mine\n')
    arguments = stage_arguments(command, write_corpus, tmp_path)
    outcome = tokbeam(command, *arguments, '--output', blocker / below)
    outcome.assert_refused(blocker, 'cannot write')
    assert blocker.read_text() == 'mine\n'


@pytest.mark.parametrize('extra', [(), ('--overwrite',)])
def test_a_vocabulary_to_be_written_where_a_folder_is(tokbeam, write_corpus, tmp_path, extra):
    output = tmp_path / 'out'
    output.mkdir()
    arguments = stage_arguments('vocab', write_corpus, tmp_path)
    tokbeam('vocab', *arguments, '--output', output, *extra).assert_refused(output)
    assert_nothing_made(output)
    assert not list(tmp_path.glob('*tokbeam*'))


@pytest.mark.parametrize(
    ('name', 'said'),
    [('counts.inputs', 'cannot write'), ('small-train-00001-of-00003', '--overwrite')],
)
def test_somebody_elses_file_is_not_replaced_unasked(build, write_corpus, tmp_path, name, said):
    theirs = tmp_path / 'out' / name
    theirs.parent.mkdir()
    theirs.write_text('theirs\n')
    build(write_corpus('tsv')).assert_refused(theirs, said)
    assert [path for path in (tmp_path / 'out').rglob('*') if path.is_file()] == [theirs]
    assert theirs.read_text() == 'theirs\n'
