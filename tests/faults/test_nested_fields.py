"""Fields of which one leads into the other: no line has both, and each is told as what it lacks."""

from dataset_files import lines_of


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
