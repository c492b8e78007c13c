"""Kernels over whole translation units: where they are, and which segments are of the languages wanted.

The text is a block of `tmx_reading`: well-formed, and neither its beginning nor its end is within
anything but text or a unit's outside.
"""

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.corpus.tmx.unit_ends import TU

TUV, SEG = 0x747576, 0x736567
_XML_LANG, _LANG = 0x786D6C3A6C616E67, 0x6C616E67  # `xml:lang` and `lang`
_EXACT, _PREFIX = 4, 2
"""Of how well a variant's language fits; `xml:lang` adds one to it, and goes before `lang`."""


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
