"""The learner cut into ranges of suffixes, for many workers.

Suffixes are listed in a batch of tokens (`SuffixRows`), sorted, packed as rows (`suffix_tables`),
and swept range by range. Kernels take what they read and what they change in tuples:

    SuffixRows   text        t h e _ t h e n _       places, lengths: where each suffix stands,
                                                     owners: the token whose count it weighs

    _Partition   data        then_ │ the_ │ t ...    rows in descending order; borders, min-counts
    _Sweep       path        t  h  e  n  _           the last string read
                 nodes             │     └ depth 5   those begun on the path, with what they weigh
                                   └ depth 3         and what is taken of it
                 cursor                              place, size, top, ...: a record
                 lower_sums, upper_sums              of nodes that other ranges have a part in
    RowWriter    out         then_ │ the_ ...        what is kept; another writes what is cut
                 state                               used, rows, added, common: a record

A kernel that runs out of room in a writer says so; its caller goes on with a larger array. The
records keep where it was.
"""
