"""Documents that are joined in one stream are found again: it is decoded and split at the end token."""

import base64
import itertools
import json
import random
import re
import shutil

import numpy as np
import pytest
from dataset_files import files_of, manifest_of, read_shards
from jobs import refuse, succeed, write

from pipelines.cli.main import main
from tokcore import open_dataset
from tokcore.encoding.vocabulary import SpecialIds, without_special_ids

WORDS = 'the cat sat on a mat and saw 42 <|endoftext|> </s> <EOS> [SEP] naïve 日本 end'.split()
PLAIN = [word for word in WORDS if word.isascii() and word.isalnum()]
STREAMS = {'flat': '.npy', 'megatron': '.bin'}


def documents_of(seed, words=WORDS):
    dice = random.Random(seed)
    return [' '.join(dice.choices(words, k=dice.randint(1, 12))) for _ in range(60)]


def text(path, documents):
    return write(path, ''.join(f'{document}\n' for document in documents).encode())


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Files of tokenizers: one learned, and published ones that are made of it."""
    folder = tmp_path_factory.mktemp('files')
    corpus = text(folder / 'corpus.txt', documents_of(0))
    learned = folder / 'learned' / 'tokenizer.json'
    succeed('vocab', '--text', corpus, '--scheme', 'bpe', '--vocab-size', 300, '--output', learned)
    file = json.loads(learned.read_text())
    for name, tokens, eos in [
        ('chat', ['<|endoftext|>', '<|im_end|>'], '<|im_end|>'),
        ('eos', ['<|stop|>', '<|im_end|>'], '<|stop|>'),
        ('two', ['<|endoftext|>', '</s>'], None),
        ('none', ['<|stop|>'], None),
    ]:
        entries = dict(file['model']['vocab'])
        del entries['<|endoftext|>']
        added = [
            file['added_tokens'][0] | {'id': 0 if not n else 299 + n, 'content': token}
            for n, token in enumerate(tokens)
        ]
        entries |= {token['content']: token['id'] for token in added}
        published = file | {'added_tokens': added, 'model': file['model'] | {'vocab': entries}}
        (folder / name).mkdir()
        (folder / name / 'tokenizer.json').write_text(json.dumps(published))
        config = {'eos_token': eos, 'chat_template': '…'}
        (folder / name / 'tokenizer_config.json').write_text(json.dumps(config))
    lines = [b'%b %d\n' % (base64.b64encode(bytes([n])), n) for n in range(256)]
    (folder / 'bytes.tiktoken').write_bytes(b''.join(lines))
    return folder


BPE = ['build', '--scheme', 'bpe', '--vocab-size', 300]


def encoding(name, *arguments):
    return ['encode', '--scheme', 'pretrained', '--vocab', f'{{files}}/{name}', *arguments]


RANKS = encoding('bytes.tiktoken', '--pattern', 'gpt2')

# The command, the end token or id that it must find, and whether rows end with it as they are stored.
SETS = {
    'gpt2': (BPE, '<|endoftext|>', False),
    'cl100k': ([*BPE, '--preset', 'cl100k'], '<|endoftext|>', False),
    'other special token': ([*BPE, '--special-tokens', '</s>'], '</s>', False),
    'asked for': ([*BPE, '--special-tokens', '</s>,<|endoftext|>', '--end', '</s>'], '</s>', False),
    'in the template': ([*BPE, '--template', '$A <|endoftext|>'], '<|endoftext|>', True),
    'id in the template': ([*BPE, '--template', '$A 0'], '<|endoftext|>', True),
    'begin': (
        [*BPE, '--special-tokens', '<s>,<|endoftext|>', '--template', '<s> $A'],
        '<|endoftext|>', False,
    ),
    'extended': (
        ['build', '--scheme', 'bpe', '--extend', '{files}/learned', '--vocab-size', 305],
        '<|endoftext|>', False,
    ),
    'chat': (encoding('chat'), '<|endoftext|>', False),
    'configured': (encoding('eos'), '<|stop|>', False),
    'one of two': (encoding('two', '--end', '</s>'), '</s>', False),
    'template of two': (encoding('two', '--template', '$A </s>'), '</s>', True),
    'ranks': ([*RANKS, '--end', '300'], 300, False),
    'ranks with a template': ([*RANKS, '--template', '$A 300', '--end', '300'], 300, True),
    'byte': (['build', '--scheme', 'byte'], '<EOS>', True),
    'byte without': (['build', '--scheme', 'byte', '--template', '$A'], '<EOS>', False),
    'subword': (['build', '--vocab-size', 90], '<EOS>', True),
    'subword without': (['build', '--vocab-size', 90, '--template', '$A'], '<EOS>', False),
    'word': (['build', '--scheme', 'word', '--vocab-size', 40], '</s>', True),
    'wordpiece': (['build', '--scheme', 'wordpiece', '--vocab-size', 90], '[SEP]', True),
    'subword-nmt': ([*BPE[:3], '--preset', 'subword-nmt', '--merges', 40], '</s>', False),
}  # fmt: skip


def made(arguments, files, corpus, output, *more):
    command, *rest = (str(each).format(files=files) for each in arguments)
    succeed(
        command, '--text', corpus, *rest, '--name', 'd', '--shards', 3, *more, '--output', output
    )
    return output


def without_counts(folder):
    return {name: data for name, data in files_of(folder).items() if not name.startswith('counts/')}


def streams_of(folder, ending):
    """The ids of each stream of a dataset, in the order of the manifest."""
    return [
        np.fromfile(folder / file['name'], file['dtype']).tolist()
        for file in manifest_of(folder)['files']
        if file['name'].endswith(ending) and file['rows']
    ]


@pytest.mark.parametrize(
    ('name', 'output_format'),
    [
        pytest.param(*each, marks=pytest.mark.slow if number % 3 else ())
        for number, each in enumerate(zip(SETS, itertools.cycle(STREAMS), strict=False))
    ],
)
def test_the_stream_split_at_the_end_token_is_the_documents(name, output_format, files, tmp_path):
    arguments, token, in_template = SETS[name]
    # A token of the table that is a word of the text would be the end there.
    is_plain = 'bpe' not in arguments and 'byte' not in arguments and arguments[0] == 'build'
    is_plain |= 'subword-nmt' in arguments
    documents = documents_of(name, PLAIN if is_plain else WORDS)
    corpus = text(tmp_path / 'corpus.txt', documents)
    rows = made(arguments, files, corpus, tmp_path / 'rows')
    joined = made(arguments, files, corpus, tmp_path / 'joined', '--output-format', output_format)
    [end] = manifest_of(joined)['end_of_document']
    assert manifest_of(rows)['end_of_document'] == [end]
    assert token in (end['token'], end['id']) and end['in_template'] == in_template

    dataset = open_dataset(rows)
    assert dataset.end_of_document().id == end['id']
    expected = [dataset.text(row['targets']) for shard in read_shards(rows) for row in shard]
    assert sorted(expected) == sorted(documents)

    template, found = dataset.template(), []
    for stream in streams_of(joined, STREAMS[output_format]):
        assert stream[-1] == end['id']
        document = []
        for id_ in stream:
            if id_ != end['id']:
                document.append(id_)
                continue
            if template.before:
                assert tuple(document[:1]) == template.before
            ids = without_special_ids(document[len(template.before) :], template, SpecialIds())
            found.append(dataset.vocabulary().decode(ids))
            document = []
    assert found == expected

    if arguments[0] == 'build':
        succeed('convert', rows, '--to', output_format, '--output', tmp_path / 'converted')
        assert without_counts(joined) == files_of(tmp_path / 'converted')
    for strategy in ('best-fit', 'greedy', 'concat'):
        parts = []
        for batch in dataset.packed('train', 512, strategy=strategy, batch_size=1):
            [ids], [numbers] = batch['targets'], batch['targets_segmentation']
            parts += [ids[numbers == number].tolist() for number in range(1, numbers.max() + 1)]
        if strategy == 'concat':
            ids = [id_ for part in parts for id_ in part]
            assert ids.count(end['id']) == len(documents) and ids[-1] == end['id']
        else:
            assert sorted(map(dataset.text, parts)) == sorted(documents)
            assert {part[-1] for part in parts} == {end['id']}


def test_pairs_have_an_end_on_each_side(tmp_path):
    documents = [documents_of(1), documents_of(2)]
    sides = [text(tmp_path / name, own) for name, own in zip('ab', documents, strict=True)]
    common = ['build', '--source', sides[0], '--target', sides[1], '--scheme', 'bpe']
    common += ['--vocab-size', 290, '--name', 'd', '--shards', 2]
    common += ['--special-tokens', '<pad>,<|endoftext|>', '--output-format', 'flat']
    for layout in ([], ['--shared-vocab']):
        out = tmp_path / f'out{len(layout)}'
        said = succeed(*common, *layout, '--output', out)
        ends = manifest_of(out)['end_of_document']
        assert [(end['feature'], end['id']) for end in ends] == [('inputs', 1), ('targets', 1)]
        assert 'tokbeam: 60 documents, each followed by <|endoftext|> (1)\n' in said
        for side in ('inputs', 'targets'):
            streams = streams_of(out, f'.{side}.npy')
            assert sum(stream.count(1) for stream in streams) == 60
            assert all(stream[-1] == 1 for stream in streams)
        assert main(['verify', str(out), '--rerun', 'all', '--progress=none']) == 0


@pytest.mark.parametrize(
    ('output_format', 'asked'),
    [
        ('megatron', ['--end', 'none']), ('flat', ['--end', '<pad>']), ('parquet', ['--end', '1']),
        ('array_record', ['--end', '<pad>']),
    ],
    ids=str,
)  # fmt: skip
def test_convert_takes_another_end_and_makes_the_same_files(output_format, asked, tmp_path):
    if output_format == 'array_record':
        pytest.importorskip('array_record')
    corpus = text(tmp_path / 'corpus.txt', documents_of(3))
    command = ['build', '--text', corpus, '--scheme', 'bpe', '--vocab-size', 290, '--name', 'd']
    command += ['--special-tokens', '<|endoftext|>,<pad>', '--shards', 2]
    for before in ([], ['--end', 'none'], ['--end', '<pad>']):
        rows = tmp_path / f'rows{"".join(before)}'
        succeed(*command, *before, '--output', rows)
        out = tmp_path / f'converted{"".join(before)}'
        succeed('convert', rows, '--to', output_format, *asked, '--output', out)
        wanted = tmp_path / 'wanted'
        succeed(*command, '--output-format', output_format, *asked, '--output', wanted)
        assert without_counts(wanted) == files_of(out)
        assert main(['verify', str(out), '--progress=none']) == 0


def test_convert_takes_an_end_that_a_file_of_ranks_does_not_list(files, tmp_path):
    corpus = text(tmp_path / 'corpus.txt', documents_of(5))
    rows = made(RANKS, files, corpus, tmp_path / 'rows')
    asked = ['--end', '70000']  # more than 16 bits hold
    for output_format in STREAMS:
        out = tmp_path / f'converted-{output_format}'
        succeed('convert', rows, '--to', output_format, *asked, '--output', out)
        wanted = tmp_path / f'wanted-{output_format}'
        made([*RANKS, *asked], files, corpus, wanted, '--output-format', output_format)
        assert files_of(out) == files_of(wanted)
        assert all(stream[-1] == 70_000 for stream in streams_of(out, STREAMS[output_format]))
        assert main(['verify', str(out), '--progress=none']) == 0
    assert open_dataset(rows).vocab_size() == 256
    ended = made([*RANKS, *asked], files, corpus, tmp_path / 'ended')
    assert open_dataset(ended).vocab_size() == len(open_dataset(ended).byte_lengths()) == 70_001


def test_joined_rows_need_an_end_and_others_do_not(files, tmp_path, capsys):
    corpus = text(tmp_path / 'corpus.txt', documents_of(4))
    for name, found in [
        ('two', r'</s> \(300\) and <\|endoftext\|> \(0\), any of which may end documents'),
        ('none', 'no special token that is known to end documents'),
    ]:
        rows = made(encoding(name), files, corpus, tmp_path / name)
        assert 'end_of_document' not in manifest_of(rows)
        command = [*map(str, encoding(name))]
        command[4] = str(files / name)
        for output_format in STREAMS:
            said = refuse(
                *command, '--text', corpus, '--name', 'd', '--output-format', output_format,
                '--output', tmp_path / 'refused',
            )  # fmt: skip
            assert re.search(found, said)
            assert 'give --end TOKEN or --end ID, or --end none to join them' in said
        assert not (tmp_path / 'refused').exists()
        joined = made(encoding(name), files, corpus, tmp_path / f'{name}.joined',
                      '--end', 'none', '--output-format', 'flat')  # fmt: skip
        streams = streams_of(joined, '.npy')
        own = [[id_ for row in shard for id_ in row['targets']] for shard in read_shards(rows)]
        assert streams == [ids for ids in own if ids]


def test_a_vocabulary_to_be_learned_without_an_end_is_refused_before_any_work(tmp_path):
    corpus = text(tmp_path / 'corpus.txt', documents_of(5))
    command = [*BPE, '--text', corpus, '--name', 'd', '--special-tokens', '<pad>']
    command += ['--output-format', 'megatron', '--output', tmp_path / 'out']
    said = refuse(*command)
    assert 'the vocabulary to be learned has no special token that is known to end' in said
    assert not (tmp_path / 'out').exists()
    assert 'tokbeam: 60 documents, joined without an end\n' in succeed(*command, '--end', 'none')


@pytest.mark.parametrize(
    ('asked', 'said'),
    [
        (['--end', '0', '--output-format', 'text'], 'text has rows as the template makes them'),
        (['--end', '<none>'], "--end names '<none>', which the vocabulary does not have"),
        (['--end', '300'], "--end names '300', which the vocabulary does not have"),
        (['--template', '$A 300'], "--template names '300', which the vocabulary does not have"),
    ],
    ids=str,
)
def test_impossible_ends_are_refused(asked, said, files, tmp_path):
    corpus = text(tmp_path / 'corpus.txt', documents_of(6))
    command = ['encode', '--text', corpus, '--vocab', files / 'learned', '--name', 'd', *asked]
    assert said in refuse(*command, '--output', tmp_path / 'out')


def test_a_document_without_its_end_is_found(tmp_path, capsys):
    corpus, out = text(tmp_path / 'corpus.txt', documents_of(7)), tmp_path / 'out'
    common = ['--text', corpus, '--name', 'd', '--shards', 1, '--output-format', 'flat']
    succeed(*BPE, *common, '--output', out)
    [file, _] = manifest_of(out)['files']
    ids = np.fromfile(out / file['name'], file['dtype'])
    ids[np.flatnonzero(ids == 0)[4]] = 7
    ids.tofile(out / file['name'])
    capsys.readouterr()
    assert main(['verify', str(out), '--progress=none']) == 3
    assert 'the row does not end with 0' in capsys.readouterr().out


def test_an_end_that_is_configured_otherwise_is_another_vocabulary(files, tmp_path):
    corpus = text(tmp_path / 'corpus.txt', documents_of(8))
    folder = shutil.copytree(files / 'eos', tmp_path / 'eos')
    command = ['encode', '--scheme', 'pretrained', '--text', corpus, '--vocab', folder]
    command += ['--name', 'd', '--output', tmp_path / 'out']
    succeed(*command)
    (folder / 'tokenizer_config.json').write_text('{"eos_token": "<|im_end|>"}')
    assert 'other vocabularies' in refuse(*command)


@pytest.mark.parametrize(
    ('options', 'said'),
    [([], ' (0) where rows are joined.'), (['--output-format', 'flat'], ' (0).')],
)
def test_the_card_says_what_ends_documents(options, said, files, tmp_path, capsys):
    corpus = text(tmp_path / 'corpus.txt', documents_of(9))
    folder = made(encoding('chat'), files, corpus, tmp_path / 'out', *options)
    capsys.readouterr()
    assert main(['card', str(folder)]) == 0
    line = f'Documents are each followed by \\<\\|endoftext\\|\\>{said}'
    assert line in capsys.readouterr().out
