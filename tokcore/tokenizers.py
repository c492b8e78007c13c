"""Tokenizers for use from Python: text to ids or pieces, and back.

`learn_vocabulary` learns a vocabulary of any scheme in one call, `load_tokenizer` reads its file.
"""

from __future__ import annotations

import functools
import os
import typing
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from tokcore.bpe.added_tokens import AddedTokenFinder, finders, row_encoder
from tokcore.bpe.apply_codes import CodesSegmenter
from tokcore.bpe.codes import (
    SEPARATOR,
    UNKNOWN,
    CodesVocabulary,
    NmtVocabulary,
    TextbookVocabulary,
)
from tokcore.bpe.files import AnyVocabulary, entries_path, parse_bpe_file
from tokcore.bpe.offsets import OffsetFinder, bpe_offset_finder
from tokcore.bpe.scheme import SCHEME as BPE_SCHEME
from tokcore.bpe.scheme import BpeEncodingOptions, BpeScheme
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.byte.scheme import SCHEME as BYTE_SCHEME
from tokcore.byte.scheme import ByteVocabulary
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import (
    DEFAULT_CACHE_BYTES,
    Encoder,
    RowEncoder,
    SharedEncoder,
)
from tokcore.encoding.hub_folders import DatasetVocabulary, local_vocabulary
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.tokenizer import (
    Tokenizer,
    byte_spans,
    piece_spans,
    token_spans,
    without_surrogates,
    write_whole,
)
from tokcore.encoding.vocabulary import NO_TEMPLATE, Vocabulary, read_vocabulary_file
from tokcore.errors import InputError
from tokcore.keywords import keyword_fields, split_keywords
from tokcore.schemes import DEFAULT_SCHEME, find_scheme, scheme_names, schemes_of_file
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.alignment import Span
from tokcore.text.bert import bert_words
from tokcore.text.bert_plain import Kind
from tokcore.word.scheme import (
    Split,
    Unknown,
    WordEncodingOptions,
    WordScheme,
    WordVocabulary,
    read_words,
)
from tokcore.wordpiece.options import SPECIAL_TOKENS, WordPieceOptions
from tokcore.wordpiece.scheme import WordPieceEncodingOptions, WordPieceScheme
from tokcore.wordpiece.vocabulary import WordPieceVocabulary, parse_pieces

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from tokcore.keyword_types import EncodeKeywords, LearnKeywords

_Form = typing.Literal['NFC', 'NFD', 'NFKC', 'NFKD']

_ANY_NAME = 'learned.codes'


class BpeTokenizer(Tokenizer):
    """Encodes as Hugging Face's `tokenizers` does with the same file; threads can share it.

    Examples:
        >>> tokenizer = tokcore.learn_vocabulary(['low lower lowest'], 'bpe', vocab_size=262)
        >>> tokenizer.save('tokenizer.json')
        >>> tokcore.BpeTokenizer.load('tokenizer.json').tokenize('low lowest')
        ['low', 'Ġlowe', 'st']
    """

    vocabulary: AnyVocabulary

    def __init__(
        self,
        vocabulary: AnyVocabulary,
        *,
        allow_special_tokens: bool = False,
        glossary: Sequence[str] = (),
        split_unknown: bool = False,
        dropout: float = 0.0,
        dropout_seed: int = 0,
    ):
        """Takes a vocabulary.

        Args:
            vocabulary: of any kind; codes have ids if there is a list of their pieces.
            allow_special_tokens: whether `<|endoftext|>` in text is that token, as in `tokenizers`.
            glossary: expressions whose matches stay whole; this and the next three are for codes of subword-nmt.
            split_unknown: whether pieces without an id are split into those that they were merged of.
            dropout: the chance, from 0 to 1, that a merge is left out.
            dropout_seed: equal texts have equal pieces for one seed.

        Raises InputError if an added token has options that are not supported, or codes of the textbook
        or a tokenizer.json have those of subword-nmt.
        """
        self.vocabulary = vocabulary
        self._allow = allow_special_tokens
        self._options = BpeEncodingOptions(
            None, allow_special_tokens, tuple(glossary), split_unknown, dropout, dropout_seed
        )
        rules = self._options.nmt_rules
        rules.check(isinstance(vocabulary, NmtVocabulary), 'the vocabulary')
        self._scheme = BPE_SCHEME.configured_for(vocabulary)
        self._around = self._scheme.template(vocabulary)
        self._form: _Form | None = None
        self._find = AddedTokenFinder(())
        if isinstance(vocabulary, BpeVocabulary):
            self._form = typing.cast('_Form | None', vocabulary.parts.form)
            original, _ = finders(vocabulary, allow_special_tokens)
            if self._form:
                self._find = original
        self._encoder = SharedEncoder(self.row_encoder)

    def __getstate__(self) -> dict[str, object]:
        # A copy makes its finder of offsets when it needs one.
        return {name: value for name, value in vars(self).items() if name != '_offset_finder'}

    @classmethod
    def load(cls, path: str | os.PathLike, allow_special_tokens: bool = False) -> BpeTokenizer:
        """Reads a tokenizer.json, a vocab.json or merges.txt with the other next to it, or codes.

        Raises InputError if the file cannot be read, is none of these, or has options with which
        text would not be encoded exactly.
        """
        vocabulary = parse_bpe_file(read_vocabulary_file(path), os.fspath(path))
        return cls(vocabulary, allow_special_tokens=allow_special_tokens)

    def save(self, path: str | os.PathLike) -> None:
        """Writes tokenizer.json; or codes, and their ids in a file next to them, if they have any."""
        write_whole(path, self.vocabulary.dump())
        if not isinstance(self.vocabulary, BpeVocabulary) and self.vocabulary.entries is not None:
            write_whole(entries_path(os.fspath(path)), self.vocabulary.dump_entries())

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> Encoder:
        """Returns an encoder of blocks of normalized rows, for one thread; see `RowEncoder`."""
        if isinstance(self.vocabulary, BpeVocabulary):
            return row_encoder(
                self._scheme.words_pre_tokenizer, self.vocabulary, self._allow, cache_bytes,
                is_original_text=self._form is None,
            )  # fmt: skip
        if not self._options.nmt_rules.is_plain:
            return self._scheme.encoder(self.vocabulary, self._options)
        return RowEncoder(self._scheme.pre_tokenizer, self.vocabulary.model, cache_bytes)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Returns the ids of a text; with `add_special_tokens`, those of the file's template around them.

        Raises InputError for codes without ids, ValueError for a piece that has none.
        """
        if not self._find:
            return super().encode(text, add_special_tokens)
        before, after = self._around if add_special_tokens else NO_TEMPLATE
        return [*before, *self._encode_parts(self._checked(text)), *after]

    def _checked(self, text: str) -> str:
        if isinstance(self.vocabulary, BpeVocabulary):
            text = without_surrogates(text)
        return text if self._find else self._normalized(text)

    def _normalized(self, text: str) -> str:
        return unicodedata.normalize(self._form, text) if self._form else text

    def _encode_parts(self, text: str) -> Iterator[int]:
        """Yields the ids of a text in which added tokens are found before it is normalized."""
        data = text.encode()
        for start, end, id_ in self._find.find(data):
            part = data[start:end].decode()
            yield from [id_] if id_ >= 0 else self._encoder.encode(self._normalized(part))

    def encode_batch(
        self, texts: Iterable[str], add_special_tokens: bool = True
    ) -> list[list[int]]:
        if isinstance(texts, str) or not self._find:
            return super().encode_batch(texts, add_special_tokens)
        return [self.encode(text, add_special_tokens) for text in texts]

    def _spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        if not isinstance(self.vocabulary, BpeVocabulary):
            return self._spans_of_codes(text)
        return self._offset_finder.offsets(text, ids)

    @functools.cached_property
    def _offset_finder(self) -> OffsetFinder:
        assert isinstance(self.vocabulary, BpeVocabulary)  # `_spans` saw to it
        return bpe_offset_finder(self.vocabulary, self._allow)

    def _spans_of_codes(self, text: str) -> list[Span]:
        vocabulary = self.vocabulary
        assert not isinstance(vocabulary, BpeVocabulary)
        is_textbook = isinstance(vocabulary, TextbookVocabulary)
        tokens = list(self._scheme.tokens(text))
        words = [token[:-1] if is_textbook else token for token in tokens]
        [of_words] = CodesSegmenter(vocabulary, self._options.nmt_rules).pieces_by_word([words])
        spans: list[Span] = []
        for (word, start), pieces in zip(token_spans(text, words), of_words, strict=True):
            units = [(place, place + 1) for place in range(start, start + len(word))]
            if is_textbook:
                units.append((start + len(word),) * 2)
            spans += piece_spans(_code_lengths(pieces, len(units)), units)
        return spans

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of a text: as a tokenizer.json has them, or as subword-nmt does."""
        if isinstance(self.vocabulary, BpeVocabulary):
            pieces = self.vocabulary.pieces
            return [pieces[id_] for id_ in self.encode(text, add_special_tokens=False)]
        return CodesSegmenter(self.vocabulary, self._options.nmt_rules).pieces(text)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids, exactly."""
        if isinstance(self.vocabulary, BpeVocabulary):
            return self.vocabulary.decode_bytes(self._known(ids))
        return self.decode(ids).encode()


class ByteTokenizer(Tokenizer):
    """Encodes each byte of UTF-8 as an id, as Tensor2Tensor does; threads can share it.

    Examples:
        >>> tokcore.ByteTokenizer().encode('a€')
        [99, 228, 132, 174]
    """

    def __init__(self):
        self.vocabulary = BYTE_SCHEME.fixed
        self._encoder = SharedEncoder(functools.partial(BYTE_SCHEME.encoder, self.vocabulary))

    @classmethod
    def load(cls) -> ByteTokenizer:
        """Returns a tokenizer; there is no file to read."""
        return cls()

    def _spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        return byte_spans(text)

    def tokenize(self, text: str) -> list[bytes]:
        """Returns the bytes of a text, one by one."""
        return [bytes([byte]) for byte in text.encode('utf-8', 'surrogatepass')]


class WordTokenizer(Tokenizer):
    """Encodes each word as an id; threads can share it.

    Examples:
        >>> tokenizer = tokcore.WordTokenizer.load('words.txt')
        >>> tokenizer.encode('the purple cat'), tokenizer.pieces
        ([3, 0, 4], ('<unk>', '<s>', '</s>', 'the', 'cat'))
    """

    vocabulary: WordVocabulary

    def __init__(
        self, vocabulary: WordVocabulary, *, split: Split = 'space', unknown: Unknown = 'token'
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
        self._scheme = scheme

    @classmethod
    def load(cls, path: str | os.PathLike, **options) -> WordTokenizer:
        """Reads a file of words; `options` are those of the constructor.

        Raises InputError if the file cannot be read or is not a vocabulary of words.
        """
        split = options.get('split', 'space')
        words = read_words(read_vocabulary_file(path), os.fspath(path), split)
        return cls(WordVocabulary(words), **options)

    def _spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        words = token_spans(text, self._scheme.tokens(text))
        return [(start, start + len(word)) for word, start in words]

    def tokenize(self, text: str) -> list[str]:
        """Returns the words of a text, with the unknown token in place of unknown words."""
        return [self.vocabulary.pieces[id_] for id_ in self.encode(text)]


class WordPieceTokenizer(Tokenizer):
    """Encodes as transformers' `BertTokenizer` does; threads can share it.

    Examples:
        >>> vocabulary = tokcore.learn_wordpiece_vocabulary(paths=['train.en'], vocab_size=300)
        >>> tokcore.WordPieceTokenizer(vocabulary).tokenize('Spring came late.')
        ['s', '##p', '##r', '##ing', 'c', '##ame', 'l', '##ate', '.']
    """

    vocabulary: WordPieceVocabulary

    def __init__(
        self,
        vocabulary: WordPieceVocabulary,
        *,
        normalizer: Kind = 'bert',
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
        self._around = scheme.template(vocabulary)
        self._parts = scheme.encoding_parts(vocabulary, options)
        self._encoder = SharedEncoder(self.row_encoder)

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

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> RowEncoder:
        """Returns an encoder of blocks for one thread; see `RowEncoder`."""
        return RowEncoder(*self._parts, cache_bytes)

    def _spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        rules = self._parts[0]
        strips = rules.lower_case if rules.strip_accents is None else rules.strip_accents
        words = bert_words(
            text, rules.kind, rules.lower_case, strips, rules.split_cjk, rules.special_tokens
        )
        unknown, joiner = self.special_ids.unknown, len(self.vocabulary.joiner)
        left = iter(ids)
        spans: list[Span] = []
        for word, characters in words:
            lengths: list[int] = []
            while sum(lengths) < len(word):
                id_ = next(left)
                length = len(self.pieces[id_]) - (joiner if lengths else 0)
                lengths.append(len(word) if id_ == unknown else length)
            spans += piece_spans(lengths, characters)
        return spans

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of a text, `[UNK]` for a word that cannot be spelt."""
        return self.vocabulary.pieces_of(self.encode(text, add_special_tokens=False))


def learn_wordpiece_vocabulary(
    texts: Iterable[str] = (),
    *,
    vocab_size: int,
    paths: Iterable[str | os.PathLike] = (),
    special_tokens: Iterable[str] = SPECIAL_TOKENS,
    normalizer: Kind = 'bert',
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

    Examples:
        >>> vocabulary = tokcore.learn_wordpiece_vocabulary(paths=['train.en'], vocab_size=300)
        >>> len(vocabulary.pieces), vocabulary.pieces[:5]
        (247, ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'))
    """
    from tokcore.learn import count_tokens  # which takes a quarter of a second to import

    options = WordPieceOptions(
        vocab_size=vocab_size, special_tokens=tuple(special_tokens), **learning
    )
    scheme = WordPieceScheme.of(normalizer, lower_case, strip_accents, split_cjk)
    table = count_tokens(scheme, texts, paths)
    return scheme.learn(table, options, lambda *_: None).vocabulary


def learn_vocabulary(
    source: TokenTable | Iterable[str] = (),
    scheme: str | Scheme = DEFAULT_SCHEME,
    *,
    paths: Iterable[str | os.PathLike] = (),
    **options: Unpack[LearnKeywords],
) -> Tokenizer:
    """Learns a vocabulary, in memory, and returns its tokenizer, of which `save` writes the file.

    Args:
        source: texts, each as a line, or a table of tokens that the scheme's pre-tokenizer cut.
        scheme: its name, or the scheme itself.
        paths: text files, UTF-8, plain or compressed, of whose lines it learns too.
        options: of the scheme and of its learner, as the command has them: `vocab_size`, ...

    Raises:
        InputError: an unknown scheme, an option that cannot have its value, a text or file that is
            not UTF-8 or cannot be read, or no vocabulary of this size.
        TypeError: the scheme has no such option, or it has a value of another type.

    Examples:
        >>> tokenizer = tokcore.learn_vocabulary(paths=['train.en'], scheme='bpe', vocab_size=600)
        >>> tokenizer.save('tokenizer.json')
        >>> tokenizer.tokenize('Spring came late.')
        ['S', 'p', 'r', 'ing', 'Ġc', 'ame', 'Ġl', 'ate', '.']
    """
    from tokcore.learn import count_tokens, learn_from_table, learning_of, vocabulary_files

    chosen_scheme, learning = learning_of(scheme, options, 'learn_vocabulary')
    files = list(paths)
    if isinstance(source, TokenTable):
        if files:
            raise TypeError('a table and paths exclude each other; give one of them')
        table = source
    else:
        table = count_tokens(chosen_scheme, source, files)
    vocabulary = learn_from_table(chosen_scheme, learning, table).vocabulary
    files_of = vocabulary_files(vocabulary, chosen_scheme, table, _ANY_NAME)
    if len(files_of) > 1:  # codes, whose ids are in another file
        vocabulary = chosen_scheme.parse(files_of[_ANY_NAME], _ANY_NAME, files_of.get)
    return tokenizer_of(vocabulary, chosen_scheme)


def load_tokenizer(
    path: str | os.PathLike | None = None,
    scheme: str | Scheme | None = None,
    **options: Unpack[EncodeKeywords],
) -> Tokenizer:
    """Returns the tokenizer of a vocabulary file of any scheme.

    Args:
        path: of the file; of a dataset with one vocabulary; or of a folder as a hub has it
            (docs/schemes.md lists the names of its file). None for the scheme `byte`, which has none.
        scheme: its name, or the scheme itself; None: the one that the file's form shows.
        options: of the scheme and of its encoder, as the command has them: `lower_case`, ...

    Raises:
        InputError: the file cannot be read, does not show its scheme or is not of it, or an option
            cannot have its value; or it is unclear which file of the folder is its vocabulary.
        TypeError: the scheme has no such option, or it has a value of another type.

    Examples:
        >>> tokcore.load_tokenizer('data/enzh').encode('Spring came late.')
        [97, 377, 792, 844, 1110, 3]
        >>> tokcore.load_tokenizer('words.txt', 'word', unknown='stop')
        WordTokenizer(vocab_size=5, begin=1, end=2, unknown=0)
    """
    record: DatasetVocabulary | None = None
    if path is not None:
        path, _, record = local_vocabulary(os.fspath(path))
    if scheme is None and record is not None:
        scheme = record.scheme
    data = b'' if path is None else read_vocabulary_file(path)
    if scheme is None:
        fitting = schemes_of_file(data) if path else []
        if len(fitting) != 1:
            what = f'the form of {path} fits {len(fitting)} schemes' if path else 'there is no path'
            raise InputError(f'{what}; give scheme=, one of {", ".join(scheme_names())}')
        [scheme] = fitting
    resolved = find_scheme(scheme)
    name = f'load_tokenizer with the scheme {resolved.name}'
    of_scheme, of_encoder = split_keywords([type(resolved), resolved.encoding], options, name)
    if record is not None and record.scheme == resolved.name:
        of_scheme = {**(record.scheme_options or {}), **of_scheme}
    elif path is not None and not isinstance(resolved, BpeScheme):  # whose parser reads them
        of_scheme = {**resolved.options_from_file(data, os.fspath(path)), **of_scheme}
        if isinstance(scheme, str):
            resolved.refuse_unstated(data, os.fspath(path), of_scheme)
    resolved = find_scheme(resolved, **typing.cast(typing.Any, of_scheme))
    encoding = keyword_fields(resolved.encoding, of_encoder, name)
    if encoding.pop('template', None) is not None:
        raise TypeError('template is of examples; leave it out, and use add_special_tokens')
    if resolved.fixed is not None:
        if path is not None:
            raise InputError(f'the scheme {resolved.name} has no vocabulary files; leave path out')
        return tokenizer_of(resolved.fixed, resolved)
    if path is None:
        raise TypeError(f'path is missing: the scheme {resolved.name} has a vocabulary file')
    return tokenizer_of(resolved.parse(data, os.fspath(path)), resolved, **encoding)


def tokenizer_of(vocabulary: Vocabulary, scheme: Scheme, **encoding: typing.Any) -> Tokenizer:
    """Returns the tokenizer of a vocabulary; `encoding` are fields of the scheme's `encoding`.

    Raises:
        InputError: there is none for such a scheme.
    """
    if (tokenizer := scheme.tokenizer(vocabulary, **encoding)) is not None:
        return tokenizer
    if isinstance(vocabulary, SubwordTextEncoder):
        return vocabulary
    if isinstance(vocabulary, ByteVocabulary):
        return ByteTokenizer()
    if isinstance(vocabulary, WordVocabulary):
        return WordTokenizer(vocabulary, split=typing.cast(WordScheme, scheme).split, **encoding)
    if isinstance(vocabulary, (BpeVocabulary, CodesVocabulary)):
        return BpeTokenizer(typing.cast(AnyVocabulary, vocabulary), **encoding)
    if isinstance(scheme, WordPieceScheme) and isinstance(vocabulary, WordPieceVocabulary):
        return WordPieceTokenizer(
            vocabulary,
            normalizer=scheme.normalizer_kind,
            lower_case=scheme.lower_case,
            strip_accents=scheme.pre_tokenizer.strip_accents,
            split_cjk=scheme.split_cjk,
            **encoding,
        )
    raise InputError(f'there is no tokenizer for the scheme {scheme.name}; use its encoder')


def _code_lengths(pieces: list[str], units: int) -> Iterator[int]:
    """Yields how many characters of a token each of the pieces of codes has."""
    for number, piece in enumerate(pieces):
        if piece == UNKNOWN:  # of the textbook: the rest of the token
            yield units
        else:
            length = len(piece)
            if number < len(pieces) - 1 and piece.endswith(SEPARATOR):
                length -= len(SEPARATOR)
            units -= length
            yield length
