"""Tensor2Tensor's subwords: the encoder, and the learner, also in partitions for many workers.

For many workers the learner is partitioned into ranges of suffixes. The suffixes of a batch of
tokens are listed (`SuffixRows`), sorted, packed as rows (`suffix_tables`), and swept range by range. The
kernels take their arrays in tuples:

    SuffixRows   text        t h e _ t h e n _       positions, lengths: where each suffix is,
                                                     tokens: the token whose count is its weight

    _Partition   data        then_ │ the_ │ t ...    rows in descending order; borders, min-counts
    _Sweep       path        t  h  e  n  _           the last string read
                 nodes             │     └ depth 5   the open nodes on the path, with the weight
                                   below └ depth 3         them and how much of it is selected
                 cursor                              position, size, top, ...: a record
                 lower_sums, upper_sums              of nodes that extend into other ranges
    RowWriter    out         then_ │ the_ ...        the selected strings; another has the frequent
                 ones state                               used, rows, added, common: a record

A kernel returns when a writer is full; its caller continues with a larger array. The records hold
where it stopped.
"""
