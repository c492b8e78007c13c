"""Text to tokens as in Tensor2Tensor's tokenizer; `t2t_scanning` does it for blocks of bytes.

A pre-tokenizer is a table from code point to class. A token is a maximal run of characters of one
class; a token that is exactly one space is dropped, unless it begins or ends the text, and comes
back between two alphanumeric tokens when they are joined. So joining restores any text.
"""

from collections.abc import Iterable

import numpy as np

from tokcore.text.unicode_tables import alphanumeric_table


def tokenize(text: str) -> list[str]:
    """Returns the tokens of a text: `'Hi, you 2'` gives `['Hi', ', ', 'you', '2']`.

    Equal to Tensor2Tensor's `tokenizer.encode` for every `str`, lone surrogates included.
    """
    code_points = np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), '<u4')
    classes = alphanumeric_table()[code_points]
    borders = (np.flatnonzero(classes[1:] != classes[:-1]) + 1).tolist()
    starts = [0, *borders]
    ends = [*borders, len(text)]
    last = len(text)
    return [
        token
        for start, end in zip(starts, ends)
        if (token := text[start:end]) and (token != ' ' or start == 0 or end == last)
    ]


def detokenize(tokens: Iterable[str]) -> str:
    """Returns the text whose tokens these are: `['Hi', ', ', 'you', '2']` gives `'Hi, you 2'`.

    One space is put between two tokens that both begin with a letter or number. Equal to
    Tensor2Tensor's `tokenizer.decode`, save that an empty token is a ValueError.
    """
    alphanumeric = alphanumeric_table()
    pieces = []
    after_word = False
    for token in tokens:
        if not token:
            raise ValueError('a token must have at least one character')
        word = bool(alphanumeric[ord(token[0])])
        if word and after_word:
            pieces.append(' ')
        pieces.append(token)
        after_word = word
    return ''.join(pieces)
