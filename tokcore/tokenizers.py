"""Tokenizers for use from Python: text to ids or pieces, and back.

`learn_wordpiece_vocabulary` learns a WordPiece vocabulary of texts and files in one call.
"""

from __future__ import annotations

import functools
import os
import pathlib
import secrets
import typing
import unicodedata
from collections.abc import Iterable, Iterator

import numpy as np

from tokcore.bpe.added_tokens import finder, matched_tokens, row_encoder
from tokcore.bpe.codes import CodesSegmenter
from tokcore.bpe.files import AnyVocabulary, parse_bpe_file
from tokcore.bpe.scheme import SCHEME as BPE_SCHEME
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.byte.scheme import SCHEME as BYTE_SCHEME
from tokcore.corpus.corpus import ITEM_BYTES, CorpusFile, Split
from tokcore.corpus.formats import index_range, index_ranges, plan_items, read_blocks
from tokcore.corpus.plain_text import PlainText
from tokcore.corpus.storage import compression_of
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.tables import BlockCounter
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES, RowEncoder, SharedEncoder
from tokcore.encoding.vocabulary import read_vocabulary_file
from tokcore.errors import InputError
from tokcore.regular_files import open_regular
from tokcore.text.rows import Side
from tokcore.word.scheme import (
    Unknown,
    WordEncodingOptions,
    WordScheme,
    WordVocabulary,
    parse_words,
)
from tokcore.wordpiece.options import SPECIAL_TOKENS, WordPieceOptions
from tokcore.wordpiece.scheme import WordPieceEncodingOptions, WordPieceScheme
from tokcore.wordpiece.vocabulary import WordPieceVocabulary, parse_pieces

_Form = typing.Literal['NFC', 'NFD', 'NFKC', 'NFKD']

_BLOCK_BYTES = 1 << 20
"""Bytes of texts that are counted together, so that a call costs little for each text."""


class BpeTokenizer:
    """Encodes as Hugging Face's `tokenizers` does with the same file; threads can share it.

    Example: with a file whose merges are `t h` and `th e`, `tokenize('the')` gives `['the']`.
    """

    def __init__(self, vocabulary: AnyVocabulary, *, allow_special_tokens: bool = False):
        """Takes a vocabulary.

        Args:
            vocabulary: of any kind; codes have ids if there is a list of their pieces.
            allow_special_tokens: whether `<|endoftext|>` in text is that token, as in `tokenizers`.

        Raises InputError if an added token has options that are not supported.
        """
        self.vocabulary = vocabulary
        self._allow = allow_special_tokens
        self._scheme = BPE_SCHEME.configured_for(vocabulary)
        self._template = self._scheme.template(vocabulary)
        self._find = None
        self._form: _Form | None = None
        if isinstance(vocabulary, BpeVocabulary):
            self._form = typing.cast('_Form | None', vocabulary.parts.form)
            before, _ = matched_tokens(vocabulary, allow_special_tokens)
            self._find = finder(before) if self._form else None
        self._encoder = SharedEncoder(functools.partial(self.row_encoder, cache_bytes=0))

    @classmethod
    def load(cls, path: str | os.PathLike, allow_special_tokens: bool = False) -> BpeTokenizer:
        """Reads a tokenizer.json, a vocab.json or merges.txt with the other beside it, or codes.

        Raises InputError if the file cannot be read, is none of these, or has options with which
        text would not be encoded exactly.
        """
        vocabulary = parse_bpe_file(read_vocabulary_file(path), os.fspath(path))
        return cls(vocabulary, allow_special_tokens=allow_special_tokens)

    def save(self, path: str | os.PathLike) -> None:
        """Writes tokenizer.json, or codes; if it fails, the path is unchanged."""
        data = self.vocabulary.dump()
        path = pathlib.Path(path)
        temporary = path.with_name(f'.{path.name}.{secrets.token_hex(8)}')
        try:
            temporary.write_bytes(data)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.vocabulary.vocab_size

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> RowEncoder:
        """Returns an encoder of blocks of normalized rows, for one thread; see `RowEncoder`."""
        if isinstance(self.vocabulary, BpeVocabulary):
            return row_encoder(
                self._scheme.pre_tokenizer, self.vocabulary, self._allow, cache_bytes,
                is_original_text=self._form is None,
            )  # fmt: skip
        return RowEncoder(self._scheme.pre_tokenizer, self.vocabulary.model, cache_bytes)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Returns the ids of a text, between those of the file's template unless they are not wanted.

        Raises InputError for codes without ids, ValueError for a piece that has none.
        """
        before, after = self._template if add_special_tokens else ((), ())
        if self._form is None:
            return self._encoder.encode(text, before, after)
        return [*before, *self._encode_normalized(text), *after]

    def _encode_normalized(self, text: str) -> Iterator[int]:
        data = text.encode('utf-8', 'surrogatepass')
        end = 0
        for start, stop, id_ in self._find(data) if self._find else ():
            yield from self._encode_part(data[end:start])
            yield id_
            end = stop
        yield from self._encode_part(data[end:])

    def _encode_part(self, data: bytes) -> list[int]:
        assert self._form is not None  # `encode` saw to it
        text = unicodedata.normalize(self._form, data.decode('utf-8', 'surrogatepass'))
        return self._encoder.encode(text) if text else []

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of a text: as a tokenizer.json has them, or as subword-nmt does."""
        if isinstance(self.vocabulary, BpeVocabulary):
            pieces = self.vocabulary.pieces
            return [pieces[id_] for id_ in self.encode(text, add_special_tokens=False)]
        return CodesSegmenter(self.vocabulary).pieces(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids; bytes that are not UTF-8 become U+FFFD."""
        return self.vocabulary.decode(ids)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids, exactly."""
        if isinstance(self.vocabulary, BpeVocabulary):
            return self.vocabulary.decode_bytes(ids)
        return self.vocabulary.decode(ids).encode()


class ByteTokenizer:
    """Encodes each byte of UTF-8 as an id, as Tensor2Tensor does; threads can share it.

    >>> ByteTokenizer().encode('a€')
    [99, 228, 132, 174]
    """

    def __init__(self):
        self.vocabulary = BYTE_SCHEME.fixed
        self._encoder = SharedEncoder(functools.partial(BYTE_SCHEME.encoder, self.vocabulary))

    @classmethod
    def load(cls) -> ByteTokenizer:
        """Returns a tokenizer; there is no file to read."""
        return cls()

    @property
    def vocab_size(self) -> int:
        """The number of ids: `<pad>`, `<EOS>`, and one for each byte."""
        return self.vocabulary.vocab_size

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without `<EOS>`."""
        return self._encoder.encode(text)

    def tokenize(self, text: str) -> list[bytes]:
        """Returns the bytes of a text, one by one."""
        return [bytes([byte]) for byte in text.encode('utf-8', 'surrogatepass')]

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids; bytes that are not UTF-8 become U+FFFD."""
        return self.vocabulary.decode(ids)


class WordTokenizer:
    """Encodes each word as an id; threads can share it.

    Example: with the words `<unk> <s> </s> the cat`, `encode('the black cat')` gives `[3, 0, 4]`.
    """

    def __init__(
        self, vocabulary: WordVocabulary, *, split: str = 'space', unknown: Unknown = 'token'
    ):
        """Takes a vocabulary, and how text is split into words.

        Args:
            vocabulary: the words.
            split: 'space', at U+0020 alone, or 'unicode', as `str.split` does.
            unknown: 'token', unknown words get the id of the unknown token; 'stop', they are errors.
        """
        self.vocabulary = vocabulary
        scheme, options = WordScheme(split), WordEncodingOptions(unknown=unknown)
        self._encoder = SharedEncoder(functools.partial(scheme.encoder, vocabulary, options))

    @classmethod
    def load(cls, path: str | os.PathLike, **options) -> WordTokenizer:
        """Reads a file of words; `options` are those of the constructor.

        Raises InputError if the file cannot be read or is not a vocabulary of words.
        """
        return cls(parse_words(read_vocabulary_file(path), os.fspath(path)), **options)

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.vocabulary.vocab_size

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text's words.

        Raises ValueError naming an unknown word, if there is no id for it.
        """
        return self._encoder.encode(text)

    def tokenize(self, text: str) -> list[str]:
        """Returns the words of a text, with the unknown token in place of unknown words."""
        return [self.vocabulary.words[id_] for id_ in self.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the words of ids, with spaces between them."""
        return self.vocabulary.decode(ids)


def learn_wordpiece_vocabulary(
    texts: Iterable[str] = (),
    *,
    vocab_size: int,
    paths: Iterable[str | os.PathLike] = (),
    special_tokens: Iterable[str] = SPECIAL_TOKENS,
    normalizer: str = 'bert',
    lower_case: bool = True,
    strip_accents: bool | None = None,
    split_cjk: bool = True,
    **learning,
) -> WordPieceVocabulary:
    """Learns the vocabulary of TensorFlow Text's `bert_vocab_from_dataset` from the words of BERT.

    Args:
        texts: may have several lines each.
        vocab_size: wanted number of pieces.
        paths: text files, UTF-8, plain or gzip, from which it learns too.
        special_tokens: the first pieces.
        normalizer: 'bert' or 'bert-original', and the next three as `WordPieceTokenizer` has them.
        lower_case: whether letters become lower case.
        strip_accents: whether accents are removed; None: if letters become lower case.
        split_cjk: whether each ideograph is a word.
        learning: other fields of `WordPieceOptions`.

    Raises:
        InputError: a text or file is not UTF-8 or cannot be read, or there is no vocabulary of this
            size.
    """
    options = WordPieceOptions(
        vocab_size=vocab_size, special_tokens=tuple(special_tokens), **learning
    )
    scheme = WordPieceScheme.of(normalizer, lower_case, strip_accents, split_cjk)
    words = TokenAccumulator()
    for block in _blocks(texts):
        rows = scheme.normalizer.apply(block).side
        words.add_rows(rows.text, rows.starts, rows.ends, scheme.pre_tokenizer)
    in_files = _count_files([os.fspath(path) for path in paths], scheme)
    words.add_tokens(in_files.data, in_files.offsets, in_files.counts)
    learned = scheme.learn(TokenTable(*words.finish()), options, lambda *_: None)
    return typing.cast(WordPieceVocabulary, learned.vocabulary)


def _blocks(texts: Iterable[str]) -> Iterator[Side]:
    """Yields texts as rows, several together with a byte between them."""
    if isinstance(texts, str):
        raise TypeError('texts are several strings; put a single one in a list')
    rows: list[bytes] = []
    size = 0
    for number, text in enumerate(texts):
        try:
            rows.append(text.encode())
        except UnicodeEncodeError as error:
            raise InputError(
                f'text {number} has a lone surrogate at character {error.start}, which is not text; '
                'read it with another encoding'
            ) from None
        size += len(rows[-1])
        if size >= _BLOCK_BYTES:
            yield _side(rows)
            rows, size = [], 0
    if rows:
        yield _side(rows)


def _side(rows: list[bytes]) -> Side:
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    starts = np.append(0, ends[:-1] + 1)
    return Side(np.frombuffer(b'\n'.join(rows), np.uint8), starts, ends)


def _count_files(paths: list[str], scheme: WordPieceScheme) -> TokenTable:
    files = tuple((_corpus_file(path),) for path in paths)
    split = Split('text', PlainText(), files)
    counter = BlockCounter(((0,),), scheme.normalizer, scheme.pre_tokenizer)
    index = [
        index_range(split.format, part, open_regular) for part in index_ranges(split, ITEM_BYTES)
    ]
    for item in plan_items(split, index):
        for block in read_blocks(item, open_regular):
            counter.add(block, (split,))
    [table] = counter.finish()
    return table


def _corpus_file(path: str) -> CorpusFile:
    compressed = compression_of(path, open_regular)
    return CorpusFile(path, path, os.stat(path).st_size, compressed)


class WordPieceTokenizer:
    """Encodes as transformers' `BertTokenizer` does; threads can share it.

    Example: with the pieces `[UNK] [CLS] [SEP] un ##able`, `encode('Unable')` gives
    `[1, 3, 4, 2]`.
    """

    def __init__(
        self,
        vocabulary: WordPieceVocabulary,
        *,
        normalizer: str = 'bert',
        lower_case: bool = True,
        strip_accents: bool | None = None,
        split_cjk: bool = True,
        max_word_length: int | None = None,
        allow_special_tokens: bool = False,
    ):
        """Takes a vocabulary, and how text is split into words.

        Args:
            vocabulary: the pieces.
            normalizer: 'bert' as transformers has it, or 'bert-original' as google-research has.
            lower_case: whether letters become lower case.
            strip_accents: whether accents are removed; None: if letters become lower case.
            split_cjk: whether each ideograph is a word.
            max_word_length: longer words are unknown; None: 100, 200 with 'bert-original'.
            allow_special_tokens: whether `[MASK]` in text is that token, as in transformers.
        """
        self.vocabulary = vocabulary
        scheme = WordPieceScheme.of(normalizer, lower_case, strip_accents, split_cjk)
        options = WordPieceEncodingOptions(
            max_word_length=max_word_length, allow_special_tokens=allow_special_tokens
        )
        self._template = scheme.template(vocabulary)
        self._parts = scheme.encoding_parts(vocabulary, options)
        self._encoder = SharedEncoder(functools.partial(self.row_encoder, cache_bytes=0))

    @classmethod
    def load(cls, path: str | os.PathLike, **options) -> WordPieceTokenizer:
        """Reads a vocab.txt; `options` are those of the constructor.

        Raises InputError if the file cannot be read, is empty or is not UTF-8.
        """
        data = read_vocabulary_file(path)
        return cls(WordPieceVocabulary(parse_pieces(data, os.fspath(path))), **options)

    @property
    def vocab(self) -> dict[str, int]:
        """The id of each piece."""
        return self.vocabulary.ids

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.vocabulary.vocab_size

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> RowEncoder:
        """Returns an encoder of blocks for one thread; see `RowEncoder`."""
        return RowEncoder(*self._parts, cache_bytes)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Returns the ids of a text, between `[CLS]` and `[SEP]` unless they are not wanted.

        Raises ValueError naming a word that cannot be spelt if the vocabulary has no `[UNK]`.
        """
        around = self._template if add_special_tokens else ((), ())
        return self._encoder.encode(text, *around)

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of a text, `[UNK]` for a word that cannot be spelt."""
        return self.vocabulary.pieces_of(self.encode(text, add_special_tokens=False))

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids; see `WordPieceVocabulary.decode`."""
        return self.vocabulary.decode(ids)
