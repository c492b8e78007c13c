"""The best mixture of corpora for one vocabulary: exactly, and by a regression over small proxies.

    python -m tests.benchmarks.mixtures docs.txt enzh.zh poetry.txt --plot docs/mixtures.svg

The exact answer: for each mixture of a grid, a vocabulary is learned from the tables of all text,
and every 100th line is encoded, from which nothing is learned. The regression does as TReX does
(arXiv 2601.13588): proxies are learned from a sample of the text, by random mixtures, and the tokens
per byte of each corpus are fitted as a quadratic function of the weights. TReX takes LightGBM, for
which 20 proxies are too few. A mixture is good if the mean over the corpora of tokens per byte is
small. A vocabulary is byte-level BPE with the pattern of o200k.
"""

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tokcore.counts.tables import merge_tables, scale_table
from tokcore.counts.token_table import TokenTable
from tokcore.counts.weights import factors_of_tables
from tokcore.learn import count_tokens, learn_from_table, learning_of
from tokcore.tokenizers import tokenizer_of

_EVERY = 100
_SAMPLED = 50
_PROXIES = 20
_SEED = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('corpora', nargs=3, type=Path)
    parser.add_argument('--vocab-size', type=int, default=8192)
    parser.add_argument('--steps', type=int, default=10, help='of each weight, from 0 to 1')
    parser.add_argument('--plot', type=Path)
    arguments = parser.parse_args()
    learner = _Learner(arguments.vocab_size, arguments.corpora)
    grid = np.array([*_simplex(arguments.steps)]) / arguments.steps
    print(f'{len(grid)} mixtures, and {_PROXIES} proxies', flush=True)
    started = time.process_time()
    exact = np.array([learner.tokens_per_byte(learner.whole, each) for each in grid])
    exact_seconds = time.process_time() - started
    started = time.process_time()
    proxies = np.random.default_rng(_SEED).dirichlet(np.ones(3), _PROXIES).round(3)
    measured = np.array([learner.tokens_per_byte(learner.sample, each) for each in proxies])
    proxy_seconds = time.process_time() - started
    predicted = _terms(grid) @ np.linalg.lstsq(_terms(proxies), measured, rcond=None)[0]
    names = [path.name for path in arguments.corpora]
    columns = ('mixture', *(f'weight of {name}' for name in names), *names, 'mean')
    print(f'| {" | ".join(columns)} |', '| --- ' * len(columns) + '|', sep='\n')
    uniform = learner.tokens_per_byte(learner.whole, np.full(3, 1 / 3).round(6))
    best, chosen = exact.mean(1).argmin(), predicted.mean(1).argmin()
    rows = [
        ('best', grid[best], exact[best]),
        ('of the regression', grid[chosen], exact[chosen]),
        ('as the regression predicts it', grid[chosen], predicted[chosen]),
        ('equal weights', np.full(3, 1 / 3), uniform),
        ('files as they are', learner.sizes / learner.sizes.sum(), learner.as_it_is()),
    ]
    for name, weights, tokens in rows:
        cells = (*(f'{each:.2f}' for each in weights), *(f'{1 / each:.3f}' for each in tokens))
        print(f'| {name} | {" | ".join(cells)} | {1 / tokens.mean():.3f} |')
    errors = np.abs(predicted / exact - 1)
    print(
        f'errors of the prediction: mean {100 * errors.mean(0).round(4)} %, largest '
        f'{100 * errors.max(0).round(4)} %; processor time: exact {exact_seconds:.0f} s, '
        f'proxies {proxy_seconds:.0f} s'
    )
    if arguments.plot:
        _plot(arguments.plot, names, grid, 1 / exact, 1 / predicted)


class _Learner:
    """The tables of the corpora and of their samples, and the lines that are not in them."""

    def __init__(self, vocab_size: int, paths: Sequence[Path]):
        options = {'pre_tokenizer': 'o200k', 'vocab_size': vocab_size}
        self._scheme, self._learning = learning_of('bpe', options, 'vocab')
        lines = [path.read_text(encoding='utf-8').split('\n') for path in paths]
        self._unseen = [each[::_EVERY] for each in lines]
        for each in lines:
            del each[::_EVERY]
        self.whole = [count_tokens(self._scheme, each) for each in lines]
        self.sample = [count_tokens(self._scheme, each[::_SAMPLED]) for each in lines]
        self.sizes = np.array([table.text_bytes for table in self.whole])

    def tokens_per_byte(self, tables: Sequence[TokenTable], weights: np.ndarray) -> np.ndarray:
        """Learns from a mixture; returns the tokens per byte of each corpus."""
        mixed = [(table, f'{weight:.6f}') for table, weight in zip(tables, weights) if weight]
        factors = factors_of_tables([table.text_bytes for table, _ in mixed], [w for _, w in mixed])
        return self._encoded(
            merge_tables(scale_table(table, factor) for (table, _), factor in zip(mixed, factors))
        )

    def as_it_is(self) -> np.ndarray:
        """Learns from the files without weights."""
        return self._encoded(merge_tables(self.whole))

    def _encoded(self, table: TokenTable) -> np.ndarray:
        vocabulary = learn_from_table(self._scheme, self._learning, table).vocabulary
        tokenizer = tokenizer_of(vocabulary, self._scheme)
        ids = [sum(map(len, tokenizer.encode_batch(each))) for each in self._unseen]
        return np.array(ids) / [sum(len(line.encode()) for line in each) for each in self._unseen]


def _simplex(steps: int) -> Iterator[tuple[int, int, int]]:
    for first, second in itertools.product(range(steps + 1), repeat=2):
        if first + second <= steps:
            yield first, second, steps - first - second


def _terms(weights: np.ndarray) -> np.ndarray:
    """Returns the terms of a quadratic function of weights whose sum is 1: float[n, 6]."""
    first, second, _ = weights.T
    return np.stack([first**0, first, second, first**2, second**2, first * second], 1)


def _plot(
    path: Path, names: Sequence[str], grid: np.ndarray, exact: np.ndarray, predicted: np.ndarray
) -> None:
    """Draws the bytes per token of the first two corpora, exact and predicted."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    axes.scatter(*exact[:, :2].T, c=grid[:, 2], cmap='viridis', label='exact')
    axes.scatter(
        *predicted[:, :2].T, marker='x', color='tab:red', linewidth=0.8, label='regression'
    )
    axes.set(
        xlabel=f'bytes per token, {names[0]}',
        ylabel=f'bytes per token, {names[1]}',
        title=f'Colour: weight of {names[2]}, from 0 (dark) to 1',
    )
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={'Date': None})
    pyplot.close(figure)


if __name__ == '__main__':
    main()
