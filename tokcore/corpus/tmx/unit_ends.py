"""Where translation units end in a stream of XML, whatever the pieces that it comes in.

Only well-formed XML is looked at (`well_formed`), so that it is enough to tell text from tags,
comments, CDATA sections, processing instructions and the document type: `<tu` within any of these, or
in the value of an attribute, is none.
"""

import functools

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only

SCAN = np.dtype(
    [
        ('state', np.int64),
        ('word', np.int64),  # of the tag's name, its last eight bytes
        ('depth', np.int64),  # of elements that are open
        ('deepest', np.int64),  # it has been
        ('in_unit', np.int64),
        ('unit_start', np.int64),  # of the unit that is open, or was last
        ('tag_start', np.int64),  # of the markup that is open, or was last
    ],
    align=True,
)
"""Where `find_unit_ends` goes on; offsets are those of the whole text. All 0 at the beginning."""

TEXT = 0
_OPENED, _NAME, _END_NAME, _TAG, _EMPTY, _END_TAG, _OTHER = range(1, 8)
"""States of tags: behind `<`, in a name, behind it, behind the `/` of an empty element."""

TU = 0x7475

_STATES = (
    'text', 'opened', 'name', 'end name', 'tag', 'empty', 'end tag', 'single', 'double', 'declared',
    'dash', 'comment', 'comment -', 'comment --', 'cdata', 'cdata ]', 'cdata ]]', 'instruction',
    'instruction ?', 'doctype', 'doctype single', 'doctype double',
)  # fmt: skip

_MOVES = {
    'text': {'<': 'opened'},
    'opened': {'/': 'end name', '!': 'declared', '?': 'instruction', '': 'name'},
    'name': {'>': 'text', '/': 'empty', ' ': 'tag'},
    'tag': {'>': 'text', '/': 'empty', "'": 'single', '"': 'double'},
    'empty': {'>': 'text'},
    'end name': {'>': 'text', ' ': 'end tag'},
    'end tag': {'>': 'text'},
    'single': {"'": 'tag'},
    'double': {'"': 'tag'},
    'declared': {'-': 'dash', '[': 'cdata', '': 'doctype'},
    'dash': {'': 'comment'},
    'comment': {'-': 'comment -'},
    'comment -': {'-': 'comment --', '': 'comment'},
    'comment --': {'': 'text'},  # two of them stand at the end of comments alone
    'cdata': {']': 'cdata ]'},
    'cdata ]': {']': 'cdata ]]', '': 'cdata'},
    'cdata ]]': {']': 'cdata ]]', '>': 'text', '': 'cdata'},
    'instruction': {'?': 'instruction ?'},
    'instruction ?': {'?': 'instruction ?', '>': 'text', '': 'instruction'},
    'doctype': {'>': 'text', "'": 'doctype single', '"': 'doctype double'},
    'doctype single': {"'": 'doctype'},
    'doctype double': {'"': 'doctype'},
}
"""By state, what follows on which byte: '' on any other (else none is left), a blank on white space."""


@functools.cache
def moves() -> np.ndarray:
    """Returns the state that follows each state on each byte: uint8[states, 256], read-only."""
    table = np.empty((len(_STATES), 256), np.uint8)
    for number, state in enumerate(_STATES):
        given = {byte: _STATES.index(following) for byte, following in _MOVES[state].items()}
        table[number] = given.pop('', number)
        if ' ' in given:
            table[number, [0x09, 0x0A, 0x0D, 0x20]] = given.pop(' ')
        for byte, following in given.items():
            table[number, ord(byte)] = following
    return read_only(table)


@kernel_without_allocation
def find_unit_ends(text, offset, moves, scan, ends):
    """Writes behind which bytes of a piece a unit ends; returns how many do.

    `text` uint8[...] is the piece, which begins at `offset` of the whole; `moves` are `moves()`, and
    `scan` (`SCAN`[1]) goes on with the piece. `ends` is int64[...] with room for a unit every 5 bytes.
    """
    at = scan[0]
    state, word = at['state'], at['word']
    count, place, size = 0, 0, len(text)
    while place < size:
        if state == TEXT:
            while place < size and text[place] != 0x3C:
                place += 1
            if place == size:
                break
            at['tag_start'] = offset + place
            word = 0
        byte = text[place]
        following = np.int64(moves[state, byte])
        place += 1
        if following == TEXT and state < _OTHER:
            if closes_unit(state, word, at):
                ends[count] = place
                count += 1
        elif following == _NAME or (following == _END_NAME and state == _END_NAME):
            word = word << 8 | np.int64(byte)
        state = following
    at['state'], at['word'] = state, word
    return count


@kernel_without_allocation
def closes_unit(state, word, at):
    """Heeds a tag that is whole, of which `state` was the last; returns whether a unit ends with it."""
    is_unit = word == TU
    if state == _END_NAME or state == _END_TAG:
        at['depth'] -= 1
        if is_unit and at['in_unit'] != 0:
            at['in_unit'] = 0
            return True
        return False
    if state == _EMPTY:
        if is_unit and at['in_unit'] == 0:
            at['unit_start'] = at['tag_start']
            return True
        return False
    at['depth'] += 1
    at['deepest'] = max(at['deepest'], at['depth'])
    if is_unit and at['in_unit'] == 0:
        at['in_unit'] = 1
        at['unit_start'] = at['tag_start']
    return False
