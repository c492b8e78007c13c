"""SGM through the command: compressed, in archives, in job files, and what is in no segment."""

import io
import json
import tarfile

import pytest
from dataset_files import files_of, manifest_of, read_shards
from jobs import refuse, succeed, write

COUNT = 40
BUILD = ['--name', 'sgm', '--shards', 1, '--vocab-size', 80]


def sgm(language, texts):
    lines = [f'<set srclang="{language}">', '<doc docid="a">', '<p>']
    lines += [f'<seg id="{number}"> {text} </seg>' for number, text in enumerate(texts)]
    return ''.join(f'{line}\n' for line in [*lines, '</p>', '</doc>', '</set>']).encode()


SOURCES = [f'the {number} words &amp; more' for number in range(COUNT)]
TARGETS = [f'{number} Wörter &amp; mehr' for number in range(COUNT)]
SOURCE, TARGET = sgm('en', SOURCES), sgm('de', TARGETS)


@pytest.fixture
def plain(tmp_path):
    return write(tmp_path / 'a.sgm', SOURCE), write(tmp_path / 'b.sgm', TARGET)


def build(folder, source, target, *more):
    given = ['--sgm-source', source, '--sgm-target', target]
    succeed('build', *given, *BUILD, *more, '--output', folder)
    return folder


def as_bitext(folder, change=str):
    source = ''.join(f'{change(each)}\n' for each in SOURCES).encode()
    target = ''.join(f'{change(each)}\n' for each in TARGETS).encode()
    given = ['--source', write(folder / 'a.en', source), '--target', write(folder / 'b.de', target)]
    succeed('build', *given, *BUILD, '--output', folder / 'bitext')
    return folder / 'bitext'


def examples(folder):
    return sorted(repr(each) for shard in read_shards(folder) for each in shard)


@pytest.mark.parametrize('entities', ['keep', 'decode'])
def test_examples_are_those_of_the_segments(plain, tmp_path, entities):
    change = str if entities == 'keep' else lambda text: text.replace('&amp;', '&')
    found = build(tmp_path / 'out', *plain, '--entities', entities)
    assert examples(found) == examples(as_bitext(tmp_path, change))
    manifest = manifest_of(found)
    assert manifest['options']['entities'] == entities
    assert [each['role'] for each in manifest['inputs']] == ['sgm_source', 'sgm_target']
    [tally] = manifest['lines']
    assert (tally['lines'], tally['examples'], tally['empty']) == (COUNT + 6, COUNT, 6)


def test_it_does_not_matter_how_they_are_stored_or_cut(plain, tmp_path):
    known = examples(build(tmp_path / 'plain', *plain))
    packed = write(tmp_path / 'a.sgm.gz', SOURCE), write(tmp_path / 'b.sgm.gz', TARGET)
    assert examples(build(tmp_path / 'gz', *packed)) == known
    with tarfile.open(tmp_path / 'dev.tgz', 'w:gz') as tar:
        for name, text in (('dev/a.sgm', SOURCE), ('dev/b.sgm', TARGET)):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    archive = f'{tmp_path}/dev.tgz!dev/'
    assert examples(build(tmp_path / 'tar', archive + 'a.sgm', archive + '*b.sgm')) == known
    one = files_of(build(tmp_path / 'one', *plain, '--workers', 1))
    assert files_of(build(tmp_path / 'many', *plain, '--workers', 2, '--item-size', 300)) == one


def test_a_job_file_names_them(plain, tmp_path):
    job = tmp_path / 'job.toml'
    job.write_text(
        '[[train]]\nformat = "sgm"\nentities = "decode"\n'
        'paths = { sgm_source = "a.sgm", sgm_target = "b.sgm" }\n'
        '[vocabulary]\nvocab_size = 80\n[output]\nname = "sgm"\nshards = 1\noutput = "job"\n'
    )
    succeed('build', job)
    typed = build(tmp_path / 'typed', *plain, '--entities', 'decode')
    assert examples(tmp_path / 'job') == examples(typed)


def test_text_in_no_segment_stops_the_job_or_is_kept_aside(plain, tmp_path):
    lines = SOURCE.split(b'\n')
    lines[7] = lines[7].replace(b'</seg>', b'')
    broken = write(tmp_path / 'broken.sgm', b'\n'.join(lines))
    given = ['--sgm-source', broken, '--sgm-target', plain[1], *BUILD]
    said = refuse('build', *given, '--output', tmp_path / 'out')
    at = sum(len(line) + 1 for line in lines[:7])
    assert f'broken.sgm, line 8: the line at byte {at} has text outside of <seg>' in said
    succeed('build', *given, '--on-error', 'skip', '--output', tmp_path / 'out')
    [tally] = manifest_of(tmp_path / 'out')['lines']
    assert (tally['outside_segment'], tally['examples']) == (1, COUNT - 1)
    kept = tmp_path / 'out' / 'rejected' / 'train.outside_segment.jsonl'
    wanted = {'file': 'broken.sgm', 'offset': at, 'line': lines[7].decode()}
    assert json.loads(kept.read_text()) == wanted


def test_files_of_other_numbers_of_lines_are_refused(plain, tmp_path):
    longer = write(tmp_path / 'longer.sgm', TARGET + b'<seg>one more</seg>\n')
    given = ['--sgm-source', plain[0], '--sgm-target', longer, *BUILD]
    said = refuse('build', *given, '--output', tmp_path / 'out')
    assert f'has {COUNT + 6} lines but' in said


def test_entities_are_of_sgm_alone(plain, tmp_path):
    given = ['--source', plain[0], '--target', plain[1], *BUILD, '--entities', 'decode']
    said = refuse('build', *given, '--output', tmp_path / 'out')
    assert '--entities goes with --sgm-source or --sgm-target' in said
