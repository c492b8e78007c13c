"""Kernels over lines of SGM: which are segments, and where their text is."""

from tokcore.compiled.compilation import kernel_without_allocation

# What `find_segments` says of a line.
MARKUP = 0
SEGMENT = 1
OUTSIDE = 2


@kernel_without_allocation
def find_segments(text, starts, ends, segment_starts, segment_ends, kinds):
    """Fills in of each line what it is, and where the text of a segment begins and ends.

    Lines have no white space around them. `kinds` uint8[lines]: `SEGMENT`, `MARKUP` without any
    text, or `OUTSIDE` where there is text behind a tag, before one or without any.
    """
    for line in range(len(starts)):
        start, end = starts[line], ends[line]
        segment_starts[line] = end
        segment_ends[line] = end
        if is_segment(text, start, end):
            kinds[line] = SEGMENT
            while text[start] != 0x3E:
                start += 1
            # `<seg</seg>` begins behind where it ends.
            segment_starts[line] = min(start + 1, end)
            segment_ends[line] = max(segment_starts[line], end - 6)
        elif has_text(text, start, end):
            kinds[line] = OUTSIDE
        else:
            kinds[line] = MARKUP


@kernel_without_allocation
def is_segment(text, start, end):
    """Whether text[start:end] begins with `<seg` and ends with `</seg>`."""
    if end - start < 10:
        return False
    begins = (
        text[start] == 0x3C
        and text[start + 1] == 0x73
        and text[start + 2] == 0x65
        and text[start + 3] == 0x67
    )
    return (
        begins
        and text[end - 6] == 0x3C
        and text[end - 5] == 0x2F
        and text[end - 4] == 0x73
        and text[end - 3] == 0x65
        and text[end - 2] == 0x67
        and text[end - 1] == 0x3E
    )


@kernel_without_allocation
def has_text(text, start, end):
    """Whether text[start:end] has anything but tags and ASCII's white space between them."""
    in_tag = False
    for position in range(start, end):
        byte = text[position]
        if in_tag:
            in_tag = byte != 0x3E
        elif byte == 0x3C:
            in_tag = True
        elif byte != 0x20 and not 0x09 <= byte <= 0x0D:
            return True
    return False
