"""Unigram models of a text by tokbeam, SentencePiece and tokenizers: lines of Markdown tables.

    python -m tests.benchmarks.unigram_models corpus.txt --size 32000
    python -m tests.benchmarks.unigram_models corpus.txt --size 8000 --unseen

Each line is measured in a process of its own. tokbeam's time is that of counting and of learning. Its
model must be SentencePiece's, or this ends with an error. With `--unseen` every 50th line is not
learned from, and the models segment these lines; a line is of `spm_train --use_sparse_pruning` if that
program is there.
"""

import argparse
import itertools
import json
import math
import multiprocessing
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import sentencepiece
import tokenizers
from tokenizers.trainers import UnigramTrainer

from pipelines.cli.main import main as tokbeam
from tokcore.foreign_tokenizers.sentencepiece import read_model

THREADS = 16
"""Partial sums of the learners; SentencePiece has so many by default."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('text', type=Path)
    parser.add_argument('--size', type=int, default=32_000)
    parser.add_argument('--bytes', type=int, default=-1, help='of the text to read (default: all)')
    parser.add_argument('--unseen', action='store_true', help='compare models on every 50th line')
    parser.add_argument('--workers', type=int, default=2, help='threads of tokbeam')
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, given.text.open('rb') as file:
        lines = file.read(given.bytes).decode('utf-8', 'replace').split('\n')
        unseen = (
            [lines.pop(number) for number in range(len(lines) - 1, -1, -50)] if given.unseen else []
        )
        text = Path(folder, 'text')
        text.write_text('\n'.join(lines) + '\n', encoding='utf-8', newline='')
        runs = [(_tokbeam, given.workers), (_sentencepiece, None)]
        if given.unseen:
            runs += [(_sparse, None)] * bool(shutil.which('spm_train')) + [(_tokenizers, None)]
            print('| model | tokens | bytes a token | bits a byte |', '| --- ' * 4 + '|', sep='\n')
        else:
            print('| learner | s of a core | s | MB |', '| --- ' * 4 + '|', sep='\n')
        pieces = []
        for run, argument in runs:
            model = Path(folder, f'{run.__name__}{argument}')
            with multiprocessing.get_context('spawn').Pool(1) as pool:
                name, *figures = pool.apply(_measured, (run, text, model, given.size, argument))
            if given.unseen:
                figures = _segmented(unseen, model)
            print(
                '|',
                ' | '.join([name, *(f'{each:,.3f}'.removesuffix('.000') for each in figures)]),
                '|',
                flush=True,
            )
            if run is not _tokenizers:
                pieces.append(read_model(model.read_bytes(), str(model))[0])
    if pieces[0] != pieces[1]:
        raise SystemExit('tokbeam and SentencePiece have learned different models')


def _measured(run, text: Path, model: Path, size: int, argument) -> list:
    started = time.perf_counter(), time.process_time()
    name = run(text, model, size, argument)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return [name, time.process_time() - started[1], time.perf_counter() - started[0], peak]


def _tokbeam(text: Path, model: Path, size: int, workers: int) -> str:
    arguments = ['vocab', '--text', text, '--scheme', 'unigram', '--vocab-size', size]
    arguments += ['--num-threads', THREADS, '--max-sentence-length', 1 << 20]
    arguments += ['--workers', workers, '--output', model]
    if tokbeam([*map(str, arguments)]):
        raise RuntimeError('tokbeam failed')
    return f'tokbeam, {workers} threads'


def _sentencepiece(text: Path, model: Path, size: int, _: None) -> str:
    sentencepiece.SentencePieceTrainer.train(**_options(text, model, size))
    Path(f'{model}.model').rename(model)
    return 'SentencePiece'


def _sparse(text: Path, model: Path, size: int, _: None) -> str:
    """Only the program has this option, not the Python package."""
    options = {**_options(text, model, size), 'use_sparse_pruning': 'true'}
    subprocess.run(
        ['spm_train', *(f'--{key}={value}' for key, value in options.items())], check=True
    )
    Path(f'{model}.model').rename(model)
    return 'SentencePiece, `--use_sparse_pruning`'


def _options(text: Path, model: Path, size: int) -> dict[str, object]:
    return {
        'input': text, 'model_prefix': model, 'model_type': 'unigram', 'vocab_size': size,
        'num_threads': THREADS, 'max_sentence_length': 1 << 20, 'minloglevel': 2,
    }  # fmt: skip


def _tokenizers(text: Path, model: Path, size: int, _: None) -> str:
    """Trains with the normalizer and the pre-tokenizer of tokbeam's file."""
    [folder] = text.parent.glob('_tokbeam*.tokenizer')
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / 'tokenizer.json'))
    trainer = UnigramTrainer(vocab_size=size, special_tokens=['<unk>'], unk_token='<unk>')
    tokenizer.train([str(text)], trainer)
    tokenizer.save(str(model))
    return 'tokenizers'


def _segmented(lines: list[str], model: Path) -> list[float]:
    """Returns the tokens of lines, bytes a token, and the bits of the best ways for each byte."""
    if model.read_bytes()[:1] == b'{':
        tokenizer = tokenizers.Tokenizer.from_file(str(model))
        scores = [score for _, score in json.loads(model.read_text())['model']['vocab']]
        ids = [encoded.ids for encoded in tokenizer.encode_batch(lines, add_special_tokens=False)]
    else:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        scores = [processor.get_score(id_) for id_ in range(processor.get_piece_size())]
        ids = processor.encode(lines)
    scores[0] = min(scores) - 10  # of an unknown character
    tokens = [*itertools.chain.from_iterable(ids)]
    size = sum(len(line.encode()) for line in lines)
    bits = -sum(scores[token] for token in tokens) / math.log(2)
    return [len(tokens), size / len(tokens), bits / size]


if __name__ == '__main__':
    main()
