"""SGM through the command: entities, and files that do not fit together."""

import pytest
from dataset_files import manifest_of, read_shards
from jobs import refuse, succeed, write

COUNT = 40
BUILD = ['--name', 'sgm', '--shards', 1, '--scheme', 'byte']


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


@pytest.mark.parametrize('entities', [pytest.param('keep', marks=pytest.mark.slow), 'decode'])
def test_examples_are_those_of_the_segments(plain, tmp_path, entities):
    change = str if entities == 'keep' else lambda text: text.replace('&amp;', '&')
    found = build(tmp_path / 'out', *plain, '--entities', entities)
    assert examples(found) == examples(as_bitext(tmp_path, change))
    manifest = manifest_of(found)
    assert manifest['options']['entities'] == entities
    assert [each['role'] for each in manifest['inputs']] == ['sgm_source', 'sgm_target']
    [tally] = manifest['lines']
    assert (tally['lines'], tally['examples'], tally['empty']) == (COUNT + 6, COUNT, 6)


def test_files_of_other_numbers_of_lines_are_refused(plain, tmp_path):
    longer = write(tmp_path / 'longer.sgm', TARGET + b'<seg>one more</seg>\n')
    given = ['--sgm-source', plain[0], '--sgm-target', longer, *BUILD]
    said = refuse('build', *given, '--output', tmp_path / 'out')
    assert f'has {COUNT + 6} lines but' in said


def test_entities_are_of_sgm_alone(plain, tmp_path):
    given = ['--source', plain[0], '--target', plain[1], *BUILD, '--entities', 'decode']
    said = refuse('build', *given, '--output', tmp_path / 'out')
    assert '--entities goes with --sgm-source or --sgm-target' in said
