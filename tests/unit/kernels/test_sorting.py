"""Tokens are sorted as Python sorts bytes."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.sorting import sort_tokens

SIMILAR = st.tuples(
    st.sampled_from([b'', b'\0', b'sevenseven', b'\xff' * 14]), st.binary(max_size=9)
)


@given(st.sets(st.binary(max_size=30) | SIMILAR.map(b''.join), max_size=300).map(list))
@example([])
@example([b'\0' * size for size in range(40)][::-1])
@example([b'fourteen bytes' + bytes([byte]) for byte in range(255, -1, -1)])
def test_tokens_are_sorted_by_their_bytes(tokens):
    data = np.frombuffer(b''.join(tokens), np.uint8)
    order = sort_tokens(data, row_offsets([len(token) for token in tokens]))
    assert [tokens[index] for index in order] == sorted(tokens)
