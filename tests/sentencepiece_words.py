"""The words that SentencePiece's trainer sees, by its own normalizer, for tests of the Unigram learner."""

import dataclasses
import io
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import sentencepiece

from tokcore.counts.token_table import TokenTable

METAS = ('<unk>', '<s>', '</s>')


def words_of(
    lines: Iterable[str], rule: str = 'nmt_nfkc', metas: Iterable[str] = METAS
) -> TokenTable:
    """Counts the words of lines as the trainer does; too long lines are left out."""
    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name=rule,
        add_dummy_prefix=True,
        escape_whitespaces=True,
        remove_extra_whitespaces=True,
    )
    names = re.compile('|'.join(map(re.escape, sorted(metas, key=len, reverse=True))))
    lines = [line for line in lines if 0 < len(line.encode()) <= 4192 and '\u2585' not in line]
    counts: Counter[str] = Counter()
    last: list[str] = []
    for sentence in normalizer.normalize(lines):
        words = re.findall('\u2581[^\u2581]*|^[^\u2581]+', names.sub('\x1f', sentence))
        counts.update(f'{word}\u2581' for word in words[:-1])
        counts.update(f'{word}\0' for word in words[-1:])
        last.append(words[-1] if words else '')
    i = 0
    while i < len(last):
        if last[i]:
            i += 1
        else:  # an empty sentence and the last one change places
            last[i] = last[-1]
            last.pop()
    table = TokenTable.from_items(counts.items())
    return dataclasses.replace(table, last_word=last[-1].encode())


def trained(lines: Iterable[str], vocab_size: int, **options) -> list[tuple[bytes, np.float32]]:
    """Returns the pieces and scores of SentencePiece's model without meta pieces, in its order."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, model_type='unigram',
        vocab_size=vocab_size, minloglevel=2, **options,
    )  # fmt: skip
    return pieces_of(sentencepiece.SentencePieceProcessor(model_proto=written.getvalue()))


def pieces_of(model: sentencepiece.SentencePieceProcessor) -> list[tuple[bytes, np.float32]]:
    """Returns the pieces and scores of a model without meta pieces."""
    return [
        (model.id_to_piece(i).encode(), np.float32(model.get_score(i)))
        for i in range(model.get_piece_size())
        if not (model.is_control(i) or model.is_unknown(i) or model.is_byte(i))
    ]
