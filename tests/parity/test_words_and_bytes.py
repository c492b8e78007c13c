"""Ids of words and bytes are those of Tensor2Tensor's encoders."""

from hypothesis import given
from hypothesis import strategies as st

from tokcore.tokenizers import ByteTokenizer, WordTokenizer
from tokcore.word.scheme import WordVocabulary

WORDS = ['the', 'cat', 'é', '字', 'a_b']
TEXTS = st.lists(st.one_of(st.sampled_from([*WORDS, 'unknown', '\t']), st.text(max_size=5))).map(
    ' '.join
)


def test_words(t2t_text_encoder):
    original = t2t_text_encoder.TokenTextEncoder(
        None, vocab_list=['UNK', *WORDS], replace_oov='UNK', num_reserved_ids=2
    )
    vocabulary = WordVocabulary(['<pad>', '<EOS>', 'UNK', *WORDS])
    tokenizer = WordTokenizer(vocabulary, split='unicode')

    @given(TEXTS)
    def check(text):
        ids = tokenizer.encode(text)
        assert ids == original.encode(text)
        assert tokenizer.decode(ids) == original.decode(ids)

    check()


def test_files_of_words(t2t_text_encoder, tmp_path):
    """Words that the original reads from a file have its ids: white space at ends of lines is dropped."""
    path = tmp_path / 'words.txt'
    space = st.sampled_from(['', '', ' ', '\t', '\r', '\u3000', '\xa0 ', '\x85'])
    lines = st.lists(
        st.tuples(space, st.sampled_from([*WORDS, "it's", '<a>']), space),
        unique_by=lambda line: line[1],
    )

    @given(lines, TEXTS)
    def check(lines, text):
        path.write_text('UNK\n' + ''.join(f'{"".join(line)}\n' for line in lines), newline='')
        original = t2t_text_encoder.TokenTextEncoder(str(path), replace_oov='UNK')
        tokenizer = WordTokenizer.load(path, split='unicode')
        ids = tokenizer.encode(text)
        assert ids == original.encode(text)
        assert tokenizer.decode(ids) == original.decode(ids)

    check()


def test_bytes(t2t_text_encoder):
    original, tokenizer = t2t_text_encoder.ByteTextEncoder(), ByteTokenizer()

    @given(st.text(st.characters(exclude_categories=['Cs'])))
    def check(text):
        ids = tokenizer.encode(text)
        assert ids == original.encode(text)
        assert tokenizer.decode(ids) == original.decode(ids)

    check()
