"""Kernels over a stream of TMX: where translation units end, their segments and the text.

Only well-formed XML comes here, so it is enough to tell text from tags, comments, CDATA sections,
processing instructions and the document type. Units may be cut by the pieces of the stream. Text
has its markup taken out and its references replaced; a line break becomes a blank.
"""

import functools

import numpy as np

from tokcore.corpus.entities import _put_character, _read_reference
from tokcore.kernels.jit import kernel_without_allocation, read_only

_CODES = (0x627074, 0x657074, 0x6974, 0x7068, 0x7574)  # bpt, ept, it, ph, ut

TUV, SEG = 0x747576, 0x736567
_XML_LANG, _LANG = 0x786D6C3A6C616E67, 0x6C616E67  # `xml:lang` and `lang`
_EXACT, _PREFIX = 4, 2
"""Of how well a variant's language fits; `xml:lang` adds one to it, and goes before `lang`."""

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


@kernel_without_allocation
def decode_segments(text, segments, drops, found, starts, ends, undefined):
    """Writes the texts of segments one after another, a line feed before each.

    Args:
        text: uint8[...].
        segments: int64[rows, 2] in it; -1 for none, whose text is empty.
        drops: whether what is in codes of a native format is left out.
        found: uint8[...], written; room for what is in all segments and a byte for each.
        starts: int64[rows] in `found`, written.
        ends: int64[rows], likewise.
        undefined: int64[rows], written: where a reference is to nothing that XML knows; else -1.
    """
    size = 0
    for row in range(len(segments)):
        found[size] = 0x0A
        size += 1
        starts[row] = size
        undefined[row] = -1
        place, end = segments[row, 0], segments[row, 1]
        if place >= 0:
            size, undefined[row] = decode_segment(text[:end], place, drops, found, size)
        ends[row] = size


@kernel_without_allocation
def decode_segment(text, place, drops, found, size):
    """Writes a segment's text, which ends where `text` does; returns its end and what is undefined."""
    end = len(text)
    codes = 0  # of elements open within each other, of which the outermost is a code
    undefined = -1
    while place < end:
        byte = text[place]
        if byte == 0x3C:
            behind = markup_end(text, place)
            if text[place + 1] == 0x21 and text[place + 2] == 0x5B:
                if codes == 0:
                    size = put_text(text[place + 9 : behind - 3], found, size)
            elif text[place + 1] == 0x2F:
                codes -= codes > 0
            elif text[place + 1] != 0x21 and text[place + 1] != 0x3F and text[behind - 2] != 0x2F:
                codes += codes > 0 or (drops and is_code(name_of(text, place + 1)))
            place = behind
        elif byte == 0x26:
            character, behind = _read_reference(text, place + 1, end)
            if character < 0:
                undefined = place
                behind = place + 1
            elif codes == 0:
                broken = character == 0x0A or character == 0x0D
                size = _put_character(found, size, 0x20 if broken else character)
            place = behind
        else:
            if codes == 0:
                size = put_byte(text, place, found, size)
            place += 1
    return size, undefined


@kernel_without_allocation
def is_code(name):
    """Whether an element holds a code of a native format."""
    for code in _CODES:
        if name == code:
            return True
    return False


@kernel_without_allocation
def put_text(text, found, size):
    """Writes text without markup; returns where it ends."""
    for place in range(len(text)):
        size = put_byte(text, place, found, size)
    return size


@kernel_without_allocation
def put_byte(text, place, found, size):
    """Writes a byte, of a line break one blank; returns where it ends."""
    byte = text[place]
    if byte == 0x0A:
        if place > 0 and text[place - 1] == 0x0D:
            return size
        byte = 0x20
    elif byte == 0x0D:
        byte = 0x20
    found[size] = byte
    return size + 1


@kernel_without_allocation
def list_units(text, languages, sizes, units, segments):
    """Fills in the units of a block; returns how many there are.

    Args:
        text: uint8[...].
        languages: uint8[wanted, ...] in lower case.
        sizes: int64[wanted], of these.
        units: int64[..., 2], written: where a unit begins and ends.
        segments: int64[..., wanted, 2], written: what is in the segment of a language, -1 if none is.
    """
    size = len(text)
    count, place = 0, 0
    in_unit = False
    while place < size:
        if text[place] != 0x3C:
            place += 1
            continue
        start = place
        place = markup_end(text, start)
        if text[start + 1] == 0x21 or text[start + 1] == 0x3F:
            continue
        if text[start + 1] == 0x2F:
            if in_unit and name_of(text, start + 2) == TU:
                units[count, 1] = place
                count += 1
                in_unit = False
            continue
        name = name_of(text, start + 1)
        is_empty = text[place - 2] == 0x2F
        if name == TU and not in_unit:
            units[count, 0] = start
            units[count, 1] = place
            segments[count, :, :] = -1
            in_unit = not is_empty
            count += is_empty
        elif name == TUV and in_unit and not is_empty:
            place = list_variant(text, start, place, languages, sizes, segments[count])
    return count


@kernel_without_allocation
def list_variant(text, start, behind, languages, sizes, segments):
    """Takes the segment of a variant, whose tag is text[start:behind], for the languages it fits best.

    `segments` int64[wanted, 2] are what the unit has so far. Returns where the variant's segment ends,
    or the variant if it has none. How well a language fits is looked up again for each variant in what
    stands before its segment, so nothing has to be kept.
    """
    size = len(text)
    place = behind
    while place < size:
        if text[place] != 0x3C:
            place += 1
            continue
        tag = place
        place = markup_end(text, tag)
        if text[tag + 1] == 0x2F:
            if name_of(text, tag + 2) == TUV:
                return tag
            continue
        if text[tag + 1] == 0x21 or text[tag + 1] == 0x3F or name_of(text, tag + 1) != SEG:
            continue
        end = place
        if text[place - 2] != 0x2F:
            end = segment_end(text, place)
        for wanted in range(len(sizes)):
            fits = fitting(text, start, behind, languages[wanted, : sizes[wanted]])
            # The kind of fit is kept in the lowest bits of what stands for the start.
            if fits > 0 and (segments[wanted, 0] < 0 or fits > segments[wanted, 0] & 7):
                segments[wanted, 0] = place << 3 | fits
                segments[wanted, 1] = end
        return end
    return place


@kernel_without_allocation
def segment_end(text, place):
    """Where the segment that goes on at `place` ends: at its `</seg`."""
    size = len(text)
    while place < size:
        if text[place] != 0x3C:
            place += 1
        elif text[place + 1] == 0x2F and name_of(text, place + 2) == SEG:
            return place
        else:
            place = markup_end(text, place)
    return size


@kernel_without_allocation
def fitting(text, place, end, language):
    """How well the language of the tag text[place:end] fits one that is wanted; 0 if it does not."""
    best = 0
    while place < end and text[place] > 0x20 and text[place] != 0x3E:
        place += 1
    while place < end:
        while place < end and text[place] <= 0x20:
            place += 1
        word, name = 0, place
        while place < end and text[place] > 0x20 and text[place] != 0x3D:
            word = word << 8 | text[place]
            place += 1
        if place - name > 8:
            word = 0  # of a longer name the number has the last eight bytes alone
        while place < end and text[place] != 0x22 and text[place] != 0x27:
            place += 1
        if place >= end:
            return best
        quote = text[place]
        start = place + 1
        place = start
        while place < end and text[place] != quote:
            place += 1
        if word == _XML_LANG or word == _LANG:
            fits = same_language(text, start, place, language)
            if word == _XML_LANG:
                return fits
            best = fits
        place += 1
    return best


@kernel_without_allocation
def same_language(text, start, end, language):
    """Whether text[start:end] is a language, `_EXACT`, or one of its variants, `_PREFIX`; else 0."""
    size = len(language)
    if end - start < size:
        return 0
    for number in range(size):
        byte = text[start + number]
        if 0x41 <= byte <= 0x5A:
            byte |= 0x20
        if byte == 0x5F:
            byte = 0x2D
        if byte != language[number]:
            return 0
    if end - start == size:
        return _EXACT
    behind = text[start + size]
    return _PREFIX if behind == 0x2D or behind == 0x5F else 0


@kernel_without_allocation
def markup_end(text, place):
    """Where what begins with the `<` at `place` ends; the end of the text if it goes beyond it."""
    size = len(text)
    if place + 1 < size and text[place + 1] == 0x3F:
        return behind_bytes(text, place + 2, 0x3F, 1)
    if place + 3 < size and text[place + 1] == 0x21:
        if text[place + 2] == 0x2D:
            return behind_bytes(text, place + 4, 0x2D, 2)
        if text[place + 2] == 0x5B:
            return behind_bytes(text, place + 9, 0x5D, 2)
    quote = 0
    for end in range(place + 1, size):
        byte = text[end]
        if quote != 0:
            if byte == quote:
                quote = 0
        elif byte == 0x22 or byte == 0x27:
            quote = byte
        elif byte == 0x3E:
            return end + 1
    return size


@kernel_without_allocation
def behind_bytes(text, place, byte, least):
    """Where, from `place` on, so many of a byte and a `>` behind them end."""
    found = 0
    for end in range(place, len(text)):
        if text[end] == 0x3E and found >= least:
            return end + 1
        found = found + 1 if text[end] == byte else 0
    return len(text)


@kernel_without_allocation
def name_of(text, place):
    """The name of a tag from `place` on as a number of its last eight bytes."""
    word = 0
    while place < len(text):
        byte = text[place]
        if byte <= 0x20 or byte == 0x3E or byte == 0x2F:
            break
        word = word << 8 | byte
        place += 1
    return word


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
