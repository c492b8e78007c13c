"""JSON lines that are too long or too deep, or lack fields: refused or rejected, in bounded memory."""

import pytest
from dataset_files import lines_of

MIB = 1 << 20
LONG = 100 * MIB
MORE_BYTES = 128 * MIB  # than a command takes that reads little
SOUND = b'{"text": "a sound line"}\n'
DEPTH = 10_000


@pytest.fixture
def count(lane, tmp_path):
    def run(data, *words):
        (tmp_path / 'docs.jsonl').write_bytes(data)
        return lane.run(
            ['count', '--jsonl', 'docs.jsonl', *words, '--output', 'out', '--overwrite'], tmp_path
        )

    return run


def test_a_line_of_100_mb_stops_a_job_or_is_left_out_and_is_never_held(count, tmp_path):
    data = SOUND + b'{"text": "' + b'long ' * (LONG // 5) + b'"}\n' + SOUND
    usual = count(SOUND)
    assert usual.status == 0, usual.stderr
    stopped = count(data)
    stopped.assert_refused(
        f', line 2: the line that starts at byte {len(SOUND)} has', '--max-line-size'
    )
    skipped = count(data, '--on-error=skip')
    assert skipped.status == 0, skipped.stderr
    found = lines_of(tmp_path / 'out')
    assert (found['lines'], found['examples'], found['too_long']) == (3, 2, 1)
    assert max(stopped.peak, skipped.peak) - usual.peak < MORE_BYTES


NESTED = {
    'lists': b'[' * DEPTH + b']' * DEPTH,
    'lists without an end': b'[' * DEPTH,
    'objects': b'{"text":' * DEPTH + b'1' + b'}' * DEPTH,
}


@pytest.mark.parametrize('what', NESTED)
@pytest.mark.parametrize('field', ['text', 'text.text.text'])
def test_a_value_ten_thousand_deep_is_refused_or_rejected(count, tmp_path, field, what):
    data = b'{"text": ' + NESTED[what] + b'}\n'
    sound = b'{"text":{"text":{"text":"x"}}}\n' if '.' in field else SOUND
    count(data * 3 + sound, '--fields', field).assert_refused(
        'docs.jsonl, line 1: the line at byte 0'
    )
    skipped = count(data * 3 + sound, '--fields', field, '--on-error=skip')
    assert skipped.status == 0, skipped.stderr
    found = lines_of(tmp_path / 'out')
    # How deep Python's parser goes depends on its version.
    left_out = found.get('invalid_json', 0) + found.get('not_a_string', 0)
    assert (found['lines'], found['examples'], left_out) == (4, 1, 3)


@pytest.mark.parametrize('depth', [DEPTH, 1_000_000])
def test_a_field_that_is_not_read_may_be_of_any_depth(count, tmp_path, depth):
    data = b'{"text": "x", "other": ' + b'[' * depth + b']' * depth + b'}\n'
    ended = count(data + SOUND)
    assert ended.status == 0, ended.stderr
    assert lines_of(tmp_path / 'out')['examples'] == 2


def test_no_line_has_a_string_and_an_object_in_one_field(tokbeam, tmp_path):
    path = tmp_path / 'docs.jsonl'
    path.write_text('{"doc": "x"}\n{"doc": {"text": "x"}}\n{}\n{"id": 1}\n')
    for fields in ('doc,doc.text', 'doc.text,doc'):
        words = ['count', '--jsonl', path, '--fields', fields, '--output', tmp_path / 'out']
        tokbeam(*words).assert_refused('docs.jsonl, line 1: the line at byte 0')
        tokbeam(*words, '--on-error=skip').assert_refused('docs.jsonl')
    good = tmp_path / 'good.jsonl'
    good.write_text('{"doc": "a", "text": "b"}\n' + path.read_text())
    words = ['count', '--jsonl', good, '--fields', 'doc,text', '--on-error=skip']
    assert tokbeam(*words, '--output', tmp_path / 'out').status == 0
    assert lines_of(tmp_path / 'out')['examples'] == 1
