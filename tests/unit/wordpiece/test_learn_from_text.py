"""A vocabulary of one's own text in one call: words are counted and handed to the learner."""

import collections
import gzip
import re

import pytest

from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.wordpiece import learn_from_text
from tokcore.wordpiece.learn_from_text import learn_wordpiece_vocabulary
from tokcore.wordpiece.learning.wordpiece_options import WordPieceOptions
from tokcore.wordpiece.wordpiece_scheme import WordPieceScheme

TEXTS = [
    'Der Fluß fließt,\nund der Stein bleibt.',
    '  wer geht, der fließt nicht; wer bleibt, bleibt ',
    '字字 und 字',
    '',
    'Größe und große Flüsse',
] * 30

SMALL = {'vocab_size': 60, 'min_count_range': (1, 1000)}


def learned(texts, scheme=WordPieceScheme(), **options):
    """The learner's own answer for the words that plain Python finds."""
    words = collections.Counter(word for text in texts for word in scheme.tokens(text))
    table = TokenTable.from_items(words.items())
    return scheme.learn(table, WordPieceOptions(**options), lambda *_: None).vocabulary.pieces


def test_it_is_what_the_learner_gives_for_the_words_of_the_texts():
    found = learn_wordpiece_vocabulary(TEXTS, **SMALL)
    assert found.pieces == learned(TEXTS, **SMALL)
    assert found.pieces[:5] == ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
    assert {'bleibt', 'der', '字'} < set(found.pieces)


def test_words_are_found_as_asked_for():
    options = {'lower_case': False, 'strip_accents': True, 'split_cjk': False}
    found = learn_wordpiece_vocabulary(TEXTS, **options, **SMALL)
    assert found.pieces == learned(TEXTS, WordPieceScheme.of(**options), **SMALL)
    assert {'D', '##字'} < set(found.pieces)


def test_files_of_lines_are_texts_too(tmp_path):
    plain, packed = tmp_path / 'one.txt', tmp_path / 'two.txt.gz'
    plain.write_text('\n'.join(TEXTS[:70]))
    packed.write_bytes(gzip.compress('\n'.join(TEXTS[70:]).encode()))
    expected = learned(TEXTS, **SMALL)
    assert learn_wordpiece_vocabulary(paths=[plain, str(packed)], **SMALL).pieces == expected
    assert learn_wordpiece_vocabulary(TEXTS[70:], paths=[plain], **SMALL).pieces == expected


def test_it_does_not_matter_how_many_texts_are_counted_at_once(monkeypatch):
    expected = learn_wordpiece_vocabulary(TEXTS, **SMALL).pieces
    for size in (1, 70):
        monkeypatch.setattr(learn_from_text, '_BLOCK_BYTES', size)
        assert learn_wordpiece_vocabulary(iter(TEXTS), **SMALL).pieces == expected


def test_special_tokens_are_the_first_pieces():
    found = learn_wordpiece_vocabulary(TEXTS, special_tokens=['[UNK]', 'der'], **SMALL)
    assert found.pieces[:2] == ('[UNK]', 'der')
    assert found.pieces == learned(TEXTS, special_tokens=('[UNK]', 'der'), **SMALL)


def test_what_is_no_text_is_refused_by_its_place(tmp_path):
    with pytest.raises(InputError, match='^text 1 has a lone surrogate at character 2'):
        learn_wordpiece_vocabulary(['a', 'bc\udc80'], **SMALL)
    path = tmp_path / 'bad.txt'
    path.write_bytes(b'good\nb\xffd\n')
    with pytest.raises(InputError, match=re.escape(str(path)) + '.* UTF-8'):
        learn_wordpiece_vocabulary(paths=[path], **SMALL)
    with pytest.raises(InputError, match='nothing.txt cannot be read'):
        learn_wordpiece_vocabulary(paths=[tmp_path / 'nothing.txt'], **SMALL)
    with pytest.raises(TypeError, match='put a single one in a list'):
        learn_wordpiece_vocabulary('a text', **SMALL)
