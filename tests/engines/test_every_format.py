"""Whole builds, a pairwise matrix: each two of a corpus' format, how it is stored, where, the scheme, the
shards' format, how the job runs, what is left out, and who asks, occur together in a cell of `CELLS`.

The specification is independent of the program: the pairs from which the corpora are written, vocabularies that
`learn_vocabulary` learns in memory, and ids of one text after another. A first build of each corpus, whose
texts are compared with the pairs, has the order for all others. `FORMATS` has an entry for each format
of `tokcore.corpus.formats`; a format without one fails by its name.
"""

import bz2
import csv
import functools
import gzip
import io
import json
import lzma
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from comparing_revisions.covering import covering_rows
from dataset_files import decoded, encoders_of, files_of, lines_of, manifest_of, read_shards
from jobs import refuse, succeed, write
from packed_members import tar_of, zip_of

from tokcore.corpus.formats import CorpusFormat, corpus_format, format_names
from tokcore.records.tfrecord import parse_example, read_records
from tokcore.tokenizers import ByteTokenizer, learn_vocabulary

PAIRS = tuple(
    (f'line {number} of words', '' if number % 9 == 5 else f'{number} 词, «Wörter ß»')
    for number in range(40)
)
SOURCES, TARGETS = map(list, zip(*PAIRS, strict=True))
PAIRS_WITH_BREAKS = tuple(
    (f'l {number}\nx', f'{number}\r\nz\n\ty') if number % 4 == 1 else PAIRS[number]
    for number in range(40)
)
COMPLETE_WITH_BREAKS = tuple(pair for pair in PAIRS_WITH_BREAKS if all(pair))

BUILD = ['--name', 'x', '--shards', 2, '--vocab-size', 90]


@dataclass(frozen=True)
class Entry:
    """Pairs as a corpus of one format.

    Attributes:
        store: returns the content of the file of each role, for pairs; None is a null.
        damage: damages the last row: of a role's file the last bytes like these, and the bytes that
            replace them; None puts a null in the place of its target.
        reason: the reason for which the damaged row is left out.
        complaint: words of the error about it; `{at}` is the byte at which the row begins.
        options: of the format, as in a job file; a `Path` is one of `other_files`.
        examples: the texts of all examples; of labels, their names.
        markup: how many empty rows are not pairs.
        pairs: the rows.
        format: its name, if that is not the entry's.
    """

    store: Callable[[list], Mapping[str, bytes]]
    damage: tuple[str, bytes, bytes] | None
    reason: str
    complaint: str
    options: Mapping[str, object] = field(default_factory=dict)
    other_files: Mapping[str, bytes] = field(default_factory=dict)
    examples: tuple[tuple[str, ...], ...] = tuple(pair for pair in PAIRS if all(pair))
    markup: int = 0
    pairs: Sequence[tuple[str, str]] = PAIRS
    format: str = ''


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


def as_quoted(pairs):
    written = io.StringIO(newline='')
    writer = csv.writer(written, delimiter='\t', lineterminator='\r\n', quoting=csv.QUOTE_ALL)
    writer.writerow(['id', 'tar\tget', 'source'])
    writer.writerows((number, target, source) for number, (source, target) in enumerate(pairs))
    return {'tsv': written.getvalue().encode()}


def as_sgm(pairs):
    def side(texts):
        segments = [f'<seg id="{number}">{text}</seg>' for number, text in enumerate(texts)]
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
        as_jsonl,
        ('jsonl', b'{"en": "line 39', b'"line 39'),
        'invalid_json',
        'byte {at}',
        NAMED,
        examples=COMPLETE_WITH_BREAKS,
        pairs=PAIRS_WITH_BREAKS,
    ),
    'parquet': Entry(
        as_parquet,
        None,
        'null',
        'row 39 has nothing',
        NAMED,
        examples=COMPLETE_WITH_BREAKS,
        pairs=PAIRS_WITH_BREAKS,
    ),
    'quoted': Entry(
        as_quoted,
        ('tsv', b'\t"line 39 of words"', b''),
        'missing_column',
        'byte {at}',
        {'quoting': 'csv', 'columns': ['source', 'tar\tget']},
        examples=COMPLETE_WITH_BREAKS,
        pairs=PAIRS_WITH_BREAKS,
        format='tsv',
    ),
    'sgm': Entry(
        as_sgm,
        ('source', b'</seg>', b'</seg> more'),
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
    """An entry's files in a folder, and a dataset of subwords that one worker builds of them.

    Attributes:
        order: for each shard the examples in it, by their place in the entry's.
    """

    entry: Entry
    folder: Path
    paths: Mapping[str, Path]
    format: type[CorpusFormat]
    order: list[list[int]] = field(default_factory=list)

    @property
    def has_pairs(self) -> bool:
        return self.format.name not in ('text', 'labelled')

    @property
    def ending(self) -> str:
        return self.format.endings[0] if self.format.endings else ''

    def command(self, paths: Mapping[str, object]) -> list[object]:
        """Returns the words of `build` that name the corpus, or files in its place."""
        words: list[object] = ['build']
        if self.format.is_in_job_files_only:
            [path] = paths.values()
            job = f'[[train]]\nformat = "{self.format.name}"\npaths = {json.dumps(str(path))}\n'
            words.append(write(self.folder / 'of-files.toml', job.encode()))
        else:
            words += [
                word
                for role, path in paths.items()
                for word in ('--' + role.replace('_', '-'), path)
            ]
        for name, value in self.entry.options.items():
            value = self.folder / value if isinstance(value, Path) else value
            words += ['--' + name, ','.join(map(str, value)) if isinstance(value, list) else value]
        return words

    def build(self, output: Path, *more: object, **other_paths: object) -> list[object]:
        """Returns the command line that builds a dataset of the corpus."""
        return [*self.command({**self.paths, **other_paths}), *BUILD, '--output', output, *more]


@pytest.fixture(scope='module')
def corpora(tmp_path_factory):
    """A function from the name of an entry to its corpus."""

    @functools.cache
    def corpus_of(name: str) -> Corpus:
        entry = FORMATS[name]
        folder = tmp_path_factory.mktemp(name)
        for other, content in entry.other_files.items():
            write(folder / other, content)
        corpus = Corpus(entry, folder, {}, corpus_format(entry.format or name))
        paths = {
            role: write(folder / f'in.{role}{corpus.ending}', content)
            for role, content in entry.store(entry.pairs).items()
        }
        assert tuple(paths) == corpus.format.roles
        corpus = Corpus(entry, folder, paths, corpus.format)
        succeed(*corpus.build(folder / 'out', '--workers', 1))
        places = {
            tuple(normal('subword', text) for text in example): place
            for place, example in enumerate(entry.examples)
        }
        corpus.order.extend(
            [places[texts] for texts in shard] for shard in texts_of(folder / 'out')
        )
        return corpus

    return corpus_of


@pytest.fixture(params=FORMATS)
def corpus(request, corpora) -> Corpus:
    return corpora(request.param)


def texts_of(folder: Path) -> list[list[tuple[str, ...]]]:
    """Returns the texts of each shard's examples, with the names of labels."""
    encoders = encoders_of(folder)
    names = manifest_of(folder)['options'].get('labels')
    if not names:
        return [decoded(shard, encoders) for shard in read_shards(folder)]
    return [
        [
            (*decoded([{'inputs': row['inputs']}], encoders)[0], names[row['targets'][0]])
            for row in shard
        ]
        for shard in read_shards(folder)
    ]


def test_every_format_has_an_entry():
    assert {entry.format or name for name, entry in FORMATS.items()} == {*format_names()}


def test_rows_are_examples_and_counted(corpus):
    assert sorted(place for shard in corpus.order for place in shard) == [
        *range(len(corpus.entry.examples))
    ]
    tally = lines_of(corpus.folder / 'out')
    assert tally['lines'] == len(PAIRS) + corpus.entry.markup
    assert tally['lines'] == tally['examples'] + tally['empty']
    roles = [stored['role'] for stored in manifest_of(corpus.folder / 'out')['inputs']]
    assert roles == list(corpus.paths)


def test_a_dry_run_names_the_files_and_writes_nothing(corpus, tmp_path, capfd):
    succeed(*corpus.build(tmp_path / 'out', '--dry-run'))
    said = capfd.readouterr().out
    assert all(str(path) in said for path in corpus.paths.values())
    assert not (tmp_path / 'out').exists()


def damaged(corpus: Corpus) -> tuple[str, bytes, int]:
    """Returns the role of a file with a damaged last row, its content, and where the row is."""
    entry = corpus.entry
    if entry.damage:
        role, old, new = entry.damage
        data = corpus.paths[role].read_bytes()
        place = data.rindex(old)
        at = data.rfind(b'\n', 0, place) + 1
        return role, data[:place] + new + data[place + len(old) :], at
    [role] = corpus.paths
    return role, entry.store([*entry.pairs[:-1], (SOURCES[-1], None)])[role], len(PAIRS) - 1


def test_a_damaged_row_stops_the_job(corpus, tmp_path):
    role, content, at = damaged(corpus)
    bad = write(tmp_path / f'damaged{corpus.ending}', content)
    said = refuse(*corpus.build(tmp_path / 'out', **{role: bad}))
    assert str(bad) in said and corpus.entry.complaint.format(at=at) in said


SCHEMES = {
    'subword': {'vocab_size': 90},
    'wordpiece': {'vocab_size': 90},
    'bpe': {'merges': 40},
    'codes': {'preset': 'subword-nmt', 'merges': 40},
    'word': {'vocab_size': 60},
    'byte': {},
    'unigram': {'vocab_size': 300, 'hard_vocab_limit': False},
}
"""What each learns with. Subwords are learned for each side, others for both."""


def normal(scheme: str, text: str) -> str:
    """Returns the text that a scheme encodes, in the place of one with line breaks."""
    if scheme in ('subword', 'byte'):
        return text.replace('\r', '').strip()
    return ' '.join(filter(None, re.split('[ \n\r]', text.strip()))) if scheme == 'word' else text


def in_two(pack: Callable[[bytes], bytes], data: bytes) -> bytes:
    """Returns two compressed streams, one after the other."""
    return pack(data[: len(data) // 2]) + pack(data[len(data) // 2 :])


STORED: dict[str, Callable[[str, bytes], bytes]] = {
    '': lambda name, data: data,
    '.gz': lambda name, data: in_two(gzip.compress, data),
    '.gz, of bz2': lambda name, data: in_two(bz2.compress, data),
    '.xz': lambda name, data: in_two(lzma.compress, data),
    '.xz, of zst': lambda name, data: in_two(zstandard.compress, data),
    '.bz2, of text': lambda name, data: data,
    '.tgz!': lambda name, data: tar_of([(f'in/{name}', data)], 'w:gz'),
    '.zip!': lambda name, data: zip_of([(f'in/{name}', data)]),
}
"""By what follows the name, the bytes of the file. Its content says what it is, not its name."""

ENGINES = {
    'one worker': ['--workers', 1],
    'small items': ['--workers', 2, '@item-size', 64],
    "the engine's shuffle": ['@shuffle', 'engine', '@item-size', 300],
    'small buffers': ['@shuffle', 'files', '@buffer', '4KiB', '@item-size', '2KiB', '--workers', 2],
    'learner on Beam': ['--learner', 'beam', '--workers', 1],
}
FACTORS = {
    'corpus': [*FORMATS],
    'stored': [*STORED],
    'shards': ['tfrecord', 'text', 'parquet', 'array_record', 'flat', 'megatron', 'packed'],
    'scheme': [*SCHEMES],
    'engine': [*ENGINES],
    'inputs and output': ['files', 'objects'],
    'rows': ['all', 'some left out'],
    'asked by': ['options', 'job file'],
}
STREAMS = ('flat', 'megatron')
EXCLUDED = [
    {'corpus': 'parquet', 'stored': ending} for ending in STORED if ending
] + [
    {'corpus': 'labelled', 'shards': kind} for kind in FACTORS['shards'] if kind != 'tfrecord'
] + [
    # Subwords have so many rounds that a cell would take half a minute; `test_packed_learner` has them.
    {'engine': 'learner on Beam', 'scheme': each} for each in SCHEMES if each != 'wordpiece'
] + [
    # Codes cannot have line feeds, and their learner refuses them.
    {'corpus': name, 'scheme': 'codes'} for name in ('jsonl', 'parquet', 'quoted')
]  # fmt: skip

CELLS = covering_rows(
    FACTORS, lambda row: not any(pair.items() <= row.items() for pair in EXCLUDED)
)


def _cells():
    """Yields all cells. Those of files that together have each value are quick."""
    of_files = [cell for cell in CELLS if cell['inputs and output'] == 'files']
    missing = {pair for cell in of_files for pair in cell.items()}
    quick = []
    while missing:
        best = max(of_files, key=lambda cell: len(missing & cell.items()))
        quick.append(best)
        missing -= best.items()
    for cell in CELLS:
        name = ', '.join(filter(None, cell.values()))
        yield pytest.param(cell, marks=() if cell in quick else pytest.mark.slow, id=name)


def learned(scheme: str, corpus: Corpus, places: Sequence[int]):
    """Returns the tokenizer of each side, learned from texts in memory."""
    if scheme == 'byte':
        return [ByteTokenizer()] * (1 + corpus.has_pairs)
    sides = [*zip(*(corpus.entry.examples[place] for place in places), strict=True)]
    if corpus.format.name == 'labelled':
        del sides[1:]
    if scheme != 'subword':
        sides = [[text for side in sides for text in side]] * len(sides)
    name = {'codes': 'bpe'}.get(scheme, scheme)
    return [learn_vocabulary(texts, name, **SCHEMES[scheme]) for texts in sides]


def stored_rows(folder: Path, kind: str, feature: str) -> list[list]:
    """Returns what each shard has of a feature: rows, or one row for all in streams of ids."""
    names = sorted(each['name'] for each in manifest_of(folder)['files'])
    of_feature = [name for name in names if feature in name]  # none where all are in one file
    shards = [folder / name for name in of_feature or names]
    if kind == 'tfrecord':
        return [[row[feature] for row in shard] for shard in read_shards(folder)]
    if kind == 'parquet':
        return [pq.read_table(path)[feature].to_pylist() for path in shards]
    if kind == 'text':
        return [path.read_text().split('\n')[:-1] for path in shards]
    if kind == 'array_record':
        library = pytest.importorskip('array_record.python.array_record_module')
        readers = [library.ArrayRecordReader(str(path)) for path in shards]
        return [[parse_example(each)[feature] for each in reader.read_all()] for reader in readers]
    if kind == 'packed':
        rows = []
        for path in shards:
            packed = [*map(parse_example, read_records(path.read_bytes(), path.name))]
            parts = [
                np.array(row[feature])[np.array(row[f'{feature}_segmentation']) == number].tolist()
                for row in packed
                for number in range(1, max(row[f'{feature}_segmentation']) + 1)
            ]
            rows.append(sorted(parts))
        return rows
    endings = ('.npy', '.bin')
    return [np.fromfile(path, '<u2').tolist() for path in shards if path.suffix in endings]


def words_of(cell: Mapping[str, str], corpus: Corpus) -> list[object]:
    """Returns the words of `build` for what is in a cell, without the corpus' files."""
    scheme, kind = cell['scheme'], cell['shards']
    words: list[object] = [
        '--name',
        'x',
        '--shards',
        2,
        '--template',
        '$A',
        '--output-format',
        kind,
    ]
    words += ['--scheme', 'bpe' if scheme == 'codes' else scheme]
    for name, value in SCHEMES[scheme].items():
        flag = name.replace('_', '-')
        words += [f'--no-{flag}'] if value is False else [f'--{flag}', value]
    if corpus.has_pairs and scheme not in ('subword', 'byte'):
        words.append('--shared-vocab')
    if kind in STREAMS:
        words += ['--end', 'none']
    elif kind == 'packed':
        words += ['--pack', 4096]
    if cell['rows'] != 'all':
        words += ['--on-error', 'skip', '--clean', 'length:1:15', '--keep-rejected']
    return words


def ids_of(cell: Mapping[str, str], corpus: Corpus, places: Sequence[int]) -> dict[str, list]:
    """Returns by feature the ids of each shard's rows, of the examples in some places."""
    scheme, examples = cell['scheme'], corpus.entry.examples
    alone = {'add_special_tokens': False} if scheme in ('wordpiece', 'bpe') else {}
    order = [[place for place in shard if place in places] for shard in corpus.order]
    ids: dict[str, list] = {}
    for side, tokenizer in enumerate(learned(scheme, corpus, places)):
        feature = 'inputs' if side < len(examples[0]) - 1 else 'targets'
        ids[feature] = [
            [tokenizer.encode(normal(scheme, examples[place][side]), **alone) for place in shard]
            for shard in order
        ]
    if corpus.format.name == 'labelled':
        ids['targets'] = [[[NAMES.index(examples[place][1])] for place in shard] for shard in order]
    return ids


@pytest.mark.parametrize('cell', _cells())
def test_a_build_is_what_the_specification_says(
    cell, corpora, request, monkeypatch, tmp_path, capfd, filter_lines
):
    corpus, kind = corpora(cell['corpus']), cell['shards']
    examples, bad_at = corpus.entry.examples, None
    contents = {role: path.read_bytes() for role, path in corpus.paths.items()}
    places = [*range(len(examples))]
    if cell['rows'] != 'all':
        bad_role, contents[bad_role], bad_at = damaged(corpus)
        places = [at for at in places[:-1] if all(len(text) <= 15 for text in examples[at])]
    ending = cell['stored'].partition(',')[0].removesuffix('!')
    member = f'!in/*{corpus.ending}' if cell['stored'].endswith('!') else ''
    paths, words = {}, words_of(cell, corpus)
    for role, content in contents.items():
        name = f'{role}{corpus.ending}'
        paths[role] = tmp_path / 'in' / f'{name}{ending}'
        paths[role].parent.mkdir(exist_ok=True)
        paths[role].write_bytes(STORED[cell['stored']](name, content))

    def command(paths: Mapping[str, object]) -> list[object]:
        return [*corpus.command({role: f'{paths[role]}{member}' for role in paths}), *words]

    plain, found = tmp_path / 'plain', tmp_path / 'out'
    succeed(*command(paths), *ENGINES['one worker'], '--output', plain)
    given, output = command(paths), str(found)
    store = None
    if cell['inputs and output'] == 'objects':
        pytest.importorskip('obstore')
        store = request.getfixturevalue('store')
        store.use(monkeypatch)
        given = command(
            {
                role: store.upload(path, f'{tmp_path.name}/{path.name}')
                for role, path in paths.items()
            }
        )
        output = f's3://corpora/{tmp_path.name}/out'
    if cell['asked by'] == 'job file':
        capfd.readouterr()
        succeed(*given, '--output', output, '--print-job')
        job = write(tmp_path / 'elsewhere' / 'job.toml', capfd.readouterr().out.encode())
        given = ['build', job]
    succeed(*given, *ENGINES[cell['engine']], '--output', output)
    if store:
        store.download(f'{tmp_path.name}/out', found)
    assert files_of(found) == files_of(plain)

    for feature, ids in ids_of(cell, corpus, places).items():
        read, expected = stored_rows(found, kind, feature), ids
        if kind in STREAMS:
            expected = [[id_ for row in shard for id_ in row] for shard in ids]
        elif kind == 'packed':
            expected = [sorted(shard) for shard in ids]
        elif kind == 'text':  # pieces, which are compared by the texts that come back of them
            given = ['--scheme', 'byte']
            if vocabularies := manifest_of(found)['vocabularies']:
                names = {each['side']: each['name'] for each in vocabularies}
                given = ['--vocab', found / names.get('both', names.get(feature))]
            pieces = ''.join(f'{line}\n' for shard in read for line in shard)
            numbers = ''.join(f'{" ".join(map(str, row))}\n' for shard in ids for row in shard)
            read = filter_lines(pieces.encode(), 'detokenize', '--pieces', *given)
            expected = filter_lines(numbers.encode(), 'detokenize', *given)
        assert read == expected

    tally = lines_of(found)
    assert tally['examples'] == len(places)
    if bad_at is None:
        assert tally['lines'] == tally['examples'] + tally['empty']
        return
    reason, identity = corpus.entry.reason, corpus.format.identity
    dropped = len(examples) - 1 - len(places)
    assert tally['lines'] == tally['examples'] + tally['empty'] + dropped + 1
    assert tally['filtered'] == {'length': dropped} and tally[reason] == 1
    [line] = (found / 'rejected' / f'train.{reason}.jsonl').read_text().splitlines()
    assert json.loads(line)[identity] == bad_at
    records = (found / 'rejected' / 'train.length.jsonl').read_text().splitlines()
    known_by = [json.loads(each)[identity] for each in records]
    assert len(known_by) == dropped and known_by == sorted(set(known_by))
