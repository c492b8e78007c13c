"""Byte pair encoding through the commands: codes and their ids, pieces, bytes, and what is refused."""

import collections
import io

import pytest
from dataset_files import files_of, manifest_of, shards_and_vocabularies
from jobs import refuse, succeed, write

from pipelines.learning import search
from tokcore.bpe import cutting, trainer
from tokcore.bpe.scheme import BpeScheme

NMT = ['--scheme', 'bpe', '--preset', 'subword-nmt']


@pytest.fixture(scope='module')
def codes(small, tmp_path_factory):
    path = tmp_path_factory.mktemp('codes') / 'small.codes'
    succeed('vocab', '--text', small.source, *NMT, '--merges', 150, '--output', path)
    return path


@pytest.fixture
def own_codes(codes, tmp_path):
    """A copy of the codes without anything beside it."""
    return write(tmp_path / 'X.codes', codes.read_bytes())


def test_codes_are_those_of_subword_nmt(small, codes, subword_nmt):
    learn, _, _ = subword_nmt
    theirs = io.StringIO()
    learn.learn_bpe(io.StringIO(small.source.read_text()), theirs, 150)
    assert codes.read_text() == theirs.getvalue()


def test_each_side_has_codes_and_ids_of_its_own(small, tmp_path):
    inputs = ['--source', small.source, '--target', small.target, '--name', 'small', '--shards', 2]
    succeed('build', *inputs, *NMT, '--merges', 40, '--output', tmp_path / 'out')
    stem = tmp_path / 'out' / 'vocab.small.merges-40'
    names = [
        f'{stem.name}.{kind}.{side}'
        for kind in ('codes', 'vocab')
        for side in ('inputs', 'targets')
    ]
    built = shards_and_vocabularies(tmp_path / 'out')
    assert set(names) < set(built)
    for side in ('inputs', 'targets'):
        assert built[f'{stem.name}.vocab.{side}'].startswith(b'<pad>\n</s>\n<unk>\n')
    given = ['--vocab', f'{stem}.codes.inputs', f'{stem}.codes.targets']
    succeed('encode', *inputs, *given, '--output', tmp_path / 'again')
    again = shards_and_vocabularies(tmp_path / 'again')
    assert again == {name: data for name, data in built.items() if name not in names}
    for name in names:
        folder = tmp_path / 'again' / f'tokenizer.{name.rpartition(".")[2]}'
        assert (folder / name).read_bytes() == built[name]
    [used, _] = manifest_of(tmp_path / 'again')['vocabularies']
    assert [each['name'] for each in used['beside']] == [
        f'tokenizer.inputs/{stem.name}.vocab.inputs'
    ]


def test_ids_that_do_not_belong_to_the_codes_are_refused(small, tmp_path):
    text = ['--text', small.source, '--name', 'small']
    succeed('build', *text, *NMT, '--merges', 40, '--output', tmp_path / 'out')
    entries = tmp_path / 'out' / 'vocab.small.merges-40.vocab'
    entries.write_bytes(entries.read_bytes() + b'more\n')
    vocabulary = ['--vocab', entries.with_suffix('.codes')]
    said = refuse('encode', *text, *vocabulary, '--output', tmp_path / 'again')
    assert f'{entries.name} beside' in said and 'is not the one' in said


def test_codes_without_ids_are_for_pieces_alone(small, own_codes, tmp_path, filter_lines):
    text = ['--text', small.source, '--name', 'small', '--output', tmp_path / 'out']
    assert 'tokbeam count --text … --pieces' in refuse('encode', *text, '--vocab', own_codes)
    assert filter_lines(b'a\n', 'tokenize', '--vocab', own_codes, '--pieces') == b'a\n'
    filter_lines(b'a\n', 'tokenize', '--vocab', own_codes, status=2)
    assert not (tmp_path / 'out').exists()


def test_pieces_are_counted_as_get_vocab_does(small, own_codes, tmp_path, subword_nmt):
    _, apply, vocabulary_of = subword_nmt
    encoder = apply.BPE(io.StringIO(own_codes.read_text()))
    segmented = [encoder.process_line(line) for line in small.source.read_text().split('\n')]
    theirs = io.StringIO()
    vocabulary_of.get_vocab(io.StringIO('\n'.join(segmented)), theirs)
    table = tmp_path / 'T'
    command = ['count', '--text', small.source, '--pieces', '--vocab', own_codes, '--output', table]
    said = succeed(*command)
    lines = table.read_text().splitlines()
    assert collections.Counter(lines) == collections.Counter(theirs.getvalue().splitlines())
    items = [(-int(count), piece) for piece, count in (line.split(' ') for line in lines)]
    assert items == sorted(items)
    entries = own_codes.with_suffix('.vocab')
    pieces = [line.split(' ')[0] for line in lines]
    assert entries.read_text().splitlines() == ['<pad>', '</s>', '<unk>', *pieces]
    assert f'{len(pieces)} pieces in {table}' in said
    [read] = manifest_of(tmp_path, 'T.tokbeam.json')['lines']
    assert read['lines'] == read['examples'] + read['empty'] == len(segmented) - 1


def test_ids_that_are_there_are_not_replaced(small, own_codes, tmp_path):
    command = ['count', '--text', small.source, '--pieces', '--vocab', own_codes]
    succeed(*command, '--output', tmp_path / 'T')
    assert 'pieces: already done' in succeed(*command, '--output', tmp_path / 'T')
    entries = own_codes.with_suffix('.vocab')
    others = ['--special-tokens', '<unk>,<s>,</s>', '--output', tmp_path / 'U']
    before = entries.read_bytes()
    assert f'{entries} exists already' in refuse(*command, *others)
    assert entries.read_bytes() == before
    succeed(*command, *others, '--overwrite')
    assert entries.read_text().startswith('<unk>\n<s>\n</s>\n')


def test_ids_of_counted_pieces_are_those_of_a_build(small, own_codes, tmp_path):
    text = ['--text', small.source]
    succeed('count', *text, '--pieces', '--vocab', own_codes, '--output', tmp_path / 'T')
    dataset = [*text, '--name', 'small', '--shards', 3]
    succeed('build', *dataset, *NMT, '--merges', 150, '--output', tmp_path / 'built')
    succeed('encode', *dataset, '--vocab', own_codes, '--output', tmp_path / 'encoded')
    built = shards_and_vocabularies(tmp_path / 'built')
    encoded = shards_and_vocabularies(tmp_path / 'encoded')
    assert encoded == {name: built[name] for name in encoded} and len(encoded) == 3


def test_lines_of_pieces_are_those_of_apply_bpe(small, codes, subword_nmt, filter_lines):
    _, apply, _ = subword_nmt
    encoder = apply.BPE(io.StringIO(codes.read_text()))
    lines = [*small.source.read_text().split('\n'), '  two  blanks ', ' a\tb', '']
    said = filter_lines(
        ''.join(f'{line}\n' for line in lines).encode(), 'tokenize', '--vocab', codes, '--pieces'
    )
    assert said.decode().split('\n')[:-1] == [encoder.process_line(line) for line in lines]


def test_rare_pieces_get_no_ids_and_are_split(
    small, own_codes, tmp_path, subword_nmt, filter_lines
):
    _, apply, _ = subword_nmt
    table, threshold = tmp_path / 'T', 8
    counting = ['count', '--text', small.source, '--pieces', '--vocab', own_codes]
    succeed(*counting, '--output', table, '--vocabulary-threshold', threshold)
    frequent = apply.read_vocabulary(io.StringIO(table.read_text()), threshold)
    entries = own_codes.with_suffix('.vocab').read_text().splitlines()
    assert {*entries} - {'<pad>', '</s>', '<unk>'} == frequent
    assert len(frequent) < len(table.read_text().splitlines())
    theirs = apply.BPE(io.StringIO(own_codes.read_text()), vocab=frequent, glossaries=['[aeo]+'])
    lines = small.source.read_text().split('\n')[:-1]
    said = filter_lines(
        small.source.read_bytes(), 'tokenize', '--vocab', own_codes, '--pieces', '--split-unknown',
        '--glossary', '[aeo]+',
    )  # fmt: skip
    assert said.decode().split('\n')[:-1] == [theirs.process_line(line) for line in lines]


def test_rows_with_dropout_are_the_same_in_every_run(small, own_codes, tmp_path):
    text = ['--text', small.source]
    succeed('count', *text, '--pieces', '--vocab', own_codes, '--output', tmp_path / 'T')
    encoding = ['encode', *text, '--name', 'small', '--shards', 3, '--vocab', own_codes]
    dropping = ['--dropout', 0.3]
    made = []
    for asked in (
        [], [*dropping, '--workers', 1], [*dropping, '--workers', 2, '@item-size', '1KiB'],
        [*dropping, '--dropout-seed', 5],
    ):  # fmt: skip
        folder = tmp_path / f'{len(made)}'
        succeed(*encoding, *asked, '--output', folder)
        made.append(shards_and_vocabularies(folder))
    assert made[1] == made[2] and made[0] != made[1] != made[3]
    assert manifest_of(folder)['options']['dropout'] == 0.3


def test_what_is_of_subword_nmt_is_refused_for_bytes(small, tmp_path):
    path = tmp_path / 'tokenizer.json'
    succeed('vocab', '--text', small.source, '--scheme', 'bpe', '--merges', 9, '--output', path)
    encoding = ['encode', '--text', small.source, '--name', 'x', '--output', tmp_path / 'out']
    for asked in (['--dropout', 0.1], ['--dropout', 2], ['--glossary', '(']):
        refuse(*encoding, '--vocab', path, *asked)


def test_bytes_come_back(small, tmp_path, filter_lines):
    path = tmp_path / 'tokenizer.json'
    succeed('vocab', '--text', small.source, '--scheme', 'bpe', '--merges', 100, '--output', path)
    text = '  if x:\t\n\n na\rïve 🙂\n'.encode()
    ids = filter_lines(text, 'tokenize', '--vocab', path)
    assert filter_lines(ids, 'detokenize', '--vocab', path) == text
    half = filter_lines('🙂\n'.encode(), 'tokenize', '--vocab', path).split()[0] + b'\n'
    assert filter_lines(half, 'detokenize', '--vocab', path) == '\ufffd\n'.encode()


@pytest.mark.parametrize(
    'asked',
    [
        ['--merges', 5, '--limit-alphabet', 9],
        ['--merges', 5, '--pre-tokenizer', 'space'],
        ['--merges', 5, '--vocab-size', 300],
    ],
)
def test_what_cannot_be_learned_is_refused_before_anything_is_counted(small, tmp_path, asked):
    command = ['vocab', '--text', small.source, '--scheme', 'bpe', *asked]
    refuse(*command, '--output', tmp_path / 'vocab')
    assert not files_of(tmp_path)


def test_too_large_a_table_is_learned_in_rounds(small, tmp_path, monkeypatch):
    counts = tmp_path / 'counts'
    succeed('count', '--text', small.source, *NMT, '--output', counts)
    learn = ['vocab', '--counts', counts, *NMT, '--merges', 200]
    succeed(*learn, '--output', tmp_path / 'whole')
    # More than an index of 31 bits can name, by a lowered limit.
    with monkeypatch.context() as patch:
        patch.setattr(BpeScheme, 'learner_most_characters', 1000)
        patch.setattr(trainer, 'MOST_CELLS', 1000)
        patch.setattr(cutting, 'MOST_CELLS', 1000)
        said = succeed(*learn, '--output', tmp_path / 'large in rounds')
    assert 'in rounds, with words in files' in said
    assert (tmp_path / 'large in rounds').read_bytes() == (tmp_path / 'whole').read_bytes()
    monkeypatch.setattr(search, 'available_bytes', lambda: (350 << 20) + 10_000)
    said = succeed(*learn, '--output', tmp_path / 'whole in rounds')
    assert 'in rounds, with words in files' in said
    assert (tmp_path / 'whole in rounds').read_bytes() == (tmp_path / 'whole').read_bytes()
    assert not [name for name in files_of(tmp_path) if 'words' in str(name)]


def test_memory_bounds_what_is_learned_from_at_once(small, tmp_path):
    old = tmp_path / 'tokenizer.json'
    succeed('vocab', '--text', small.source, '--scheme', 'bpe', '--merges', 90, '--output', old)
    whole_lines = ['--extend', old, '--pre-tokenizer', 'none']
    for number, asked in enumerate([NMT, NMT[:2], [*NMT[:2], *whole_lines]]):
        command = ['vocab', '--text', small.source, *asked, '--merges', 120]
        succeed(*command, '--output', tmp_path / f'memory{number}')
        # So much is the process itself.
        said = succeed(*command, '--memory', '350MiB', '--output', tmp_path / f'rounds{number}')
        assert 'in rounds, with words in files' in said
        rounds, memory = (tmp_path / f'{kind}{number}' for kind in ('rounds', 'memory'))
        assert rounds.read_bytes() == memory.read_bytes()
    said = refuse(*command, '--memory', '1000TiB', '--output', tmp_path / 'vocab')
    assert '--memory 1000TiB is more than the' in said


def test_too_large_a_table_without_rounds_is_refused(small, tmp_path, monkeypatch):
    counts, textbook = tmp_path / 'counts', ['--scheme', 'bpe', '--preset', 'textbook']
    succeed('count', '--text', small.source, *textbook, '--output', counts)
    command = ['vocab', '--counts', counts, *textbook, '--merges', 20]
    succeed(*command, '--output', tmp_path / 'whole')
    monkeypatch.setattr(search, 'available_bytes', lambda: (350 << 20) + 10_000)
    said = refuse(*command, '--output', tmp_path / 'vocab')
    assert 'take a larger machine (merges cannot be learned in rounds: the first of equally' in said


CRLF = b'one two\r\n  two three \r\n\r\none\r\n'


def test_carriage_returns_before_line_feeds_are_no_text_of_bytes(
    tmp_path, filter_lines, tokenizers
):
    text = write(tmp_path / 'a.txt', CRLF)
    path = tmp_path / 'tokenizer.json'
    succeed('vocab', '--text', text, '--scheme', 'bpe', '--merges', 8, '--output', path)
    ids = filter_lines(CRLF, 'tokenize', '--vocab', path)
    expected = CRLF.replace(b'\r\n', b'\n')
    assert filter_lines(ids, 'detokenize', '--vocab', path) == expected
    fast = tokenizers.Tokenizer.from_file(str(path))
    lines = expected.decode().split('\n')[:-1]
    assert [[*map(int, line.split())] for line in ids.decode().split('\n')[:-1]] == [
        fast.encode(line).ids for line in lines
    ]


def test_carriage_returns_at_ends_are_not_part_of_subword_nmts_words(tmp_path, subword_nmt):
    learn, _, _ = subword_nmt
    text = write(tmp_path / 'a.txt', CRLF)
    succeed('vocab', '--text', text, *NMT, '--merges', 6, '--output', tmp_path / 'X.codes')
    theirs = io.StringIO()
    learn.learn_bpe(io.StringIO(CRLF.decode(), newline='\n'), theirs, 6)
    assert (tmp_path / 'X.codes').read_text() == theirs.getvalue()
