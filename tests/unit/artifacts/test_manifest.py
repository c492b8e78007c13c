"""A manifest comes back as it was written, and is equal bytes for equal runs."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.artifacts.manifest import RunRecord, read_manifest, read_run
from tokcore.corpus.stats import LineTally
from tokcore.errors import InputError
from tokcore.format_numbers import MANIFESTS
from tokcore.records.manifest import InputText, Manifest, OutputFile, VocabularyRecord
from tokcore.schemes import find_scheme

RULES = find_scheme('subword').rules
MANIFEST = Manifest(
    'build',
    '14.0.0',
    {'seed': 0, 'source_prefix': 'to 中文: ', 'min_count_range': None, 'columns': [0, 1]},
    (InputText('train', 'tsv', 'a/中.tsv', 100, '0000abcd'),),
    RULES,
    (LineTally('train', 12, 9, 1, {'invalid_utf8': 1, 'missing_column': 1}),),
    tokens=70,
    vocabularies=(
        VocabularyRecord(
            'both',
            'vocab',
            90,
            800,
            '00000001',
            'subword',
            {'pad': 0},
            None,
            RULES,
            min_count=3,
            tried=((500, 60), (3, 90)),
        ),
    ),
    files=(OutputFile('x-train-00000-of-00001', 900, '12345678', 9),),
    index=(OutputFile('index/x-train-00000-of-00001', 112, '12345679', 9),),
)
RUN = RunRecord((('/data/a.tsv', 50, 1.5),), ('b', 'a'), {'count': 1.25}, ('--runner=local',))


texts = st.text(st.characters(exclude_categories=['Cs']), max_size=10)
names = st.sampled_from(['a', '中', 'index/x-train-00000-of-00001', 'a b/\udcff', '...'])
sizes, file_sizes = st.integers(0, 2**63), st.integers(0, 2**40)
checksums = st.from_regex('[0-9a-f]{8}', fullmatch=True)


def tuples(elements):
    return st.lists(elements, max_size=3).map(tuple)


left_out = st.dictionaries(
    st.sampled_from(['invalid_utf8', 'missing_column', 'too_long', 'too_short']), sizes
)

manifests = st.builds(
    Manifest,
    stage=st.sampled_from(list(MANIFESTS)),
    unicode=texts,
    rules=st.just(RULES),
    options=st.dictionaries(
        texts, st.none() | sizes | texts | st.lists(sizes, max_size=3), max_size=4
    ),
    inputs=tuples(st.builds(InputText, texts, texts, texts, sizes, texts)),
    lines=tuples(st.builds(LineTally, texts, sizes, sizes, sizes, left_out)),
    tokens=st.none() | sizes,
    vocabularies=tuples(
        st.builds(
            VocabularyRecord,
            st.sampled_from(['inputs', 'targets', 'both']),
            names,
            st.integers(1, 2**31),
            file_sizes,
            checksums,
            texts,
            st.dictionaries(texts, st.none() | st.integers(0, 2**31 - 1), max_size=2),
            st.none() | texts,
            st.just(RULES),
            min_count=st.none() | sizes,
            tried=tuples(st.tuples(sizes, sizes)),
        )
    ),
    files=tuples(st.builds(OutputFile, names, file_sizes, checksums, file_sizes)),
    index=tuples(st.builds(OutputFile, names, file_sizes, checksums, file_sizes)),
)


@given(manifests)
def test_any_manifest_comes_back_as_it_was(manifest):
    data = manifest.to_json()
    assert Manifest.from_json(data, 'there') == manifest
    assert Manifest.from_json(data, 'there').to_json() == data


def test_it_is_json_for_people_with_sorted_names_and_a_last_line_end():
    data = MANIFEST.to_json()
    assert data.endswith(b'}\n')
    assert '中文'.encode() in data
    fields = json.loads(data)
    assert list(fields) == sorted(fields)
    assert fields['format'] == MANIFESTS['build']


def test_the_order_of_options_changes_no_byte():
    turned = dataclasses.replace(MANIFEST, options=dict(reversed(MANIFEST.options.items())))
    assert turned.to_json() == MANIFEST.to_json()


def test_a_name_that_is_not_utf8_comes_back_as_it_was():
    # As the operating system gives it: bytes that are no UTF-8, as lone surrogates.
    named = InputText('train', 'text', b'caf\xe9.txt'.decode('utf-8', 'surrogateescape'), 1, '0')
    manifest = dataclasses.replace(MANIFEST, inputs=(named,))
    assert Manifest.from_json(manifest.to_json(), 'there') == manifest


FIELDS = json.loads(MANIFEST.to_json())


@pytest.mark.parametrize(
    'data',
    [
        b'',
        b'{',
        b'\xff\xfe',
        b'[]',
        b'7',
        b'{}',
        MANIFEST.to_json()[:-20],
        json.dumps({**FIELDS, 'surprise': 1}).encode(),
        json.dumps({**FIELDS, 'inputs': None}).encode(),
        json.dumps({**FIELDS, 'inputs': [5]}).encode(),
        json.dumps({**FIELDS, 'files': [{'name': 'x'}]}).encode(),
        json.dumps({**FIELDS, 'vocabularies': [{}]}).encode(),
        json.dumps({name: FIELDS[name] for name in FIELDS if name != 'stage'}).encode(),
        json.dumps({**FIELDS, 'stage': 'other'}).encode(),
        *(
            json.dumps({**FIELDS, 'files': [{**FIELDS['files'][0], **changed}]}).encode()
            for changed in ({'rows': -1}, {'bytes': 1 << 41}, {'crc32c': 'x'}, {'name': '../x'})
        ),
        RUN.to_json(),
    ],
)
def test_what_is_not_a_manifest_is_refused_by_name(data):
    with pytest.raises(InputError, match='out/tokbeam.json is not a manifest'):
        Manifest.from_json(data, 'out/tokbeam.json')


@pytest.mark.parametrize('stage', MANIFESTS)
@pytest.mark.parametrize('number', [0, 1, 99, '2', None])
def test_another_format_is_refused_with_both_numbers(stage, number):
    data = json.dumps({**FIELDS, 'stage': stage, 'format': number}).encode()
    with pytest.raises(InputError) as refused:
        Manifest.from_json(data, 'there')
    assert str(refused.value).startswith(
        f'there has format {number!r}, and this version of tokbeam reads format {MANIFESTS[stage]}; '
        'make it again with this version (--overwrite replaces it)'
    )


@pytest.mark.parametrize(
    ('rule', 'options', 'shown'),
    [
        ('raw-lines', {}, 'raw-lines'),
        ('raw-lines', {'form': 'NFC'}, 'raw-lines {"form": "NFC"}'),
        ('stripped-lines', {'characters': ' '}, 'stripped-lines {"characters": " "}'),
    ],
)
def test_a_line_rule_of_an_earlier_version_is_refused_by_name(rule, options, shown):
    data = json.dumps({**FIELDS, 'normalizer': {'name': rule, 'options': options}}).encode()
    with pytest.raises(InputError) as refused:
        Manifest.from_json(data, 'there')
    assert str(refused.value).startswith(
        f'there was made with the line rule {shown} of an earlier version; make it again with this '
    )


def test_a_manifest_that_is_not_there_is_none(tmp_path):
    assert read_manifest(str(tmp_path / 'tokbeam.json')) is None
    assert read_run(str(tmp_path / 'tokbeam.run.json')) is None


@pytest.mark.parametrize(
    'data',
    [
        b'',
        b'{',
        b'[]',
        b'{}',
        b'\xff',
        RUN.to_json()[:-9],
        MANIFEST.to_json(),
        b'{"inputs": [1], "files": [], "seconds": {}, "runner": []}',
        b'{"inputs": [], "files": 5, "seconds": {}, "runner": []}',
        b'{"inputs": [], "files": [], "seconds": 5, "runner": []}',
    ],
)
def test_what_is_not_a_run_record_is_none(data):
    # It is only a short cut, so it never stops a run.
    assert RunRecord.from_json(data) is None


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
PATHS = [
    (name,) for name in FIELDS
] + [(name, 0, field) for name in FIELDS if isinstance(FIELDS[name], list) for field in
     (FIELDS[name][0] if FIELDS[name] else ())]  # fmt: skip


@given(st.sampled_from(PATHS), anything)
def test_a_manifest_with_anything_anywhere_is_one_or_is_refused(path, value):
    fields = json.loads(json.dumps(FIELDS))
    place = fields
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    try:
        manifest = Manifest.from_json(json.dumps(fields).encode(), 'there')
    except InputError as error:
        assert 'there' in str(error)
    else:
        # What uses it need not look at types again.
        assert all(name and not name.startswith('/') for name in (e.name for e in manifest.outputs))
        assert isinstance(manifest.options, dict) and isinstance(manifest.unicode, str)
        manifest.to_json()


@given(anything)
def test_any_json_is_a_run_record_or_none(value):
    RunRecord.from_json(json.dumps(value).encode())
    fields = json.loads(RUN.to_json())
    for name in fields:
        RunRecord.from_json(json.dumps({**fields, name: value}).encode())


@pytest.mark.parametrize(
    'name', ['../x', '/x', '', '.', '..', 'a/../b', 'a//b', 'a/b/c', 'a/', '\0']
)
def test_a_name_that_leads_elsewhere_is_not_a_name_of_a_manifest(name):
    file = {'name': name, 'bytes': 1, 'crc32c': '00000000', 'rows': 1}
    with pytest.raises(InputError, match='not the name of a file in the folder'):
        Manifest.from_json(json.dumps({**FIELDS, 'files': [file]}).encode(), 'there')
