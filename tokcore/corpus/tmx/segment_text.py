"""Kernels that make text of segments: markup is taken out, references become characters.

A line break is a blank: a segment is one line wherever it is read, and XML breaks lines as it likes.
"""

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.corpus.markup.character_references import put_character, read_reference
from tokcore.corpus.tmx.units import markup_end, name_of

_CODES = (0x627074, 0x657074, 0x6974, 0x7068, 0x7574)  # bpt, ept, it, ph, ut


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
            character, behind = read_reference(text, place + 1, end)
            if character < 0:
                undefined = place
                behind = place + 1
            elif codes == 0:
                broken = character == 0x0A or character == 0x0D
                size = put_character(found, size, 0x20 if broken else character)
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
