"""The pages' figures come from a file of figures, and tokbench's protocol counts equal ids alone."""

import json
import re
import shutil
import sys
import types

import pytest

from tests import tokenizer_files

from . import page, tokbench, tokbench_lines
from .__main__ import main, wanted_rows
from .corpora import Corpora
from .inputs import Materials
from .peers import documents, hugging_face
from .rows import all_rows
from .running import ROOT, Run
from .scale import FULL
from .speed_plot import labelled

_PACKAGE = """
class Encoding:
    def __init__(self, text):
        self.ids = list(text.encode())

    def __len__(self):
        return len(self.ids)

class Compiled:
    def encode(self, text, *, add_special_tokens=True):
        return Encoding(text)

    def encode_batch(self, texts, *, add_special_tokens=True):
        return [Encoding(text) for text in texts]

class Tokenizer:
    @staticmethod
    def from_file(path):
        return Tokenizer()

    def compile(self):
        return Compiled()
"""
"""As tokenizers 1.0.0rc4: a tokenizer that is not compiled cannot encode."""

_LIMITS = {
    'machine': dict.fromkeys(
        ('scan', 'copy', 'first-copy', 'crc32c', 'sha256', 'write', 'read', 'near-look-up', 'look-up',
         'far-look-up'), 0.123,
    ),
    'texts': {
        name: {'bytes': 7_000_000, 'phases': {
            'count': {'whole': 3.0, 'stages': stages, 'rest': 0.5},
            'encode': {'whole': 4.0, 'stages': {}, 'rest': 4.0},
        }}
        for name, stages in (
            ('docs.en', {'read text': [2.0, 1.5], 'find lines': [0.5, 0]}),
            ('poetry.zh', {'read text': [2.5, 0]}),
        )
    },
}  # fmt: skip


def test_documents_are_whole_characters_and_lose_nothing():
    text = 'aé我🙂\n' * 5000
    cut = documents.cut_documents(text.encode(), 100)
    assert ''.join(cut) == text
    assert all(0 <= len(each.encode()) - documents.DOCUMENT_BYTES < 4 for each in cut[:-1])
    assert documents.cut_documents(text.encode(), 2) == cut[:2]


def test_a_newer_tokenizers_is_compiled(monkeypatch):
    package = types.ModuleType('tokenizers')
    exec(_PACKAGE, package.__dict__)
    monkeypatch.setitem(sys.modules, 'tokenizers', package)
    encode, encode_batch = hugging_face.open_tokenizer('tokenizer.json')
    assert encode('ab').ids == encode_batch(['ab'])[0].ids == [97, 98]
    one, batch = documents.ENGINES['tokenizers']('tokenizer.json')
    assert one('ab') == [97, 98]
    assert batch(['a', 'b']) == [[97], [98]]


def test_tiktoken_takes_the_parts_of_a_file_or_says_what_it_lacks():
    split = {'type': 'Split', 'pattern': {'Regex': 'x+'}}
    byte_level = {'type': 'ByteLevel', 'use_regex': False}
    file = {
        'normalizer': None,
        'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [split, byte_level]},
        'added_tokens': [{'id': 3, 'content': '<s>'}],
        'model': {'vocab': {'Ġ': 0, 'a': 1, 'Ġa': 2, '<s>': 3}, 'merges': [['Ġ', 'a']]},
    }
    assert documents.tiktoken_parts(file) == ('x+', {b' ': 0, b'a': 1, b' a': 2}, {'<s>': 3})
    with pytest.raises(ValueError, match='does not normalize'):
        documents.tiktoken_parts({**file, 'normalizer': {'type': 'NFC'}})
    with pytest.raises(ValueError, match='one pattern'):
        documents.tiktoken_parts({**file, 'pre_tokenizer': {'type': 'Metaspace'}})
    model = {'vocab': {'Ġ': 0, 'a': 1, 'Ġa': 3, 'aa': 2}, 'merges': [['Ġ', 'a'], ['a', 'a']]}
    with pytest.raises(ValueError, match='order of the merges'):
        documents.tiktoken_parts({**file, 'model': model})


def test_a_file_that_cannot_be_made_is_tried_once(tmp_path):
    materials = Materials(Corpora(tmp_path, 0))
    tried = []

    def make(path):
        tried.append(path)
        raise LookupError('why')

    for _ in range(2):
        with pytest.raises(LookupError, match='why'):
            materials.cached('file', make)
    assert len(tried) == 1


def test_halves_are_all_lines_of_a_text(tmp_path):
    (tmp_path / 'text.txt').write_text('one\ntwo two\nthree\n')
    halves = Materials(Corpora(tmp_path, 0)).halves('text')
    assert [half.read_text() for half in halves] == ['one\ntwo two\n', 'three\n']


@pytest.mark.slow
def test_tokbench_counts_libraries_with_equal_ids(tmp_path, monkeypatch):
    """The installed `tokenizers` stands in for the version that has to be fetched."""
    pytest.importorskip('tokenizers')
    libraries = {
        **{label: tokbench.LIBRARIES[label] for label in ('tokbeam', 'tokbeam, lists')},
        tokbench.REFERENCE: tokbench.LIBRARIES[tokbench.REFERENCE]._replace(requirement=None),
    }
    monkeypatch.setattr(tokbench, 'LIBRARIES', libraries)
    writers = {kind: tokbench._WRITERS[kind] for kind in ('code', 'chat', 'special')}
    monkeypatch.setattr(tokbench, '_WRITERS', writers)
    monkeypatch.setattr(tokenizer_files, 'CACHE', tmp_path / 'none')
    output = tmp_path / 'figures.json'
    assert main(['--smoke', '--tokbench', 'gpt2*', 'qwen3', '--output', str(output)]) == 0
    *cells, missing = json.loads(output.read_text())['tokbench']
    assert missing['model'] == 'qwen3'
    assert missing['ids'].startswith('missing: ')
    assert len(cells) == (6 + 2) * len(libraries)
    for cell in cells:
        assert cell['ids'] == 'equal'
        assert min(cell[speed][0] for speed in tokbench.SPEEDS) > 0


def test_a_model_that_is_not_there_is_refused(capsys):
    assert main(['--tokbench', 'no-such']) == 2
    assert 'gpt2 learned here' in capsys.readouterr().err


def test_ids_that_differ_have_no_speed():
    def run(*digests: str) -> Run:
        kind = {'bytes': 10, 'cold': 1, 'unseen': 1, 'repeated': 1, 'digests': list(digests)}
        return Run(1, facts={'version': '1', 'kinds': {'english': kind}})

    figures = tokbench._figures([run('a', 'b')], [run('a', 'c')], 'english')
    assert figures['ids'] == 'differ in 1 of 2 documents'
    assert not set(tokbench.SPEEDS) & set(figures)


def test_every_figure_of_the_pages_has_rows_and_a_table(tmp_path):
    names = [row.name for row in wanted_rows(all_rows(FULL), page.ROWS)]
    assert all(wanted_rows(all_rows(FULL), [pattern]) for pattern in page.ROWS)
    for folder in ('docs', 'deploy'):
        (tmp_path / folder).mkdir()
    for name in page.PAGES:
        shutil.copy(ROOT / name, tmp_path / name)
    figures = tmp_path / 'figures.json'
    figures.write_text(json.dumps(_figures_of(names)))
    page.write_pages(figures, tmp_path)
    written = [(tmp_path / name).read_text() for name in page.PAGES]
    used = {name for text in written for _, name, _ in page._BLOCK.findall(text)}
    assert used == set(page.BLOCKS)
    assert '| English documentation | 100 ±10% | 50 ±10% (2) |' in written[1]
    assert '| cl100k, English documentation | 100 ±10% | 50 ±10% (2) |' in written[1]
    assert '| `merges/poetry.zh` | peer | 0.50 |' in written[1]
    assert '| stage | English documentation, 7 MB | Chinese poetry, 7 MB |' in written[1]
    assert (
        '| read text | 2.00 (1.50) | 2.50 |\n| find lines | 0.50 |  |\n| the rest |' in written[1]
    )
    assert re.search(r'faster\sin\s1\sof\s\d+\s\[comparisons\]', written[0])
    one_line = ' '.join(written[1].split())
    counted = '0 of 1 [pairs of model and unseen text]({}#tokbenchs-protocol)'
    others = ', 0 of 1 with a new encoder and 1 of 1 with repeated text.'
    assert counted.format('') + others in one_line
    assert counted.format('docs/benchmarks.md') + '.' in ' '.join(written[0].split())
    assert 'tokenizers 1.0.0rc3 | 0.5 s, 0.1 s | 10 | 10 | 11' in written[1]
    for text in written[1:]:
        assert '|  | one worker | two workers | two processes | kernels alone |' in text
        assert '| encode | 50 ±10% | 100 ±10% (2.00) | 125 ±10% (2.50) |' in text
    assert '| 0.56 + 0.52 to 0.64 + 0.56 |' in written[2]
    failed = {**_figures_of(names), 'tokbench': []}
    for row in failed['rows']:
        for contender in (row['comparisons'][0]['ours'], row['comparisons'][0]['peer']):
            contender.update(median_seconds=None, all_seconds=[], problem='failed: why')
        row['comparisons'][0]['ratio'] = None
    assert 'failed: why' in page.with_figures(written[1], failed)
    assert '| count | failed: why |' in page.with_figures(written[2], failed)
    assert 'did not measure them' in page.with_figures(written[2], failed)
    for text, name in zip(written, page.PAGES, strict=True):  # what was there is gone
        page.write_pages(figures, tmp_path)
        assert (tmp_path / name).read_text() == text


def test_a_table_of_tokbench_has_a_line_for_each_library():
    libraries = [f'{number} library' for number in range(7)]
    cells = [
        _cell(library=library, kind=kind, cores=cores, cold=[1.0, 2, 3], unseen=[2.0, 2, 2])
        for cores, kinds in (('one', 'abcde'), ('all', 'ab'))
        for kind in kinds
        for library in libraries
    ]
    cells[0].update(ids='differ in 1 of 9 documents', cold=None)  # kind a does not count
    for cell in cells:
        if cell['library'] == libraries[1]:
            cell['ids'] = 'refuses: why'
            del cell['version']
    head, *lines = tokbench_lines.library_lines(cells)
    assert head == ['', 'opened', 'cold', 'unseen', 'repeated', 'all cores', 'equal ids']
    assert [line[0].split()[0] for line in lines] == list('0123456')
    assert lines[0][1:] == ['0.5 s, 0.1 s', '2 ±50%', '2 ±0%', '10', '2 ±0%', '4 of 5: not a']
    assert lines[1][1:] == ['', '', '', '', '', 'refuses: why']
    assert lines[2][1:] == [*lines[0][1:-1], '5 of 5']


@pytest.mark.parametrize(
    ('label', 'reported', 'shown'),
    [
        ('tokenizers BPE', None, 'tokenizers 0.22.2, BPE'),
        ('tokenizers 1.0', '1.0.0rc3', 'tokenizers 1.0.0rc3'),
        ('tokenizers 1.0', None, 'tokenizers 1.0'),  # failed: no version is known
        ('tf.data', None, 'tf.data 2.21.0'),
        ('litdata', None, 'litdata'),
        ('re.findall + Counter', None, 're.findall + Counter'),
    ],
)
def test_a_label_has_a_version_if_it_is_known(label, reported, shown):
    versions = {'tokenizers': '0.22.2', 'tensorflow': '2.21.0', 'litdata': 'missing'}
    facts = {'version': reported} if reported else {}
    assert labelled({'label': label, 'facts': facts}, versions) == shown


def _figures_of(names: list[str]) -> dict:
    def contender(label: str, seconds: float) -> dict:
        times = [0.9 * seconds, seconds, 1.1 * seconds]
        return {'label': label, 'median_seconds': seconds, 'all_seconds': times, 'problem': None,
                'facts': {}}  # fmt: skip

    def compared(ours: dict, peer: dict) -> dict:
        ratio = peer['median_seconds'] / ours['median_seconds']
        return {'text_bytes': 100_000_000, 'ratio': ratio, 'ours': ours, 'peer': peer}

    def row(name: str) -> dict:
        ours, peer = contender('tokbeam', 1), contender('peer', 2)
        if name.startswith('large/'):
            two, one = contender('two workers', 1), contender('one worker', 2)
            comparisons = [
                compared(two, one),
                compared(two, contender('two processes', 0.8)),
                compared(one, contender('kernels alone', 1.6)),
            ]
        elif name == 'merges/poetry.zh':
            comparisons = [compared(ours, contender('peer', 0.5))]
        else:
            comparisons = [compared(ours, peer)]
        return {'name': name, 'task': name, 'comparisons': comparisons}

    return {
        'date': '1 May 2026', 'machine': {'processor': 'P', 'cores': 2, 'python': '3.11'},
        'versions': {}, 'corpora': {}, 'seconds': 60, 'lanes': 2, 'rows': list(map(row, names)),
        'tokbench': [_cell(repeated=[11.0]), _cell(library='tokbeam')], 'limits': _LIMITS,
    }  # fmt: skip


def _cell(**values: object) -> dict:
    speeds = {speed: [10.0] for speed in tokbench.SPEEDS}
    cell = {'model': 'gpt2 learned here', 'kind': 'english', 'cores': 'one', 'ids': 'equal',
            'library': 'tokenizers 1.0', 'version': '1.0.0rc3', 'opened': [0.5, 0.1]}  # fmt: skip
    return {**cell, **speeds, **values}
