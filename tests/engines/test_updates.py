"""`update`: what is added and removed gives what an encode of all files gives, in every file, root and index."""

import dataclasses
import gzip
import io
import json
import os
import random
import shutil
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import files_of, manifest_of
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from jobs import refuse, run, succeed, write

import pipelines
from tokcore.corpus.order_keys import places_of
from tokcore.reading.manifest import DatasetManifest
from tokcore.reading.record_index import read_index

WORDS = 'a bb see Dog élan 水 naïve x1 the of qu–ick 🐈 over'.split()
ENTRIES = [
    '[PAD]',
    '[UNK]',
    '[CLS]',
    '[SEP]',
    '[MASK]',
    'a',
    'b',
    '##b',
    'the',
    'of',
    'see',
    'dog',
    'over',
]
FILES = ['text', 'text.gz', 'members', 'bitext', 'tsv', 'jsonl', 'parquet']
PAIRED = ('bitext', 'tsv', 'jsonl', 'parquet')
LAYOUTS = ['one split', 'dev file', 'dev share', 'dev and test shares', 'datasets']
FILTERS = [None, 'length:2:30', 'length:2:30,own_filters:without_odd_ones']


@dataclasses.dataclass(frozen=True)
class Text:
    """A file of a corpus.

    Attributes:
        paths: as the command names it, for each role.
        name: in the manifest.
        starts: where each line begins, if rows are lines.
    """

    paths: tuple[str, ...]
    name: str
    starts: tuple[int, ...] | None


class Corpus:
    """Files of one kind, written to a folder one after another."""

    def __init__(self, folder, kind, dice):
        self.folder, self.kind, self.dice = folder, kind, dice
        self.count = 0

    def lines(self, number):
        dice = self.dice
        return [
            ' '.join(dice.choices(WORDS, k=dice.choice([0, 1, 2, 5, 9]))) for _ in range(number)
        ]

    def file(self, number):
        """Writes a file of so many rows."""
        self.count += 1
        # Two in three files have one name, in folders of their own.
        folder = self.folder / (f'{self.count}' if self.dice.random() < 0.67 else '.')
        name = 'part' if folder.name != self.folder.name else f'part{self.count}'
        sides = [self.lines(number) for _ in range(2)]
        if self.kind == 'parquet':
            path = folder / f'{name}.parquet'
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({'en': sides[0], 'zh': sides[1]}), path, row_group_size=5)
            return Text((str(path),), path.name, None)
        rows = {
            'tsv': lambda: [f'{a}\t{b}' for a, b in zip(*sides)],
            'jsonl': lambda: [json.dumps({'en': a, 'zh': b}) for a, b in zip(*sides)],
        }.get(self.kind, lambda: sides[0])()
        data = [f'{row}\n'.encode() for row in rows]
        if data and self.dice.random() < 0.5:
            data.insert(self.dice.randrange(len(data)), b'not \xff text\n')
        starts = tuple(np.cumsum([0, *map(len, data)])[:-1].tolist())
        if self.kind == 'members':
            path = folder / f'{name}.tar'
            folder.mkdir(parents=True, exist_ok=True)
            with tarfile.open(path, 'w') as tar:
                member = tarfile.TarInfo('in/side.txt')
                member.size = sum(map(len, data))
                tar.addfile(member, io.BytesIO(b''.join(data)))
            return Text((f'{path}!in/side.txt',), f'{name}.tar!in/side.txt', starts)
        content = b''.join(data)
        if self.kind == 'text.gz':
            name = f'{name}.gz'
        write(folder / name, content)
        if self.kind != 'bitext':
            return Text((str(folder / name),), name, starts)
        other = ''.join(f'{line}\n' for line in [*sides[1], 'and'][: len(data)]).encode()
        write(folder / f'{name}.zh', other)
        return Text((str(folder / name), str(folder / f'{name}.zh')), name, starts)


def roles_of(kind):
    return {'bitext': ('source', 'target')}.get(
        kind, (kind.removesuffix('.gz').replace('members', 'text'),)
    )


def options_of(kind, texts, split=''):
    """The words that name the files of a split on the command line."""
    words = []
    for role, paths in zip(roles_of(kind), zip(*(text.paths for text in texts))):
        flag = f'{split}-{role}' if split and len(roles_of(kind)) > 1 else split or role
        words += [f'--{flag}', *paths]
    return words


def job_of(kind, datasets):
    """A job file with datasets of the training corpus, by their names."""
    tables = []
    for name, texts, clean in datasets:
        by_role = dict(zip(roles_of(kind), zip(*(text.paths for text in texts))))
        paths = ', '.join(f'{role} = {list(paths)!r}' for role, paths in by_role.items())
        kind_name = {'text.gz': 'text', 'members': 'text'}.get(kind, kind)
        tables.append(
            f'[[train]]\nname = "{name}"\nformat = "{kind_name}"\npaths = {{ {paths} }}\n'
            + ('fields = ["en", "zh"]\n' if kind in ('jsonl', 'parquet') else '')
            + (f'clean = {json.dumps(clean.split(","))}\n' if clean else '')
        )
    return '\n'.join(tables)


def rows_of(folder):
    """The split, the number of the file and the identity of each row of a dataset."""
    manifest = DatasetManifest.read(folder)
    for split, shards in manifest.splits.items():
        for shard in shards:
            keys = np.array(read_index(shard).keys)
            for index, identity in zip(*(part.tolist() for part in places_of(keys, manifest.seed))):
                yield split, index, identity


def address_of(text, name, identity, makes_several):
    """A row as a line of a list."""
    if text.starts is None:
        numbers = (identity >> 12, identity & 4095) if makes_several else (identity,)
    elif makes_several:
        start = max(start for start in text.starts if start <= identity)
        numbers = (start, identity - start)
    else:
        numbers = (identity,)
    return ':'.join(map(str, (name, *numbers)))


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str
    layout: str
    clean: str | None
    scheme: str
    added: int
    removed: int
    removed_before: int
    seed: int

    @property
    def makes_several(self):
        return bool(self.clean and 'own' in self.clean)


CASES = st.builds(
    Case,
    kind=st.sampled_from(FILES),
    layout=st.sampled_from(LAYOUTS),
    clean=st.sampled_from(FILTERS),
    scheme=st.sampled_from(['byte', 'wordpiece']),
    added=st.integers(0, 3),
    removed=st.integers(0, 9),
    removed_before=st.sampled_from([0, 0, 4]),
    seed=st.integers(0, 1 << 30),
).map(
    lambda case: (
        case
        if case.kind in PAIRED or not case.makes_several
        else dataclasses.replace(case, clean='length:2:30')
    )
)


def run_case(case, root, convert=None):
    """Encodes, updates, and encodes all again; the files of the two results must be equal."""
    dice = random.Random(case.seed)
    shutil.rmtree(root, ignore_errors=True)
    corpus = Corpus(root / 'corpus', case.kind, dice)
    old = [corpus.file(dice.randint(6, 40)) for _ in range(dice.randint(1, 3))]
    new = [
        corpus.file(dice.choice([0, 1, 30] if case.layout != 'datasets' else [9, 30]))
        for _ in range(case.added)
    ]
    if not new and not case.removed:
        return
    dev = [corpus.file(12)] if case.layout == 'dev file' else []
    new_dev = [corpus.file(5)] if dev and new and dice.random() < 0.5 else []
    write(root / 'vocab.txt', ''.join(f'{entry}\n' for entry in ENTRIES).encode())
    encoding = (
        ['--scheme', 'byte']
        if case.scheme == 'byte'
        else ['--vocab', root / 'vocab.txt', '--max-unknown', '100%']
    )
    fields = ['--fields', 'en,zh'] if case.kind in ('jsonl', 'parquet') else []
    clean = ['--clean', case.clean] if case.clean else []
    dataset = [
        *('--name', 'n', '--shards', dice.randint(1, 4), '--seed', dice.randint(0, 3)),
        *('--on-error', 'skip', *encoding),
    ]
    if case.clean and dice.random() < 0.5:
        dataset.append('--keep-rejected')
    if 'share' in case.layout:
        dataset += ['--dev-share', '20%']
        dataset += ['--test-share', '15%'] if 'test' in case.layout else []

    def encode(output, first, second, *more):
        """Encodes the old files alone, or with the new ones."""
        if case.layout != 'datasets':
            words = [*options_of(case.kind, [*first, *second]), *fields, *clean]
            words += (
                options_of(case.kind, [*dev, *(new_dev if second else [])], 'dev') if dev else []
            )
            return run('encode', *words, *dataset, *more, '--output', output)
        job = job_of(case.kind, datasets(first, second))
        write(root / 'job.toml', job.encode())
        return run('encode', root / 'job.toml', *dataset, *more, '--output', output)

    continues = dice.random() < 0.5  # the last dataset of the job file

    def datasets(first, second):
        parts = [('a', first[:1], case.clean), ('b', first[1:], None)]
        parts = [part for part in parts if part[1]]
        if second and continues:
            name, texts, own_clean = parts[-1]
            return [*parts[:-1], (name, [*texts, *second], own_clean)]
        return [*parts, *([('c', second, case.clean)] if second else [])]

    before, whole = root / 'before', root / 'whole'
    ended = encode(whole, old, new)
    if ended.status:  # a split without a row
        return ended.said.splitlines()[-1]
    by_split = {'train': [*old, *new], 'dev': [*dev, *new_dev]}
    names = [text.name for text in (*by_split['train'], *by_split['dev'])]
    several = {
        index: bool(own_clean and 'own' in own_clean)
        for index, own_clean in enumerate(
            own_clean for _, texts, own_clean in datasets(old, new) for _ in texts
        )
    }

    def listed(rows):
        lines = []
        for split, index, identity in rows:
            of_train = 'share' in case.layout or split == 'train'
            text = by_split['train' if of_train else split][index]
            makes_several = case.makes_several and of_train
            if case.layout == 'datasets':
                makes_several = several[index]
            if makes_several and split != 'train' and text.starts is None:
                identity <<= 12  # no filter saw it
            choices = [text.paths[0]] + ([text.name] if names.count(text.name) == 1 else [])
            lines.append(address_of(text, dice.choice(choices), identity, makes_several))
        dice.shuffle(lines)
        return ''.join(f'{line}\n' for line in lines).encode()

    rows = sorted(rows_of(whole))
    first_rows = [row for row in rows if row[1] < len(old if row[0] == 'train' or not dev else dev)]
    gone_before = dice.sample(first_rows, min(case.removed_before, len(first_rows)))
    left = [row for row in rows if row not in gone_before]
    gone = dice.sample(left, min(case.removed, len(left)))
    if dice.random() < 0.3:  # a file loses all rows
        gone += [row for row in left if row[:2] == left[0][:2] and row not in gone]
    more = []
    if gone_before:
        more = ['--leave-out', write(root / 'before.txt', listed(gone_before))]
    ended = encode(before, old, [], *more)
    if ended.status:
        return ended.said.splitlines()[-1]
    write(root / 'gone.txt', listed(gone))
    remove = ['--remove', root / 'gone.txt'] if gone else []
    words = [*options_of(case.kind, new), *(clean if new else [])]
    words += fields if new and dice.random() < 0.5 else []
    words += options_of(case.kind, new_dev, 'dev') if new_dev else []
    if case.layout == 'datasets' and new:
        own_datasets = [('c', new, case.clean)]
        if continues:
            name, _, own_clean = datasets(old, [])[-1]
            own_datasets = [(name, new, own_clean)]
        write(root / 'more.toml', job_of(case.kind, own_datasets).encode())
        words = ['--job', root / 'more.toml']
    if not words and not remove:
        return
    hidden = root / 'hidden'
    hidden.mkdir()
    for text in (*old, *dev):
        for path in {path.partition('!')[0] for path in text.paths}:
            os.rename(path, hidden / path.replace('/', '+'))
    updated = run('update', before, *words, *remove, '--output', root / 'updated')
    for path in hidden.iterdir():
        os.rename(path, path.name.replace('+', '/'))
    write(root / 'all.txt', listed([*gone_before, *gone]))
    shutil.rmtree(whole)
    wanted = encode(whole, old, new, '--leave-out', root / 'all.txt')
    assert updated.status == wanted.status, (updated.said, wanted.said)
    if wanted.status:
        return wanted.said.splitlines()[-1]
    folders = [root / 'updated', whole]
    if convert:
        for folder in folders:
            succeed('convert', folder, *convert, '--output', f'{folder}.converted')
        folders = [root / 'updated.converted', root / 'whole.converted']
    assert files_of(folders[0]) == files_of(folders[1])
    succeed('verify', folders[0])
    if not convert:
        if case.layout == 'datasets' or not case.makes_several:
            ended = run('verify', root / 'updated', '--rerun', 'all')
            assert ended.status == 0 or 'which is code' in ended.said, ended.said
    return True


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=CASES)
@example(case=Case('members', 'datasets', None, 'wordpiece', 0, 1, 0, 119))
@example(case=Case('bitext', 'datasets', FILTERS[2], 'wordpiece', 3, 6, 4, 112))
def test_an_update_equals_an_encode_of_all_files(case, tmp_path):
    run_case(case, tmp_path / 'case')


@pytest.mark.slow
@settings(
    max_examples=60,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(case=CASES)
def test_many_updates_equal_encodes_of_all_files(case, tmp_path):
    run_case(case, tmp_path / 'case')


@pytest.mark.parametrize(
    'to',
    [['--to', 'parquet'], ['--to', 'packed', '--pack', '9'], ['--to', 'flat', '--end', 'none']],
)
def test_an_update_is_converted_as_an_encode_of_all_files(to, tmp_path):
    case = Case('bitext', 'dev share', 'length:2:30', 'wordpiece', 2, 5, 4, seed=5)
    assert run_case(case, tmp_path / 'case', to) is True


@pytest.fixture
def built(tmp_path):
    """A build of a text, and another text."""
    dice = random.Random(1)
    corpus = Corpus(tmp_path, 'text', dice)
    first, second = (
        write(tmp_path / name, ''.join(f'{line} x\n' for line in corpus.lines(40)).encode())
        for name in ('first', 'second')
    )
    succeed('build', '--text', first, *BUILD, '--output', tmp_path / 'built')
    return first, second, tmp_path / 'built'


BUILD = ['--name', 'n', '--vocab-size', 300, '--shards', 2]


def test_an_updated_build_is_an_encode_with_its_vocabulary(built, tmp_path):
    first, second, folder = built
    write(tmp_path / 'list', b'first:0\n')
    made = pipelines.update(
        folder, text=[str(second)], remove=str(tmp_path / 'list'), output=str(tmp_path / 'updated')
    )
    words = ['--name', 'n', '--shards', 2, '--vocab', folder, '--leave-out', tmp_path / 'list']
    succeed('encode', '--text', first, second, *words, '--output', tmp_path / 'whole')
    assert files_of(tmp_path / 'updated') == files_of(tmp_path / 'whole')
    assert made.manifest.stage == 'encode' and made.manifest.lines[0].removed == 1
    assert (
        manifest_of(tmp_path / 'updated', 'tokbeam.run.json')['previous']
        == manifest_of(folder)['root']
    )
    assert (
        'already done'
        in run(
            'update',
            folder,
            '--text',
            second,
            '--remove',
            tmp_path / 'list',
            '--output',
            tmp_path / 'updated',
        ).said
    )


def test_rows_of_an_update_are_found_in_its_files(built, tmp_path, printed):
    _, second, folder = built
    packed = write(tmp_path / 'second.gz', second.read_bytes())
    updated, list_ = tmp_path / 'updated', write(tmp_path / 'list', b'first:0\n')
    succeed('update', folder, '--text', packed, '--remove', list_, '--output', updated)
    rows = pipelines.source(updated, 'train', range(79))
    places = sorted((row.place.files[0].name, row.place.line) for row in rows)
    assert all(row.is_stored for row in rows)
    assert places == [
        *(('first', line) for line in range(2, 41)),
        *(('second.gz', line) for line in range(1, 41)),
    ]
    [row] = [row for row in rows if (row.place.files[0].name, row.place.line) == ('second.gz', 3)]
    assert [found['row'] for found in printed('where', updated, 'second.gz:3')[1]] == [row.row]
    words = ('--text', row.texts[0], '--head', 79)
    assert row.row in [found['row'] for found in printed('where', updated, *words)[1]]
    assert printed('where', updated, 'first:1')[1] == []
    packed.write_bytes(packed.read_bytes() + gzip.compress(b'more\n'))
    assert f'{packed} has changed' in refuse('verify', updated, '--rerun', 'all')


def test_a_build_counts_without_the_rows_that_are_left_out(built, tmp_path):
    first, _, _ = built
    data = first.read_bytes()
    end = data.index(b'\n') + 1
    write(tmp_path / 'list', b'first:0\n')
    write(tmp_path / 'rest', data[end:])
    succeed(
        'build',
        '--text',
        first,
        *BUILD,
        '--leave-out',
        tmp_path / 'list',
        '--output',
        tmp_path / 'out',
    )
    succeed('build', '--text', tmp_path / 'rest', *BUILD, '--output', tmp_path / 'other')
    [vocab] = manifest_of(tmp_path / 'out')['vocabularies']
    assert (tmp_path / 'out' / vocab['name']).read_bytes() == (
        tmp_path / 'other' / vocab['name']
    ).read_bytes()
    assert 'removed.txt' in files_of(tmp_path / 'out')
    succeed('verify', tmp_path / 'out', '--rerun', 'all')


def test_verify_names_rows_that_the_list_leaves_out(built, tmp_path):
    first, _, folder = built
    write(tmp_path / 'list', b'first:0\n')
    succeed('update', folder, '--remove', tmp_path / 'list', '--output', tmp_path / 'updated')
    write(
        tmp_path / 'updated' / 'removed.txt', f'first:{first.read_bytes().index(10) + 1}\n'.encode()
    )
    assert run('verify', tmp_path / 'updated').status == 3


@pytest.mark.parametrize(
    'line, problem',
    [
        ('first', 'is not FILE:BYTE'),
        ('other:0', 'no file'),
        ('first:1', 'are not rows of the dataset'),
        ('first:99999999999999', 'are not rows of the dataset'),
        ('second:1', 'are not rows of the dataset'),
    ],
)
def test_an_entry_that_is_no_row_is_named(built, tmp_path, line, problem):
    first, second, folder = built
    write(tmp_path / 'list', f'first:0\n{line}\n'.encode())
    said = refuse(
        'update',
        folder,
        '--text',
        second,
        '--remove',
        tmp_path / 'list',
        '--output',
        tmp_path / 'o',
    )
    assert problem in said and line.rpartition(':')[0] in said
    words = ['--name', 'n', '--shards', 2, '--vocab', folder, '--leave-out', tmp_path / 'list']
    said = refuse('encode', '--text', first, second, *words, '--output', tmp_path / 'p')
    assert problem in said


def test_what_an_update_cannot_take_is_refused(built, tmp_path):
    first, second, folder = built
    out = ['--output', tmp_path / 'o']
    assert 'give files to add' in refuse('update', folder, *out)
    assert 'other format' in refuse('update', folder, '--tsv', second, *out)
    assert 'other filters' in refuse('update', folder, '--text', second, '--clean', 'nfc', *out)
    succeed('convert', folder, '--to', 'parquet', '--output', tmp_path / 'parquet')
    assert 'TFRecords are updated' in refuse('update', tmp_path / 'parquet', '--text', second, *out)
    job = f'[[train]]\nname = "a"\nformat = "text"\npaths = "{first}"\nmax_examples = 9\n'
    write(tmp_path / 'job.toml', job.encode())
    succeed(
        'encode',
        tmp_path / 'job.toml',
        '--scheme',
        'byte',
        '--name',
        'n',
        '--output',
        tmp_path / 'some',
    )
    assert 'max_examples' in refuse('update', tmp_path / 'some', '--text', second, *out)
    (folder / 'index' / 'n-train-00000-of-00002').unlink()
    assert 'tokbeam index' in refuse('update', folder, '--text', second, *out)


def test_a_job_file_takes_no_other_rows_away_than_the_dataset_did(tmp_path):
    for name in ('first', 'second'):
        write(tmp_path / name, ''.join(f'{name} {number}\n' for number in range(40)).encode())
    words = ['--scheme', 'byte', '--name', 'n', '--shards', 1, '--dev-share', '10%']
    succeed('encode', '--text', tmp_path / 'first', *words, '--output', tmp_path / 'out')
    added = '[[train]]\nformat = "text"\npaths = "second"\n[output]\n'
    update = [
        'update',
        tmp_path / 'out',
        '--job',
        tmp_path / 'job.toml',
        '--output',
        tmp_path / 'o',
    ]
    for line in ('dev_share = "20%"', 'test_share = "10%"', 'leave_out = "list"'):
        write(tmp_path / 'job.toml', f'{added}{line}\n'.encode())
        assert f'leave {line.split()[0]} out' in refuse(*update)
    write(tmp_path / 'job.toml', f'{added}dev_share = "10%"\n'.encode())
    succeed(*update)


def test_datasets_of_another_shape_are_not_added(tmp_path):
    for name in ('en', 'de'):
        write(tmp_path / name, f'a line of {name}\n'.encode())
    job = '[[train]]\nname = "{0}"\nformat = "{0}"\npaths = {1}\n'
    jobs = {
        name: write(tmp_path / f'{name}.toml', job.format(name, paths).encode())
        for name, paths in (('text', '"en"'), ('bitext', '{ source = "en", target = "de" }'))
    }
    for there, added in (('text', 'bitext'), ('bitext', 'text')):
        words = ['--scheme', 'byte', '--name', 'n', '--output', tmp_path / there]
        succeed('encode', jobs[there], *words)
        words = ['--job', jobs[added], '--output', tmp_path / 'updated']
        said = refuse('update', tmp_path / there, *words)
        assert 'the splits must all be pairs, or all of one side' in said


def test_rows_whose_lost_bytes_are_not_known_are_refused(tmp_path):
    text = write(tmp_path / 'text', 'ab\nab ü\n'.encode())
    write(tmp_path / 'some', b'ab ab\n')
    codes = ['--scheme', 'bpe', '--vocab-size', 270]
    succeed(
        'vocab', '--text', tmp_path / 'some', *codes, '--output', tmp_path / 'v' / 'tokenizer.json'
    )
    model = json.loads((tmp_path / 'v' / 'tokenizer.json').read_bytes())
    lost = [model['model']['vocab'].pop(each) for each in ('Ã', '¼')]
    assert len(lost) == 2
    write(tmp_path / 'w' / 'tokenizer.json', json.dumps(model).encode())
    words = ['--vocab', tmp_path / 'w' / 'tokenizer.json', '--name', 'n', '--max-unknown', '100%']
    succeed('encode', '--text', text, *words, '--output', tmp_path / 'out')
    assert manifest_of(tmp_path / 'out')['lines'][0]['dropped_bytes'] == 2
    write(tmp_path / 'list', b'text:0\n')
    said = refuse(
        'update', tmp_path / 'out', '--remove', tmp_path / 'list', '--output', tmp_path / 'o'
    )
    assert '2 bytes of the text of train became no id' in said


def halves(source: str, target: str) -> list[tuple[str, str]]:
    """A filter that makes two rows of one."""
    return [(source + ' one', target), (source + ' two', target)]


@pytest.mark.parametrize('kind', ['tsv', 'parquet'])
@pytest.mark.parametrize('clean', [[], ['--clean', f'{__name__}:halves']], ids=['', 'several'])
def test_the_addresses_that_where_prints_are_lines_of_a_list(
    kind, clean, tmp_path, printed, capsys
):
    pairs = [(f'source {n}', f'target {n}') for n in range(20)]
    if kind == 'tsv':
        path = write(tmp_path / 'x.tsv', ''.join(f'{a}\t{b}\n' for a, b in pairs).encode())
    else:
        path = tmp_path / 'x.parquet'
        pq.write_table(pa.table(dict(zip('ab', map(list, zip(*pairs)), strict=True))), path)
    corpus = [f'--{kind}', path, *(['--fields', 'a,b'] if kind == 'parquet' else []), *clean]
    encode = ['encode', *corpus, '--scheme', 'byte', '--name', 'n', '--shards', 2]

    def found(name, words, *more):
        command = [*encode, *more, '--output', tmp_path / name]
        capsys.readouterr()
        succeed(*command, '--print-job')
        job = write(tmp_path / f'{name}.toml', capsys.readouterr().out.encode())
        succeed(*command)
        return printed('where', tmp_path / name, '--text', words, '--head', 40, '--job', job)[1]

    row = found('before', 'source 7')[-1]
    list_ = write(tmp_path / 'list', f'{row["address"]}\n'.encode())
    before, after = (
        {each['texts'][0] for each in found(name, 'source', *more)}
        for name, more in [('all', []), ('after', ['--leave-out', list_])]
    )
    assert before - after == {row['texts'][0]}
