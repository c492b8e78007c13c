"""WordPiece by slices of strings: what the model must be equal to."""


def plain_pieces(word, vocabulary, joiner='##', max_word_length=100):
    """The longest pieces from the left, or None where they do not spell all of a word."""
    if len(word) > max_word_length:
        return None
    known = {piece for piece in vocabulary if piece}
    found, place = [], 0
    while place < len(word):
        begins = [
            (joiner if place else '') + word[place:end] for end in range(len(word), place, -1)
        ]
        longest = next((piece for piece in begins if piece in known), None)
        if longest is None:
            return None
        found.append(longest)
        place += len(longest) - (len(joiner) if place else 0)
    return found


def plain_ids(words, vocabulary, joiner='##', max_word_length=100):
    """The ids of words, each by its longest pieces or the id of `[UNK]`."""
    last = {piece: id_ for id_, piece in enumerate(vocabulary)}
    return [
        last[piece]
        for word in words
        for piece in plain_pieces(word, vocabulary, joiner, max_word_length) or ['[UNK]']
    ]
