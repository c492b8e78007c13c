"""The survey of tokens."""

import numpy as np
from hypothesis import given

from tokcore.kernels.jit import read_only
from tokcore.subword.segmenting import Surveyor, add_surveys

from .test_segmenting import TOKENS, escape


@given(TOKENS, TOKENS)
def test_surveys_of_parts_add_up(one, other):
    surveys = []
    for tokens in (one, other):
        surveyor = Surveyor(0, 9)
        data = read_only(np.frombuffer(''.join(tokens).encode(), np.uint8))
        offsets = np.cumsum([0, *(len(token.encode()) for token in tokens)]).astype(np.int64)
        counts = np.array(list(tokens.values()), np.int64)
        surveyor.add(data, read_only(offsets), read_only(counts))
        surveys.append(surveyor.result())
    survey = add_surveys(surveys)
    items = [*one.items(), *other.items()]
    assert survey.alphabet == ''.join(sorted(set().union(*one, *other)))
    assert survey.tokens == len(items)
    assert survey.characters == sum(len(escape(token)) for token, _ in items)
    assert survey.weight == sum(len(escape(token)) * count for token, count in items)
    assert survey.largest_count == sum((len(token.encode()) + 1) * count for token, count in items)
    assert survey.predicted_bytes(0) == survey.sample.nbytes
