r"""Lines stripped at both ends, with an inner '\r' kept, and what is no UTF-8."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.text.sides import Side
from tokcore.text.whitespace.stripped_lines import STRIPPED_LINES

LINES = st.lists(
    st.one_of(
        st.text(st.one_of(st.characters(exclude_categories=['Cs']), st.sampled_from(' \t\r\x85\u3000'))).map(str.encode),
        st.binary(max_size=12).filter(lambda line: b'\n' not in line),
    ),
    max_size=8,
)  # fmt: skip


@given(LINES)
@settings(deadline=None)
def test_any_lines(lines):
    lines = [line.replace(b'\n', b'') for line in lines]
    text = np.frombuffer(b''.join(line + b'\n' for line in lines), np.uint8)
    ends = np.cumsum([len(line) + 1 for line in lines], dtype=np.int64) - 1
    starts = ends - [len(line) for line in lines]
    found = STRIPPED_LINES.apply(Side(text, starts, ends))
    side = found.side
    for row, line in enumerate(lines):
        rest = side.text[side.starts[row] : side.ends[row]].tobytes()
        try:
            assert rest == line.decode().strip().encode()
        except UnicodeDecodeError as error:
            assert found.damages[row] == starts[row] + error.start and rest == b''
        else:
            assert row not in found.damages
