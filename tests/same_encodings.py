"""A tokenizer of this project and one of `tokenizers` encode texts in the same way."""


def assert_same_encodings(ours, theirs, text):
    """Asserts that ids and offsets of a text are theirs, and the ids of a batch those of its texts."""
    expected = theirs.encode(text)
    assert ours.encode(text) == expected.ids
    assert ours.encode_with_offsets(text).offsets == expected.offsets
    assert ours.encode_batch([text] * 20) == [expected.ids] * 20
