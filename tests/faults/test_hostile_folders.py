"""What a folder says is data: nothing outside of a result, nor anything of its user's, is deleted."""

import json
import os
import tarfile

import pytest
from jobs import refuse, run, succeed, write
from leftovers import result_files
from written_dataset import change_manifest

from pipelines.files.attempts import Attempt

HEX = 'ab' * 16


@pytest.fixture(scope='module')
def material(tmp_path_factory):
    """A text and a vocabulary for it."""
    folder = tmp_path_factory.mktemp('material')
    text = ''.join(f'line {n} of a text that is encoded\n' for n in range(60))
    write(folder / 'text', text.encode())
    succeed('vocab', '--text', folder / 'text', '--vocab-size', 120, '--output', folder / 'vocab')
    return folder


@pytest.fixture
def encode(material):
    """The arguments of a small job into a folder."""

    def arguments(folder, *extra):
        return [
            'encode', '--vocab', material / 'vocab', '--name', 'n', '--shards', 2,
            '--text', material / 'text', '--output', folder, *extra,
        ]  # fmt: skip

    return arguments


@pytest.fixture
def victim(tmp_path):
    """What is not the tool's: a folder and files beside and in the output."""
    write(tmp_path / 'victim' / '1', b'precious')
    write(tmp_path / 'out' / 'thesis.tex', b'precious')
    write(tmp_path / 'out' / 'chapters' / '1', b'precious')
    return tmp_path


def precious(folder):
    return sum(path.read_bytes() == b'precious' for path in folder.rglob('*') if path.is_file())


SHARDS = ['chapters/wmt-train-00000-of-00001', 'chapters/vocab.n.90.subwords']
OTHERS = ['chapters', 'chapters/1', 'thesis.tex']


@pytest.mark.parametrize('record', ['tokbeam.run.json', 'tokbeam.json'])
def test_files_of_other_folders_stay_though_they_are_named_as_shards(
    encode, victim, recorded, record
):
    """A result has its shards and vocabularies in its folder, and none below it."""
    folder = victim / 'out'
    for name in SHARDS:
        write(folder / name, b'precious')
    if record == 'tokbeam.json':
        succeed(*encode(folder))
        entry = {'bytes': 8, 'crc32c': '0' * 8, 'rows': 1}
        more = [{'name': name, **entry} for name in SHARDS + OTHERS]
        change_manifest(folder, lambda fields: fields['files'].extend(more))
    else:
        recorded(*SHARDS)
    succeed(*encode(folder, '--seed', 1, '--overwrite'))
    assert precious(victim) == 5


HOSTILE = [
    '../victim', '../victim/1', 'chapters', 'chapters/1', 'thesis.tex', '.', '', 'a/../..', '\0',
]  # fmt: skip


@pytest.fixture
def recorded(victim):
    """Writes a record of an earlier run that has made some files; returns the folder."""

    def record(*names):
        said = {'inputs': [], 'files': names, 'seconds': {}, 'runner': []}
        (victim / 'out' / 'tokbeam.run.json').write_text(json.dumps(said))
        return victim / 'out'

    return record


@pytest.mark.parametrize(
    ('extra', 'absolute'),
    [
        ((), True),
        (('--overwrite',), False),
        pytest.param((), False, marks=pytest.mark.slow),
        pytest.param(('--overwrite',), True, marks=pytest.mark.slow),
    ],
)
def test_a_run_record_deletes_nothing_but_what_the_tool_makes(
    encode, victim, recorded, extra, absolute
):
    names = [str(victim / 'victim'), str(victim / 'victim' / '1')] if absolute else HOSTILE
    left = ['n-train-00000-of-00005', 'vocab.n.8192.subwords']
    for name in left:
        write(victim / 'out' / name, b'of an earlier result')
    succeed(*encode(recorded(*names, *left), *extra))
    assert precious(victim) == 3
    assert not any((victim / 'out' / name).exists() for name in left)


@pytest.mark.parametrize('name', ['../victim/1', pytest.param('', marks=pytest.mark.slow)])
def test_a_manifest_with_such_names_is_none(encode, victim, name):
    folder = victim / 'out'
    succeed(*encode(folder))
    change_manifest(folder, lambda fields: fields['files'][0].update(name=name))
    assert 'is not a manifest of tokbeam' in refuse(*encode(folder))
    succeed(*encode(folder, '--overwrite'))
    assert precious(victim) == 3


def test_a_folder_in_the_place_of_an_earlier_file_is_not_deleted(encode, victim, recorded):
    write(victim / 'out' / 'n-train-00004-of-00005' / '1', b'precious')
    succeed(*encode(recorded('n-train-00004-of-00005')))
    assert precious(victim) == 4


@pytest.mark.parametrize('name', ['n-train-00004-of-00005', None])
def test_a_link_in_the_place_of_an_earlier_file_or_an_attempt_is_removed(
    encode, victim, recorded, name
):
    link = victim / 'out' / (name or Attempt(str(victim / 'out')).path)
    link.symlink_to('../victim/1' if name else '../victim')
    succeed(*encode(recorded('n-train-00004-of-00005')))
    assert precious(victim) == 3
    assert not os.path.lexists(link)


def test_a_folder_that_looks_like_an_attempt_is_left_alone(encode, victim):
    write(victim / 'out' / '.tokbeam-attempt-mine' / '1', b'precious')
    write(victim / 'out' / f'.tokbeam-attempt-run-{HEX}' / 'thesis', b'precious')
    succeed(*encode(victim / 'out'))
    assert 'already done' in succeed(*encode(victim / 'out'))
    assert precious(victim) == 5


def test_a_work_folder_gives_up_only_what_the_tool_made_there(encode, victim):
    folder = victim / 'out'
    shuffle = folder / '.tokbeam' / f'shuffle-{HEX}'
    write(shuffle / 'plan.json', json.dumps({'output': str(folder), 'run_bytes': 1}).encode())
    write(shuffle / 'thesis', b'precious')
    os.symlink(victim / 'victim' / '1', shuffle / 'run-000000-0000')
    (folder / '.tokbeam' / f'shuffle-{HEX[::-1]}').symlink_to(victim / 'victim')
    succeed(*encode(folder))
    assert precious(victim) == 4


@pytest.mark.parametrize('is_link', [False, True])
def test_what_is_in_the_place_of_a_folder_of_ours_is_reported(encode, victim, material, is_link):
    folder = victim / 'out'
    succeed(*encode(folder))
    whole = result_files(folder)
    if is_link:
        (folder / '.tokbeam').symlink_to('../victim')
    else:
        (folder / '.tokbeam').write_text('mine')
    said = refuse(*encode(folder, '--seed', 1, '--overwrite'))
    assert '.tokbeam is in the place of the work folder' in said
    assert result_files(folder).items() >= whole.items()
    assert precious(victim) == 3
    # Nor are rejected lines written through a link.
    bad = write(victim / 'bad', (material / 'text').read_bytes() + b'\xff\n')
    (folder / 'rejected').symlink_to('../victim')
    (folder / '.tokbeam').unlink()
    command = [bad if each == material / 'text' else each for each in encode(folder, '--overwrite')]
    assert 'symbolic link' in refuse(*command, '--on-error', 'skip')
    assert precious(victim) == 3
    assert not (victim / 'victim' / 'train.invalid_utf8.jsonl').exists()


def test_no_name_is_one_of_the_tools_own(encode, tmp_path):
    for name in ('.tokbeam-attempt-z', '.tokbeam', 'tokbeam.json'):
        command = [name if each == 'n' else each for each in encode(tmp_path / 'out')]
        assert '--name' in refuse(*command)
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    'data',
    [
        pytest.param(b'[]', marks=pytest.mark.slow),
        b'{"format": 1, "options": []}',
        pytest.param(b'[' * 100_000, marks=pytest.mark.slow),
    ],
)
def test_records_of_any_shape_end_in_a_sentence_or_are_passed_over(encode, tmp_path, data):
    folder = tmp_path / 'out'
    succeed(*encode(folder))
    whole = result_files(folder)
    (folder / 'tokbeam.run.json').write_bytes(data)
    assert 'already done' in succeed(*encode(folder))
    (folder / 'tokbeam.json').write_bytes(data)
    assert 'tokbeam.json is not a manifest' in refuse(*encode(folder))
    succeed(*encode(folder, '--overwrite'))
    assert result_files(folder) == whole


TEXT = b'a line of words\n' * 9
JOB = b'[train]\nformat = "text"\npaths = "text"\n[vocabulary]\nvocab_size = 50\n'


@pytest.mark.parametrize('how', ['itself', 'link', 'other spelling', 'hard link', 'archive', 'job', 'of a job'])  # fmt: skip
def test_no_input_is_replaced_by_the_result(tmp_path, how):
    text, job = write(tmp_path / 'text', TEXT), write(tmp_path / 'job.toml', JOB)
    asked, output = ['--text', text, '--scheme', 'word', '--vocab-size', 50], text
    if how == 'link':
        asked[1] = tmp_path / 'link'
        asked[1].symlink_to(text)
    elif how == 'hard link':
        output = tmp_path / 'vocabulary'
        os.link(text, output)
    elif how == 'other spelling':
        output = tmp_path / 'x' / '..' / 'text'
    elif how == 'archive':
        output = tmp_path / 'c.tar'
        with tarfile.open(output, 'w') as archive:
            archive.add(text, 'a')
        asked[1] = f'{output}!a'
    elif 'job' in how:
        asked, output = [job], job if how == 'job' else text
    before = output.read_bytes() if how != 'other spelling' else TEXT
    said = refuse('vocab', *asked, '--output', output, '--overwrite')
    assert 'is read by this run and would be replaced' in said
    assert (text if how == 'other spelling' else output).read_bytes() == before
    assert (text.read_bytes(), job.read_bytes()) == (TEXT, JOB)


def test_no_vocabulary_is_deleted_with_the_result_that_it_belongs_to(material, tmp_path):
    folder, text = tmp_path / 'out', ['--text', material / 'text', '--name', 'n']
    succeed('build', *text, '--vocab-size', 120, '--output', folder)
    vocabulary = folder / 'vocab.n.120.subwords'
    said = refuse('encode', *text, '--vocab', vocabulary, '--output', folder, '--overwrite')
    assert str(vocabulary) in said and 'would be replaced' in said
    assert vocabulary.exists() and (folder / 'tokbeam.json').exists()


@pytest.mark.parametrize('name', ['n-train-00000-of-00001', 'rejected/train.unknown_label.jsonl'])
@pytest.mark.parametrize('link', [None, os.symlink, os.link])
def test_names_of_labels_are_not_replaced(tmp_path, name, link):
    marks, text = (write(tmp_path / each, b'good\nbad\n') for each in ('marks', 'text'))
    labels = asked = write(tmp_path / 'out' / name, b'good\nbad\n')
    if link is not None:
        asked = tmp_path / 'labels'
        link(labels, asked)
    said = refuse(
        'encode', '--text', text, '--line-labels', marks, '--labels', asked, '--scheme', 'byte',
        '--name', 'n', '--shards', 1, '--output', tmp_path / 'out', '--overwrite',
    )  # fmt: skip
    assert f'{asked} is read by this run and would be replaced' in said
    assert labels.read_bytes() == b'good\nbad\n'


@pytest.mark.parametrize('place', ['labels', 'job file', 'manifest', 'run record', 'plan', 'lock'])
def test_a_pipe_in_a_files_place_is_told_and_not_waited_for(encode, tmp_path, place):
    folder = tmp_path / 'out'
    os.makedirs(folder / '.tokbeam' / f'shuffle-{HEX}')
    pipe = {
        'manifest': folder / 'tokbeam.json', 'run record': folder / 'tokbeam.run.json',
        'plan': folder / '.tokbeam' / f'shuffle-{HEX}' / 'plan.json', 'lock': folder / '.tokbeam-lock',
    }.get(place, tmp_path / 'pipe')  # fmt: skip
    os.mkfifo(pipe)
    if place == 'labels':
        command = [
            'encode', '--text', pipe, '--line-labels', pipe, '--labels', pipe,
            '--scheme', 'byte', '--name', 'n', '--shards', 1, '--output', folder,
        ]  # fmt: skip
    elif place == 'job file':
        command = ['vocab', pipe, '--output', folder / 'v']
    else:
        command = encode(folder)
    assert str(pipe) in refuse(*command)


def test_an_output_that_cannot_be_written_to_can_still_be_done(encode, tmp_path):
    folder = tmp_path / 'out'
    succeed(*encode(folder))
    # As on a read-only filesystem, also for root.
    (folder / '.tokbeam-lock').mkdir()
    ended = run(*encode(folder))
    assert ended.status == 0, ended.said
    assert 'cannot write' in refuse(*encode(folder, '--overwrite'))


def test_a_vocabulary_that_is_not_the_one_that_was_learned_is_refused(material, encode, tmp_path):
    vocabulary = tmp_path / 'vocab'
    for name in ('vocab', 'vocab.tokbeam.json'):
        write(tmp_path / name, (material / name).read_bytes())
    vocabulary.write_bytes(vocabulary.read_bytes()[:-3] + b"x'\n")
    command = encode(tmp_path / 'out')
    command[command.index('--vocab') + 1] = vocabulary
    assert str(vocabulary) in refuse(*command)
    assert not (tmp_path / 'out').exists()
