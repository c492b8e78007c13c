"""What a folder says is data: nothing outside of a result, nor anything of its user's, is deleted."""

import json
import os
import tarfile

import pytest
from jobs import refuse, run, succeed, write
from leftovers import result_files

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


@pytest.mark.parametrize('record', ['tokbeam.run.json', 'tokbeam.json'])
def test_files_of_other_folders_stay_though_they_are_named_as_shards(encode, victim, record):
    """A result has its shards and vocabularies in its folder, and none below it."""
    folder = victim / 'out'
    for name in SHARDS:
        write(folder / name, b'precious')
    if record == 'tokbeam.json':
        succeed(*encode(folder))
        manifest = json.loads((folder / record).read_text())
        manifest['files'] += [
            {'name': name, 'bytes': 8, 'crc32c': '0' * 8, 'rows': 1} for name in SHARDS
        ]
        (folder / record).write_text(json.dumps(manifest))
    else:
        said = {'inputs': [], 'files': SHARDS, 'seconds': {}, 'runner': []}
        (folder / record).write_text(json.dumps(said))
    succeed(*encode(folder, '--seed', 1, '--overwrite'))
    assert precious(victim) == 5


HOSTILE = [
    '../victim', '../victim/1', 'chapters', 'chapters/1', 'thesis.tex', '.', '', 'a/../..', '\0',
]  # fmt: skip


@pytest.mark.parametrize(
    ('extra', 'absolute'),
    [
        ((), True),
        (('--overwrite',), False),
        pytest.param((), False, marks=pytest.mark.slow),
        pytest.param(('--overwrite',), True, marks=pytest.mark.slow),
    ],
)
def test_a_run_record_deletes_nothing_but_what_the_tool_makes(encode, victim, extra, absolute):
    names = [str(victim / 'victim'), str(victim / 'victim' / '1')] if absolute else HOSTILE
    left = ['n-train-00000-of-00005', 'vocab.n.8192.subwords']
    for name in left:
        write(victim / 'out' / name, b'of an earlier result')
    record = {'inputs': [], 'files': [*names, *left], 'seconds': {}, 'runner': []}
    (victim / 'out' / 'tokbeam.run.json').write_text(json.dumps(record))
    succeed(*encode(victim / 'out', *extra))
    assert precious(victim) == 3
    assert not any((victim / 'out' / name).exists() for name in left)


def test_a_manifest_deletes_nothing_but_what_the_tool_makes(encode, victim):
    folder = victim / 'out'
    succeed(*encode(folder))
    manifest = json.loads((folder / 'tokbeam.json').read_text())
    for name in ('chapters', 'chapters/1', 'thesis.tex'):
        manifest['files'].append({'name': name, 'bytes': 8, 'crc32c': '0' * 8, 'rows': 1})
    (folder / 'tokbeam.json').write_text(json.dumps(manifest))
    succeed(*encode(folder, '--seed', 1, '--overwrite'))
    assert precious(victim) == 3


@pytest.mark.parametrize('name', ['../victim/1', pytest.param('', marks=pytest.mark.slow)])
def test_a_manifest_with_such_names_is_none(encode, victim, name):
    folder = victim / 'out'
    succeed(*encode(folder))
    manifest = json.loads((folder / 'tokbeam.json').read_text())
    manifest['files'][0]['name'] = name
    (folder / 'tokbeam.json').write_text(json.dumps(manifest))
    assert 'is not a manifest of tokbeam' in refuse(*encode(folder))
    succeed(*encode(folder, '--overwrite'))
    assert precious(victim) == 3


def test_a_folder_in_the_place_of_an_earlier_file_is_not_deleted(encode, victim):
    write(victim / 'out' / 'n-train-00004-of-00005' / '1', b'precious')
    record = {'inputs': [], 'files': ['n-train-00004-of-00005'], 'seconds': {}, 'runner': []}
    (victim / 'out' / 'tokbeam.run.json').write_text(json.dumps(record))
    succeed(*encode(victim / 'out'))
    assert precious(victim) == 4


def test_a_link_in_the_place_of_an_earlier_file_is_removed(encode, victim):
    (victim / 'out' / 'n-train-00004-of-00005').symlink_to('../victim/1')
    record = {'inputs': [], 'files': ['n-train-00004-of-00005'], 'seconds': {}, 'runner': []}
    (victim / 'out' / 'tokbeam.run.json').write_text(json.dumps(record))
    succeed(*encode(victim / 'out'))
    assert precious(victim) == 3
    assert not os.path.lexists(victim / 'out' / 'n-train-00004-of-00005')


def test_a_link_that_looks_like_an_attempt_is_not_followed(encode, victim):
    link = Attempt(str(victim / 'out')).path
    os.symlink('../victim', link)
    succeed(*encode(victim / 'out'))
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


@pytest.mark.parametrize('place', ['file', 'link'])
def test_what_is_in_the_place_of_the_work_folder_is_told_before_any_work(encode, victim, place):
    folder = victim / 'out'
    succeed(*encode(folder))
    whole = result_files(folder)
    if place == 'file':
        (folder / '.tokbeam').write_text('mine')
    else:
        (folder / '.tokbeam').symlink_to('../victim')
    assert '.tokbeam is in the place of the work folder' in refuse(
        *encode(folder, '--seed', 1, '--overwrite')
    )
    assert result_files(folder).items() >= whole.items()
    assert precious(victim) == 3


def test_rejected_lines_are_not_written_through_a_link(encode, victim, material):
    bad = write(victim / 'bad', (material / 'text').read_bytes() + b'\xff\n')
    (victim / 'out' / 'rejected').symlink_to('../victim')
    command = [bad if each == material / 'text' else each for each in encode(victim / 'out')]
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


@pytest.mark.parametrize('how', ['itself', 'link', 'other spelling'])
def test_no_input_is_replaced_by_the_result(material, tmp_path, how):
    text = write(tmp_path / 'text', (material / 'text').read_bytes())
    given = text
    if how == 'link':
        given = tmp_path / 'link'
        given.symlink_to(text)
    output = tmp_path / 'x' / '..' / 'text' if how == 'other spelling' else text
    said = refuse('vocab', '--text', given, '--vocab-size', 120, '--output', output, '--overwrite')
    assert 'is read by this run and would be replaced' in said
    assert text.read_bytes() == (material / 'text').read_bytes()


def test_no_vocabulary_is_deleted_with_the_result_that_it_belongs_to(material, tmp_path):
    folder = tmp_path / 'out'
    text = material / 'text'
    succeed('build', '--text', text, '--name', 'n', '--vocab-size', 120, '--output', folder)
    vocabulary = folder / 'vocab.n.120.subwords'
    said = refuse(
        'encode', '--text', text, '--vocab', vocabulary, '--name', 'n', '--output', folder,
        '--overwrite',
    )  # fmt: skip
    assert str(vocabulary) in said and 'would be replaced' in said
    assert vocabulary.exists() and (folder / 'tokbeam.json').exists()


REPLACED = 'is read by this run and would be replaced'


def test_an_archive_is_not_replaced_by_what_is_made_of_a_member(tmp_path):
    write(tmp_path / 'a', b'a line of words\n' * 9)
    with tarfile.open(tmp_path / 'c.tar', 'w') as archive:
        archive.add(tmp_path / 'a', 'a')
    before = (tmp_path / 'c.tar').read_bytes()
    said = refuse(
        'vocab', '--text', f'{tmp_path}/c.tar!a', '--scheme', 'word', '--vocab-size', 50,
        '--output', tmp_path / 'c.tar', '--overwrite',
    )  # fmt: skip
    assert f'{tmp_path}/c.tar {REPLACED}' in said
    assert (tmp_path / 'c.tar').read_bytes() == before


@pytest.mark.parametrize('name', ['n-train-00000-of-00001', 'rejected/train.unknown_label.jsonl'])
@pytest.mark.parametrize('how', ['itself', 'link', 'hard link'])
def test_names_of_labels_are_not_replaced(tmp_path, name, how):
    out = tmp_path / 'out'
    labels = write(out / name, b'good\nbad\n')
    given = labels
    if how != 'itself':
        given = tmp_path / 'labels'
        os.symlink(labels, given) if how == 'link' else os.link(labels, given)
    write(tmp_path / 'text', b'a line\nanother\n')
    write(tmp_path / 'marks', b'good\nbad\n')
    said = refuse(
        'encode', '--text', tmp_path / 'text', '--line-labels', tmp_path / 'marks',
        '--labels', given, '--scheme', 'byte', '--name', 'n', '--shards', 1, '--output', out,
        '--overwrite',
    )  # fmt: skip
    assert f'{given} {REPLACED}' in said
    assert labels.read_bytes() == b'good\nbad\n'


def test_a_job_file_and_what_it_names_are_not_replaced(tmp_path):
    write(tmp_path / 'text', b'a line of words\n' * 9)
    job = write(
        tmp_path / 'job.toml',
        b'[train]\nformat = "text"\npaths = "text"\n[vocabulary]\nvocab_size = 50\n',
    )
    whole = job.read_bytes()
    for output in ('job.toml', 'text'):
        said = refuse('vocab', job, '--output', tmp_path / output, '--overwrite')
        assert f'{tmp_path / output} {REPLACED}' in said
    assert job.read_bytes() == whole


def test_an_input_is_not_replaced_under_another_of_its_names(material, tmp_path):
    text = write(tmp_path / 'text', (material / 'text').read_bytes())
    os.link(text, tmp_path / 'vocabulary')
    said = refuse(
        'vocab', '--text', text, '--vocab-size', 120, '--output', tmp_path / 'vocabulary',
        '--overwrite',
    )  # fmt: skip
    assert REPLACED in said
    assert text.read_bytes() == (tmp_path / 'vocabulary').read_bytes()


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
    for name in ('vocab', 'vocab.tokbeam.json'):
        write(tmp_path / name, (material / name).read_bytes())
    data = bytearray((tmp_path / 'vocab').read_bytes())
    data[-3] ^= 1
    (tmp_path / 'vocab').write_bytes(data)
    command = [
        tmp_path / 'vocab' if each == material / 'vocab' else each
        for each in encode(tmp_path / 'out')
    ]
    assert str(tmp_path / 'vocab') in refuse(*command)
    assert not (tmp_path / 'out').exists()
