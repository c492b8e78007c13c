"""Readers take turns in one order of batches, and a run goes on with another number of them."""

import json

from written_dataset import listed

READERS = [1, 2, 3, 7, 16]


def dealt(shares):
    """The batches of readers in rounds, after checking that all have equally many."""
    assert len({len(share) for share in shares}) == 1
    return [batch for round_ in zip(*shares, strict=True) for batch in round_]


def check_rounds(batches, from_state, rows_in, dice, times=5, is_dropped=False, counts_rows=True):
    """Stops several readers after a round, and goes on with another number of them.

    Whole rounds are those of one reader; the rows after them are those of the last round, or left out.

    Args:
        batches: makes an iterator, of keyword arguments for readers.
        from_state: likewise, of a state.
        rows_in: lists the rows of batches without padding.
        dice: draws the numbers of readers and of rounds.
        times: how often it is done.
        is_dropped: whether rows are left out that fill no round.
        counts_rows: whether these are the rows that `left_out` counts.

    Returns the batches of one reader.
    """
    alone = batches()
    whole = [*map(listed, alone)]
    for _ in range(times):
        before, after = dice.choice(READERS), dice.choice(READERS)
        readers = [batches(num_readers=before, reader_index=k) for k in range(before)]
        rounds = dice.randint(0, len(whole) // before)
        shares = [[listed(next(reader)) for _ in range(rounds)] for reader in readers]
        assert dealt(shares) == whole[: rounds * before]
        [state] = {json.dumps(reader.state()) for reader in readers}
        state = json.loads(state)
        others = [from_state(state, num_readers=after, reader_index=k) for k in range(after)]
        found = dealt([[*map(listed, reader)] for reader in others])
        rest = whole[rounds * before :]
        cut = len(rest) // after * after
        last = rows_in(rest[cut:])
        left = len(last) if is_dropped or len(last) < after else 0
        assert found[:cut] == rest[:cut]
        assert rows_in(found[cut:]) == ([] if left else last)
        assert len(found) == cut + (after if last and not left else 0)
        if counts_rows:
            remainder = alone.left_out['remainder'] + left
            for reader in others:
                assert reader.left_out == alone.left_out | {'remainder': remainder}
                assert reader.state() == others[0].state()
    return whole
