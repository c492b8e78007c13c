"""A user's own filters, as a module of theirs."""


def without_odd_ones(source, target):
    """Drops pairs whose source has an odd number of characters; others go by halves."""
    if len(source) % 2:
        return None
    if ' ' not in source or len(target) < 2:
        return source, target.upper()
    first, rest = source.split(' ', 1)
    return [(first, target[:1]), (rest, target[1:])]
