r"""WordPiece vocabularies as TensorFlow Text's learner gives them, in memory.

That tool counts every substring of every word, and of each, from the longest on, it takes the count
from all prefixes. What is left of a string is how often a word *ends* with it, from a place on
where a piece begins. So nothing but words and endings of words need be counted:

    words      walking 10   walked 10            first iteration: a piece may begin anywhere
    endings    alking 10  ing 10  ng 10  g 10  alked 10  ed 10  d 10   each a node of `word_endings`
    min-count  those of as many are pieces, `walking`, `##alking`, and so is each character
    next       words are cut into the longest pieces (`greedy_cutting`), endings counted at cuts only

`--selection kept` takes the count from prefixes of pieces that are kept alone, which is what the
tool's documentation says: then stems are pieces too. It counts all substrings (`kept_substrings`).
"""
