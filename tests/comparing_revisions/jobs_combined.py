"""Jobs over the odd corpora: schemes, formats, outputs and options, combined in pairs.

A job's name has the value of each factor between dots, so that `encode.bpe.*` and `*.sgm.*` name all
jobs with one.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .covering import covering_rows
from .jobs_compared import Job
from .odd_corpora import CORPORA, MAX_LINE_SIZE, STORAGES, OddCorpora
from .odd_files import OddFiles

_SKIP = ['--on-error', 'skip', '--max-line-size', MAX_LINE_SIZE]
_OUTPUT = ['--name', 'n', '--shards', 3]

TOKENS: Mapping[str, Sequence[object]] = {
    'subword': ['--scheme', 'subword'],
    'wordpiece': ['--scheme', 'wordpiece'],
    'wordpiece-original': [
        '--scheme', 'wordpiece', '--normalizer', 'bert-original', '--no-lower-case',
    ],
    'bpe': ['--scheme', 'bpe'],
    'bpe-cl100k': ['--scheme', 'bpe', '--preset', 'cl100k', '--unicode-form', 'NFC'],
    'bpe-subword-nmt': ['--scheme', 'bpe', '--preset', 'subword-nmt'],
    'bpe-textbook': ['--scheme', 'bpe', '--preset', 'textbook'],
    'bpe-whitespace': [
        '--scheme', 'bpe', '--preset', 'subword-nmt', '--pre-tokenizer', 'whitespace',
    ],
    'word': ['--scheme', 'word'],
    'word-unicode': ['--scheme', 'word', '--split', 'unicode'],
    'byte': ['--scheme', 'byte'],
    'unigram': ['--scheme', 'unigram'],
    'pretrained-ranks': ['--scheme', 'pretrained', '--pattern', 'o200k'],
    'pretrained-json': ['--scheme', 'pretrained', '--allow-special-tokens'],
}  # fmt: skip
"""By name, how text becomes tokens: each scheme, and each kind of normalizer and pre-tokenizer."""

LEARNING: Mapping[str, Sequence[object]] = {
    'subword': ['--vocab-size', 500],
    'wordpiece': ['--vocab-size', 900, '--min-count-range', '2:100'],
    'wordpiece-original': [
        '--vocab-size', 900, '--min-count-range', '2:100', '--search', 'at-most',
        '--special-tokens', '[PAD],[UNK],[CLS],[SEP],[MASK],<2zh>',
    ],
    'bpe': ['--vocab-size', 400],
    'bpe-cl100k': ['--merges', 100, '--special-tokens', '<pad>', '--min-count', 2],
    'bpe-subword-nmt': ['--merges', 150],
    'bpe-textbook': ['--merges', 100],
    'bpe-whitespace': ['--merges', 120, '--max-piece-length', 5],
    # Most words of the corpora have an id, so that few are unknown.
    'word': ['--min-count', 1],
    'word-unicode': ['--vocab-size', 4000, '--special-tokens', '<unk>,<s>,</s>,<2zh>'],
}  # fmt: skip
"""How a vocabulary is learned for each of `TOKENS` that has one."""

OTHER_LEARNING: Mapping[str, tuple[str, Sequence[object]]] = {
    'subword-closest': (
        'subword',
        ['--vocab-size', 550, '--search', 'closest', '--reserved-token', '<2zh>', '--target-prefix', '<2zh> '],
    ),
    'wordpiece-closest': (
        'wordpiece', ['--vocab-size', 900, '--min-count-range', '2:100', '--search', 'closest'],
    ),
    'bpe-codes': (
        'bpe-subword-nmt', ['--merges', 400, '--total-symbols', '--glossary', '<[a-z0-9]+>', '--split-unknown'],
    ),
    'bpe-lines': ('bpe', ['--merges', 60, '--pre-tokenizer', 'none', '--max-piece-length', 9]),
    'bpe-of-bert': ('bpe-textbook', ['--merges', 90, '--pre-tokenizer', 'bert']),
}  # fmt: skip
"""Further ways to learn, each with the entry of `TOKENS` that it goes with."""

OUTPUTS = (
    'tfrecord', 'text', 'parquet', 'megatron', 'flat', 'nanogpt', 'packed', 'joined', 'array_record',
)  # fmt: skip
_CONVERTED = (('parquet', 'megatron', 'flat'), ('packed', 'joined', 'array_record'))
"""Of each dataset of TFRecords with text alone, those of one of these are made."""

_PACKED = {'packed': ['--pack', 64], 'joined': ['--pack', 32]}

FILTERS: Mapping[str, str] = {
    'none': '',
    'length': 'length:2:200',
    'tokens': 'length:1:12:tokens',
    'nfkc': 'nfkc',
    'own': 'own_rows:halves',
    'script': 'script:Hani:0.3:target',
    'ratio': 'ratio:5,different,ratio:2:tokens',
    'clean_en_xx': 'clean_en_xx',
    'paracrawl': 'paracrawl',
}
_FILTERS_OF_PAIRS = ('script', 'ratio', 'clean_en_xx', 'paracrawl')

OWN_FILTER = '''"""A filter of rows, found in the working directory."""


def halves(*texts):
    if len(texts[0]) % 7 == 0:
        return None
    first = tuple(text[: len(text) // 2] for text in texts)
    return [first, texts] if all(first) else texts if len(texts) > 1 else texts[0]
'''

ENCODE_FACTORS: Mapping[str, Sequence[str]] = {
    'scheme': (
        'subword',
        'wordpiece',
        'bpe',
        'bpe-cl100k',
        'bpe-subword-nmt',
        'bpe-textbook',
        'word',
        'byte',
        'pretrained-ranks',
        'pretrained-json',
    ),
    'corpus': tuple(CORPORA),
    'output': OUTPUTS,
    'storage': tuple(STORAGES),
    'clean': tuple(FILTERS),
    'split': ('no-split', 'dev-share', 'two-shares', 'dev-files'),
    'rows': ('sound', 'skip'),
    'more': ('no-more', 'prefixes', 'seed', 'small-items'),
    'shuffle': ('files', 'engine'),
}

BUILD_FACTORS: Mapping[str, Sequence[str]] = {
    'learner': (*LEARNING, *OTHER_LEARNING, 'byte'),
    'corpus': ('text', 'bitext', 'tsv-quoted', 'jsonl-kept'),
    'vocabulary': ('each', 'shared', 'sample', 't2t-sample'),
    'rows': ('sound', 'skip'),
    'storage': ('plain', 'zst', 'zip'),
}


def is_possible_encode(row: Mapping[str, str]) -> bool:
    """Whether these values of `ENCODE_FACTORS` go together; others are refused."""
    corpus = CORPORA.get(row.get('corpus', ''))
    output = row.get('output', 'tfrecord')
    if output == 'joined' and row.get('scheme', 'wordpiece') != 'wordpiece':
        return False  # no other has [CLS], [SEP] and [PAD]
    if output == 'nanogpt' and (
        row.get('clean') in _FILTERS_OF_PAIRS
        or row.get('split') == 'two-shares'  # with two shards of a split
        or (corpus is not None and corpus.sides == 2)
    ):
        return False
    if corpus is None:
        return True
    if corpus.format == 'parquet' and row.get('storage', 'plain') != 'plain':
        return False
    if row.get('corpus') == 'tsv-header' and row.get('clean') == 'clean_en_xx':
        return False  # its source is not English, so that no row is left
    if corpus.has_other_fields and output != 'tfrecord':
        return False
    return corpus.sides == 2 or row.get('clean') not in _FILTERS_OF_PAIRS


def is_possible_build(row: Mapping[str, str]) -> bool:
    """Whether these values of `BUILD_FACTORS` go together; others are refused."""
    corpus, vocabulary = row.get('corpus', 'bitext'), row.get('vocabulary')
    if vocabulary == 't2t-sample' and corpus not in ('text', 'bitext'):
        return False
    return not (row.get('learner') == 'byte' and vocabulary not in (None, 'each'))


def learning_jobs(corpora: OddCorpora) -> Iterator[Job]:
    """Yields the jobs that learn the vocabularies that both revisions encode with."""
    for name in LEARNING:
        yield from _vocabulary_jobs(f'learn.{name}', name, 'tsv', corpora, [])


def _vocabulary_jobs(
    job: str, name: str, corpus: str, corpora: OddCorpora, counts: Sequence[object]
) -> Iterator[Job]:
    """Learns a vocabulary from a corpus, or its counts; and ids of its pieces, where these are apart."""
    words = corpora.words(corpus)
    how = [*TOKENS[name], *LEARNING[name]]
    vocab = Job(job, ('vocab', *(counts or [*words, *_leaving_out(name)]), *how))
    yield vocab
    if _has_codes(name):
        using = [*TOKENS[name], '--pieces', '--vocab', vocab.output, *_leaving_out(name)]
        yield Job(f'pieces.{job}', ('count', *words, *using))


def _has_codes(tokens: str) -> bool:
    return 'subword-nmt' in TOKENS[tokens] or 'textbook' in TOKENS[tokens]


def _leaving_out(tokens: str, bad: bool = False) -> list[object]:
    """The options that leave out what cannot be learned from: codes hold no carriage return."""
    return _SKIP if bad or _has_codes(tokens) else []


def combined_jobs(
    corpora: OddCorpora, files: OddFiles, vocabularies: Mapping[str, Path]
) -> Iterator[Job]:
    """Yields the jobs in an order in which each finds what it goes on from.

    Args:
        corpora: the texts.
        files: files that are not as they should be, and other tools' vocabularies.
        vocabularies: those that are encoded with, by the names in `TOKENS`.
    """
    converted = itertools.cycle(_CONVERTED)
    for row in covering_rows(ENCODE_FACTORS, is_possible_encode):
        job = _encode_job(row, corpora, vocabularies)
        yield job
        if row['output'] == 'tfrecord':
            yield Job(f'index.{job.name}', ('index', job.output))
            if not CORPORA[row['corpus']].has_other_fields:
                yield from _convert_jobs(job, row['scheme'], next(converted))
    for row in covering_rows(BUILD_FACTORS, is_possible_build):
        yield _build_job(row, corpora)
    for number, name in enumerate(('wordpiece', 'bpe', 'bpe-subword-nmt', 'bpe-textbook', 'word')):
        yield from _stages(name, number, corpora)
    for name in TOKENS:
        yield from _line_jobs(name, files, vocabularies)


def _encode_job(
    row: Mapping[str, str], corpora: OddCorpora, vocabularies: Mapping[str, Path]
) -> Job:
    scheme, name, output, bad = row['scheme'], row['corpus'], row['output'], row['rows'] == 'skip'
    words = [*corpora.words(name, row['storage'], bad), *TOKENS[scheme]]
    words += _OUTPUT if output != 'nanogpt' else _OUTPUT[:2]
    if scheme in vocabularies:
        words += ['--vocab', vocabularies[scheme]]
    words += ['--output-format', output, *_PACKED.get(output, [])]
    # Rows that are joined have nothing around their text before.
    words += ['--template', '$A'] if (scheme, output) == ('wordpiece', 'tfrecord') else []
    words += _SKIP if bad else []
    if row['clean'] != 'none':
        words += ['--clean', FILTERS[row['clean']], *(['--keep-rejected'] if bad else [])]
    words += {
        'no-split': [],
        'dev-share': ['--dev-share', '10%'],
        'two-shares': ['--dev-share', '10%', '--test-share', '5%'],
        'dev-files': _paths_of_dev(corpora.paths(name, bad=bad)),
    }[row['split']]
    words += {
        'no-more': [],
        'prefixes': _prefixes(CORPORA[name].sides),
        'seed': ['--seed', 5],
        'small-items': ['@item-size', '6KiB'],
    }[row['more']]
    return Job(_dotted('encode', row), ('encode', *words, '@shuffle', row['shuffle']))


def _convert_jobs(dataset: Job, scheme: str, outputs: Sequence[str]) -> Iterator[Job]:
    for output in outputs:
        if output != 'joined' or scheme == 'wordpiece':
            how = ['--to', output, *_PACKED.get(output, [])]
            yield Job(f'convert.{output}.{dataset.name}', ('convert', dataset.output, *how))


_DEV = {role: f'--dev-{side}' for side in ('source', 'target') for role in (side, f'sgm_{side}')}


def _paths_of_dev(paths: Mapping[str, Sequence[str]]) -> list[str]:
    if not {'line_labels', 'tmx_lines'}.isdisjoint(paths):
        return []  # other splits of these formats are named in job files
    return [word for role, files in paths.items() for word in [_DEV.get(role, '--dev'), *files[:1]]]


def _prefixes(sides: int) -> list[str]:
    source, target = ['--source-prefix', 'to zh: '], ['--target-prefix', '<2zh> ']
    return {0: source, 1: target, 2: [*source, *target]}[sides]


def _build_job(row: Mapping[str, str], corpora: OddCorpora) -> Job:
    learner = row['learner']
    tokens, learning = OTHER_LEARNING.get(learner, (learner, LEARNING.get(learner, [])))
    words = [*corpora.words(row['corpus'], row['storage'], row['rows'] == 'skip')]
    words += [*TOKENS[tokens], *learning, *_OUTPUT]
    words += _leaving_out(tokens, row['rows'] == 'skip')
    words += {
        'each': ['--dev-share', '7%'],
        'shared': ['--shared-vocab', '--dev-share', '7%'],
        'sample': ['--vocab-sample', 'uniform:0.5', '--dev-share', '7%'],
        't2t-sample': ['--vocab-sample', 't2t:8KB'],
    }[row['vocabulary']]
    return Job(_dotted('build', row), ('build', *words))


def _stages(name: str, number: int, corpora: OddCorpora) -> Iterator[Job]:
    """Counts, learns from the counts, and encodes with the result, of one corpus after another."""
    pairs = [each for each, corpus in CORPORA.items() if corpus.sides == 2]
    corpus = pairs[number % len(pairs)]
    words = corpora.words(corpus)
    count = Job(f'count.{name}.{corpus}', ('count', *words, *TOKENS[name], *_leaving_out(name)))
    yield count
    learning = [
        *_vocabulary_jobs(
            f'vocab.{name}.{corpus}', name, corpus, corpora, ['--counts', count.output]
        )
    ]
    yield from learning
    using = ['--vocab', learning[0].output, *TOKENS[name], *_OUTPUT]
    yield Job(f'use.{name}.{corpus}', ('encode', *words, *using))


_TEMPLATES = {'subword': '$A <EOS>', 'wordpiece': '[CLS] $A [SEP]'}
"""What surrounds lines, by the scheme."""


def _line_jobs(name: str, files: OddFiles, vocabularies: Mapping[str, Path]) -> Iterator[Job]:
    """Lines to ids, to pieces, and back, and what other tools get."""
    how = [*TOKENS[name]]
    if name in vocabularies:
        how += ['--vocab', vocabularies[name]]
    ids = Job(
        f'tokenize.ids.{name}',
        ('tokenize', *how, '--template', _TEMPLATES.get(name.partition('-')[0], '$A')),
        files.lines,
    )
    pieces = Job(f'tokenize.pieces.{name}', ('tokenize', *how, '--pieces'), files.lines)
    yield from (ids, pieces)
    for job, more in [(ids, []), (pieces, ['--pieces'])]:
        words = ('detokenize', *how, *more)
        yield Job(f'de{job.name}', words, Path(job.name, 'stdout'))
    if name in vocabularies:
        scheme = [word for word in how[2:] if word not in ('--vocab', '--allow-special-tokens')]
        for target in ('huggingface', 'tiktoken', 'sentencepiece', 'vocab.txt', 'subword-nmt'):
            words = ('export', scheme[-1], *how[:2], *scheme[:-1], '--to', target)
            yield Job(f'export.{name}.{target}', words)


def _dotted(command: str, row: Mapping[str, str]) -> str:
    return '.'.join([command, *row.values()])
