"""Pieces by the plain words of the rules: every substring counted, from the longest on."""


def plain_pieces(words, min_count, *, iterations, joiner, special_tokens, keeping):
    """Returns the pieces of words (with counts) that were chosen already.

    `keeping` says whether only pieces that are kept take their count from their prefixes.
    """
    characters = sorted({each for word in words for each in word})
    pieces = {}
    for iteration in range(iterations):
        counts = {}
        for word, count in words.items():
            starts = range(len(word))
            if iteration:
                starts = cut(word, pieces, joiner)
            for start in starts:
                for end in range(start + 1, len(word) + 1):
                    key = (start > 0, word[start:end])
                    counts[key] = counts.get(key, 0) + count
        kept = {}
        for key in sorted(counts, key=lambda key: -len(key[1])):
            is_kept = counts[key] >= min_count
            if is_kept:
                kept[(joiner if key[0] else '') + key[1]] = counts[key]
            if is_kept or not keeping:
                for end in range(1, len(key[1])):
                    counts[key[0], key[1][:end]] -= counts[key]
        # A word and an ending with its joiner may be spelt alike; the ending is shorter.
        for key, count in counts.items():
            if key[0] and count >= min_count:
                kept[joiner + key[1]] = count
        for each in characters:
            kept.setdefault(each, 1)
            kept.setdefault(joiner + each, 1)
        pieces = kept
    ranked = sorted(pieces, key=lambda piece: (-pieces[piece], piece))
    return tuple(dict.fromkeys([*special_tokens, *characters, *ranked]))


def cut(word, pieces, joiner):
    """Where the longest pieces of a word begin."""
    starts = []
    place = 0
    while place < len(word):
        starts.append(place)
        mark = joiner if place else ''
        place = max(
            end for end in range(place + 1, len(word) + 1) if mark + word[place:end] in pieces
        )
    return starts
