"""Vocabularies of parts of the corpora next to that of all text: lines of a Markdown table.

    python -m tests.benchmarks.parts_of_corpora docs.txt enzh.en enzh.zh poetry.txt

The files count as one corpus in this order, without the unseen lines, which are encoded: every
100th line, and every fourth of those in rare scripts, where most letters are neither Latin nor
Chinese. A prefix is the beginning of the corpus. A sample has each line with the same probability,
and is drawn with several seeds: the table has the mean, and the range where it can be seen. A
vocabulary is byte-level BPE with the pattern of o200k. Overlap is the share of the entries of the
vocabulary of all text that the other one has.
"""

import argparse
import statistics
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import regex

from tokcore.learn import count_tokens, learn_from_table, learning_of
from tokcore.tokenizers import tokenizer_of

_EVERY = 100
_EVERY_RARE = 4
_SIZES = (1_000_000, 10_000_000, 100_000_000)
_LETTER = regex.compile(r'\p{L}')
_RARE = regex.compile(r'(?!\p{Latin}|\p{Han})\p{L}')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('corpora', nargs='+', type=Path)
    parser.add_argument('--vocab-size', type=int, nargs='+', default=[8192, 32768])
    parser.add_argument('--sizes', type=int, nargs='+', default=_SIZES)
    parser.add_argument('--seeds', type=int, default=3)
    arguments = parser.parse_args()
    seen: list[str] = []
    unseen: dict[str, list[str]] = {each.name: [] for each in arguments.corpora}
    unseen['rare scripts'] = []
    for path in arguments.corpora:
        _divide(path, seen, unseen[path.name], unseen['rare scripts'])
    total = sum(len(line.encode()) for line in seen)
    parts = {'all': [lambda: seen]}
    for size in arguments.sizes:
        parts[f'prefix of {size // 10**6} MB'] = [lambda size=size: _prefix(seen, size)]
    for size in arguments.sizes:
        parts[f'sample of {size // 10**6} MB'] = [
            lambda share=size / total, seed=seed: _sample(seen, share, seed)
            for seed in range(arguments.seeds)
        ]
    unseen_bytes = {
        name: sum(len(line.encode()) for line in lines) for name, lines in unseen.items()
    }
    print(f'{total} bytes are read; the bytes that are not: {unseen_bytes}', flush=True)
    columns = ('entries', 'learned from', 'overlap', *unseen)
    print(f'| {" | ".join(columns)} |', '| --- ' * len(columns) + '|', sep='\n', flush=True)
    whole: dict[int, set[str]] = {}
    for name, draws in parts.items():
        figures = [_learn(draw(), arguments.vocab_size, unseen.values()) for draw in draws]
        for size in arguments.vocab_size:
            entries = whole.setdefault(size, figures[0][size][0])
            overlaps = [100 * len(entries & each[size][0]) / len(entries) for each in figures]
            rates = zip(*(each[size][1] for each in figures))
            cells = (_range(overlaps, 1), *(_range(each, 2) for each in rates))
            print(f'| {size} | {name} | {" | ".join(cells)} |', flush=True)


def _learn(
    lines: Iterable[str], sizes: Sequence[int], unseen: Iterable[Sequence[str]]
) -> dict[int, tuple[set[str], list[float]]]:
    """Returns the entries and the bytes per token of each unseen text, for each size."""
    learned = {}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, 'text')
        with open(text, 'w', encoding='utf-8', newline='\n') as file:
            file.writelines(lines)
        table = None
        for size in sizes:
            scheme, learning = learning_of(
                'bpe', {'pre_tokenizer': 'o200k', 'vocab_size': size}, 'vocab'
            )
            table = table or count_tokens(scheme, paths=[text])
            vocabulary = learn_from_table(scheme, learning, table).vocabulary
            tokenizer = tokenizer_of(vocabulary, scheme)
            learned[size] = (
                set(vocabulary.pieces),
                [_bytes_per_token(tokenizer, each) for each in unseen],
            )
    return learned


def _bytes_per_token(tokenizer, lines: Sequence[str]) -> float:
    ids = sum(map(len, tokenizer.encode_batch(lines)))
    return sum(len(line.encode()) for line in lines) / max(1, ids)


def _divide(path: Path, seen: list[str], unseen: list[str], rare: list[str]) -> None:
    """Adds the lines of a file to those that are learned from, or to those that are encoded."""
    rare_lines = 0
    with open(path, encoding='utf-8', newline='\n') as file:
        for number, line in enumerate(file):
            is_rare = _is_rare(line)
            rare_lines += is_rare
            if rare_lines % _EVERY_RARE if is_rare else number % _EVERY:
                seen.append(line)
            else:
                (rare if is_rare else unseen).append(line.rstrip('\n'))


def _prefix(lines: Sequence[str], size: int) -> Iterator[str]:
    for line in lines:
        size -= len(line.encode())
        if size < 0:
            return
        yield line


def _sample(lines: Sequence[str], share: float, seed: int) -> Iterator[str]:
    """Yields the lines whose number has a hash below the share, so that no draw is kept."""
    for number, line in enumerate(lines):
        if zlib.crc32(b'%d %d' % (seed, number)) < share * 2**32:
            yield line


def _is_rare(line: str) -> bool:
    if line.isascii():
        return False
    return 2 * len(_RARE.findall(line)) > len(_LETTER.findall(line))


def _range(values: Sequence[float], digits: int) -> str:
    mean = f'{statistics.mean(values):.{digits}f}'
    if max(values) - min(values) < 10**-digits:
        return mean
    return f'{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})'


if __name__ == '__main__':
    main()
