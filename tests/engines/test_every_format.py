"""What every input format shows through the command.

`FORMATS` has an entry for each format of `tokcore.corpus.formats`; a format without one fails by its
name. What only one format does is tested in a file of its own.
"""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import decoded, encoders_of, files_of, lines_of, manifest_of, read_shards
from jobs import refuse, succeed, write

from tokcore.corpus.formats import CorpusFormat, corpus_format, format_names

PAIRS = [
    (f'line {number} of words', '' if number % 9 == 5 else f'{number} 词, «Wörter ß»')
    for number in range(40)
]
SOURCES, TARGETS = map(list, zip(*PAIRS, strict=True))

BUILD = ['--name', 'x', '--shards', 2, '--vocab-size', 90]
OUTPUT = """
[vocabulary]
vocab_size = 90

[output]
name = "x"
output = "out"
shards = 2
"""


@dataclass(frozen=True)
class Entry:
    """The pairs above as a corpus of one format.

    Attributes:
        store: returns the content of the file of each role, for pairs; None is a null.
        damage: damages the last row: of a role's file the last bytes like these, and the bytes that
            replace them; None puts a null in the place of its target.
        reason: the reason for which the damaged row is left out.
        complaint: words of the error about it; `{at}` is the byte at which the row begins.
        options: of the format, as in a job file; a `Path` is one of `other_files`.
        examples: the texts of all examples; of labels, their names.
        markup: how many empty rows are not pairs.
    """

    store: Callable[[list], Mapping[str, bytes]]
    damage: tuple[str, bytes, bytes] | None
    reason: str
    complaint: str
    options: Mapping[str, object] = field(default_factory=dict)
    other_files: Mapping[str, bytes] = field(default_factory=dict)
    examples: tuple[tuple[str, ...], ...] = tuple(pair for pair in PAIRS if all(pair))
    markup: int = 0


def lines(texts) -> bytes:
    return ''.join(f'{text}\n' for text in texts).encode()


def as_bitext(pairs):
    return {
        'source': lines(source for source, _ in pairs),
        'target': lines(target for _, target in pairs),
    }


def as_tsv(pairs):
    return {'tsv': lines(f'{target}\tnote\t{source}' for source, target in pairs)}


def as_jsonl(pairs):
    objects = [{'id': 1, 'pair': {'en': source, 'z.h': target}} for source, target in pairs]
    return {'jsonl': lines(json.dumps(row, ensure_ascii=False) for row in objects)}


def as_parquet(pairs):
    stored = io.BytesIO()
    rows = [{'pair': {'en': source, 'z.h': target}} for source, target in pairs]
    pq.write_table(pa.Table.from_pylist(rows), stored, row_group_size=7)
    return {'parquet': stored.getvalue()}


def as_sgm(pairs):
    def side(texts):
        segments = [f'<seg id="{number}"> {text} </seg>' for number, text in enumerate(texts)]
        return lines(['<set>', '<doc docid="a">', *segments, '</doc>', '</set>'])

    sources, targets = zip(*pairs, strict=True)
    return {'source': side(sources), 'target': side(targets)}


def as_tmx(pairs):
    units = [
        f'<tu><tuv xml:lang="EN-us"><seg>{escape(source)}</seg></tuv>\n'
        f'<tuv xml:lang="de"><seg><ph>code</ph>{escape(target)}</seg></tuv></tu>'
        for source, target in pairs
    ]
    return {
        'tmx': lines(
            [
                '<!DOCTYPE tmx SYSTEM "tmx14.dtd">',
                '<tmx version="1.4"><body>',
                *units,
                '</body></tmx>',
            ]
        )
    }


def as_tmx_lines(pairs):
    segments = [f' <seg>{text}</seg>' for pair in pairs for text in pair]
    return {'tmx_lines': lines(['<body>', *segments, '</body>'])}


def as_labelled(pairs):
    """The labels are those of the targets: `none` of an empty one."""
    labels = ['some' if target else 'none' for _, target in pairs]
    return {'text': lines(source for source, _ in pairs), 'line_labels': lines(labels)}


def as_text(pairs):
    return {'text': lines(target for _, target in pairs)}


NAMED = {'fields': ['pair.en', 'pair.z\\.h']}
NAMES = ('none', 'some')

FORMATS = {
    'bitext': Entry(
        as_bitext,
        ('source', b'line 39', b'\xffine 39'),
        'invalid_utf8',
        'invalid UTF-8 at byte {at}',
    ),
    'tsv': Entry(
        as_tsv,
        ('tsv', b'\tnote\tline 39', b'line 39'),
        'missing_column',
        'line at byte {at}',
        {'columns': [2, 0]},
    ),
    'jsonl': Entry(
        as_jsonl, ('jsonl', b'{"en": "line 39', b'"line 39'), 'invalid_json', 'byte {at}', NAMED
    ),
    'parquet': Entry(as_parquet, None, 'null', 'row 39 has nothing', NAMED),
    'sgm': Entry(
        as_sgm,
        ('source', b' </seg>', b' </seg> more'),
        'outside_segment',
        'line at byte {at} has text outside of <seg>',
        {'entities': 'decode'},
        markup=4,
    ),
    'tmx': Entry(
        as_tmx,
        ('tmx', b'line 39', b'&line; 39'),
        'undefined_entity',
        'unit at byte {at} refers to an entity',
        {'languages': 'en,de'},
    ),
    'tmx-lines': Entry(
        as_tmx_lines,
        ('tmx_lines', b' <seg>line 39 of words</seg>\n', b''),
        'unmatched_segment',
        'segment at byte {at} has no partner',
    ),
    'labelled': Entry(
        as_labelled,
        ('line_labels', b'some', b'else'),
        'unknown_label',
        'label at byte {at} is not one of the 2 names',
        {'labels': Path('names')},
        {'names': lines(NAMES)},
        examples=tuple((source, NAMES[target != '']) for source, target in PAIRS),
    ),
    'text': Entry(
        as_text,
        ('text', '39 词'.encode(), b'\xff'),
        'invalid_utf8',
        'invalid UTF-8 at byte {at}',
        examples=tuple((target,) for _, target in PAIRS if target),
    ),
}


@dataclass(frozen=True)
class Corpus:
    """An entry's files in a folder, and the dataset that one worker builds of them."""

    entry: Entry
    folder: Path
    paths: Mapping[str, Path]
    format: type[CorpusFormat]

    def build(self, output: Path, *more: object, **other_paths: Path) -> list[object]:
        """Returns the command line that builds a dataset of the corpus."""
        words: list[object] = ['build']
        paths = {**self.paths, **other_paths}
        if self.format.is_in_job_files_only:
            job = f'[[train]]\nformat = "{self.format.name}"\n{_paths_in_toml(paths)}'
            words.append(write(self.folder / 'of-files.toml', job.encode()))
        else:
            words += [word for role, path in paths.items() for word in (_option(role), path)]
        for name, value in self.entry.options.items():
            words += [_option(name), self._words(value)]
        return [*words, *BUILD, '--output', output, *more]

    def _words(self, value: object) -> object:
        if isinstance(value, Path):
            return self.folder / value
        return ','.join(map(str, value)) if isinstance(value, list) else value


def _option(name: str) -> str:
    return '--' + name.replace('_', '-')


@pytest.fixture(scope='module', params=format_names())
def corpus(request, tmp_path_factory) -> Corpus:
    assert request.param in FORMATS, f'FORMATS has no entry for the format {request.param}'
    entry = FORMATS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    for name, content in entry.other_files.items():
        write(folder / name, content)
    stored = entry.store(PAIRS)
    kind = corpus_format(request.param)
    ending = kind.endings[0] if kind.endings else ''
    paths = {
        role: write(folder / f'in.{role}{ending}', content) for role, content in stored.items()
    }
    corpus = Corpus(entry, folder, paths, kind)
    assert tuple(paths) == corpus.format.roles
    job = f'[[train]]\nformat = "{request.param}"\n' + _paths_in_toml(paths)
    for name, value in entry.options.items():
        job += f'{name} = {json.dumps(str(value) if isinstance(value, Path) else value)}\n'
    write(folder / 'job.toml', (job + OUTPUT).encode())
    succeed(*corpus.build(folder / 'out', '--workers', 1))
    return corpus


def _paths_in_toml(paths: Mapping[str, Path]) -> str:
    names = {role: json.dumps(str(path)) for role, path in paths.items()}
    if len(names) == 1:
        return f'paths = {[*names.values()][0]}\n'
    return f'paths = {{ {", ".join(f"{role} = {name}" for role, name in names.items())} }}\n'


def texts_of(folder: Path) -> list[tuple[str, ...]]:
    """Returns the texts of all examples, sorted, with the names of labels."""
    rows = [row for shard in read_shards(folder) for row in shard]
    encoders = encoders_of(folder)
    names = manifest_of(folder)['options'].get('labels')
    if not names:
        return sorted(decoded(rows, encoders))
    texts = decoded([{'inputs': row['inputs']} for row in rows], encoders)
    labels = [names[row['targets'][0]] for row in rows]
    return sorted((text, label) for [text], label in zip(texts, labels, strict=True))


def vocabularies(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob('vocab.*')}


@pytest.fixture(scope='module')
def vocabularies_of_pairs(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp('pairs')
    path = write(folder / 'pairs.tsv', lines(map('\t'.join, PAIRS)))
    succeed('build', '--tsv', path, *BUILD, '--output', folder / 'out')
    return vocabularies(folder / 'out')


def test_rows_are_examples_and_counted(corpus, vocabularies_of_pairs):
    folder, entry = corpus.folder / 'out', corpus.entry
    assert texts_of(folder) == sorted(entry.examples)
    if entry.examples == Entry.examples:
        assert vocabularies(folder) == vocabularies_of_pairs
    tally = lines_of(folder)
    assert tally['lines'] == len(PAIRS) + entry.markup
    assert tally['lines'] == tally['examples'] + tally['empty']
    roles = [stored['role'] for stored in manifest_of(folder)['inputs']]
    assert roles == list(corpus.paths)


def test_a_job_file_says_the_same_as_options_however_it_is_run(corpus, tmp_path, capfd):
    succeed('build', corpus.folder / 'job.toml', '--print-job')
    printed = capfd.readouterr().out
    succeed(*corpus.build(corpus.folder / 'out', '--print-job'))
    assert capfd.readouterr().out == printed
    job = write(tmp_path / 'elsewhere' / 'job.toml', printed.encode())
    # The engine's shuffle has blocks of any format alike, so that every other one is enough.
    engine = format_names().index(corpus.format.name) % 2
    running = ['@shuffle', 'engine'] if engine else ['--workers', 2]
    succeed('build', job, '--output', tmp_path / 'out', '@item-size', 300, *running)
    assert files_of(tmp_path / 'out') == files_of(corpus.folder / 'out')


def test_a_dry_run_names_the_files_and_writes_nothing(corpus, tmp_path, capfd):
    succeed(*corpus.build(tmp_path / 'out', '--dry-run'))
    said = capfd.readouterr().out
    assert all(str(path) in said for path in corpus.paths.values())
    assert not (tmp_path / 'out').exists()


@pytest.fixture(scope='module')
def damaged(corpus):
    """The role of a file with a damaged last row, its content, and where the row is."""
    entry = corpus.entry
    if entry.damage:
        role, old, new = entry.damage
        data = corpus.paths[role].read_bytes()
        place = data.rindex(old)
        at = data.rfind(b'\n', 0, place) + 1
        return role, data[:place] + new + data[place + len(old) :], at
    [role] = corpus.paths
    return role, entry.store([*PAIRS[:-1], (SOURCES[-1], None)])[role], len(PAIRS) - 1


def test_a_damaged_row_stops_the_job(corpus, damaged, tmp_path):
    role, content, at = damaged
    bad = write(tmp_path / 'damaged', content)
    said = refuse(*corpus.build(tmp_path / 'out', **{role: bad}))
    assert str(bad) in said and corpus.entry.complaint.format(at=at) in said


def test_rows_of_compressed_files_that_are_damaged_or_dropped_are_kept_aside(
    corpus, damaged, tmp_path
):
    entry, (damaged_role, content, at) = corpus.entry, damaged
    texts = {role: path.read_bytes() for role, path in corpus.paths.items()}
    ending = '' if damaged_role == 'parquet' else '.gz'  # Parquet is compressed inside
    texts[damaged_role] = content
    named = corpus.format.endings[0] if corpus.format.endings else ''
    paths = {role: write(tmp_path / f'{role}{named}{ending}', text) for role, text in texts.items()}
    keeping = ['--on-error', 'skip', '--clean', 'length:1:15', '--keep-rejected']
    out = tmp_path / 'out'
    succeed(*corpus.build(out, *keeping, **paths))
    rows = entry.examples[:-1]
    left = [texts for texts in rows if all(len(text) <= 15 for text in texts)]
    assert texts_of(out) == sorted(left)
    tally = lines_of(out)
    dropped = tally['filtered']['length']
    assert dropped == len(rows) - len(left) > 0 and tally[entry.reason] == 1
    assert tally['lines'] == tally['examples'] + tally['empty'] + dropped + 1
    [line] = (out / 'rejected' / f'train.{entry.reason}.jsonl').read_text().splitlines()
    record = json.loads(line)
    assert record['file'] == f'{damaged_role}{named}{ending}'
    assert record[corpus.format.identity] == at
    records = (out / 'rejected' / 'train.length.jsonl').read_text().splitlines()
    places = [json.loads(each)[corpus.format.identity] for each in records]
    assert len(places) == dropped and places == sorted(set(places))
