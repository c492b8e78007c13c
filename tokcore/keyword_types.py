"""The keyword arguments of schemes and formats, for type checkers and `help`.

Written by `python -m tests.keyword_types` from the declarations of the options; do not edit it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

Path = str | os.PathLike


class SchemeKeywords(TypedDict, total=False):
    """The options of schemes that change the tokens of text.

    normalizer: bert: words as transformers' BertTokenizer finds them; bert-original: as the
        code of the paper does (default: bert)
    lower_case: make letters lower case (default: on)
    strip_accents: whether accents are stripped; auto: with --lower-case (default: auto)
    split_cjk: make each CJK ideograph a word (default: on)
    preset: whose byte pair encoding: gpt2 and cl100k, of bytes, with that model's pattern;
        subword-nmt; textbook, of 'Dive into Deep Learning' (default: gpt2)
    pre_tokenizer: what cuts text into tokens: a model's pattern, U+0020, all white space,
        another scheme's rule, or none, so that lines are tokens (default: the preset's)
    unicode_form: bring text into this normal form of Unicode first (default: neither)
    pattern: cuts text into tokens in place of --pre-tokenizer: a regular expression as in a
        tokenizer.json (Oniguruma's), a pattern of --pre-tokenizer, digits or individual-digits;
        where it is repeated, each cuts the tokens of the one before; or of a file of tiktoken's
        ranks: the name of a pattern of --pre-tokenizer, or a regular expression (default: that
        of the file's name, as cl100k_base.tiktoken)
    add_prefix_space: put a space before each text that does not begin with one; with the
        pattern gpt2 or none
    split: space: words end at U+0020 and at line breaks; unicode: at what Python's str.split
        cuts at (default: space)
    normalization_rule_name: the normalization, by its name in SentencePiece; both collapse
        spaces (default: nmt_nfkc)
    max_sentence_length: rows of more than N bytes are not learned from, from 10 to
        1,073,741,824 (default: 4192)
    control_symbols: entries that text never becomes, after <unk>, <s> and </s>
    user_defined_symbols: entries that stay whole wherever they are in text
    byte_fallback: spell unknown characters by 256 entries for bytes

    Examples:
        >>> options: tokcore.SchemeKeywords = {'pre_tokenizer': 'o200k'}
        >>> tokcore.find_scheme('bpe', **options).tokens('the cat')
        ['the', ' cat']
    """

    normalizer: Literal['bert', 'bert-original']
    lower_case: bool
    strip_accents: Literal['auto', 'yes', 'no']
    split_cjk: bool
    preset: Literal['gpt2', 'cl100k', 'subword-nmt', 'textbook']
    pre_tokenizer: (
        Literal[
            'gpt2',
            'cl100k',
            'llama3',
            'qwen2',
            'qwen3.5',
            'o200k',
            'tekken',
            'deepseek',
            'none',
            'space',
            'whitespace',
            'bert',
            't2t',
        ]
        | None
    )
    unicode_form: Literal['NFC', 'NFKC'] | None
    pattern: str | Sequence[str]
    add_prefix_space: bool
    split: Literal['space', 'unicode']
    normalization_rule_name: Literal['nmt_nfkc', 'identity']
    max_sentence_length: int
    control_symbols: str | Sequence[object]
    user_defined_symbols: str | Sequence[object]
    byte_fallback: bool


class LearningKeywords(TypedDict, total=False):
    """The options of how a vocabulary is learned.

    vocab_size: entries to aim for; or entries to end at (or give --merges); or entries at most
        (or give --min-count)
    search: t2t: Tensor2Tensor's path over min-counts; closest: the size nearest to the target
        (default: t2t); or tensorflow-text: that tool's path over min-counts, whose last
        vocabulary is taken; closest: the size nearest to the target; at-most: the largest size
        that is not above it (default: tensorflow-text)
    min_count_range: min-counts to search between, from 1 to 2^63 - 1 (default: 1:1000, and
        beyond where that is too low; giving 1:1000 forbids going beyond); or min-counts to
        search between (default: 10:10000000)
    max_subtoken_length: subtokens stay shorter than this many characters, from 1 to 2^31 - 1
        (default: 200)
    reserved_token: give X an id of its own, from 2 on, which prefixes and templates use; may be
        repeated
    learner: memory: in this process; beam: on the workers; auto: in memory where it fits
        (default: auto); or memory: from all tokens in this process; beam: on the workers, in
        rounds; auto: in memory where they fit, else in rounds, on the workers of a cluster or
        with files of words here (default: auto)
    special_tokens: special tokens in place of those of the scheme: of word <unk>,<s>,</s>, of
        wordpiece [PAD],[UNK],[CLS],[SEP],[MASK], of bytes of bpe <|endoftext|> unless --extend
        is given
    merges: merges to learn, from 1 to 2^31 - 1; or --vocab-size
    min_count: pairs that occur less often are not merged (default: 1; of subword-nmt 2); or
        words that are counted less often have no id (default: none; then --vocab-size)
    max_piece_length: pieces stay shorter than this many bytes or characters, from 1 to 2^31 -
        1, except those of two (default: any length)
    limit_alphabet: only the N commonest characters stay in words (default: all; never of bytes)
    total_symbols: for codes of subword-nmt: --merges counts the characters within words and at
        their ends too
    extend: learn further merges on top of this vocabulary of byte-level BPE, a tokenizer.json,
        or a folder with one; its ids and merges stay, and --vocab-size counts its entries too
    shrink: keep the fewest entries of this vocabulary of byte-level BPE, as --extend takes it,
        with which no token changes its pieces, or the --vocab-size most used; OUTPUT.ids.npy
        and OUTPUT.ids.json have the old and new ids
    character_coverage: the share of characters that become pieces, from 0.98 to 1; the others
        are unknown (default: 0.9995)
    num_threads: partial sums of the learner, from 1 to 1,024; SentencePiece has one for each
        thread, and scores depend on it (default: 16)
    shrinking_factor: the share of pieces that a pruning step keeps, from 0.5 to 0.95 (default:
        0.75)
    num_sub_iterations: EM iterations between two pruning steps, from 1 to 10 (default: 2)
    seed_sentencepiece_size: pieces to begin with; 0: 8 for each entry, at least 100000
        (default: 1000000)
    max_sentencepiece_length: the most characters of a piece, from 1 to 512 (default: 16)
    hard_vocab_limit: refuse a text that gives fewer entries than --vocab-size (default: on)
    """

    vocab_size: int | None
    search: Literal['t2t', 'closest', 'tensorflow-text', 'at-most']
    min_count_range: str | Sequence[object] | None
    max_subtoken_length: int | None
    reserved_token: str | Sequence[str]
    learner: Literal['auto', 'memory', 'beam']
    special_tokens: str | Sequence[object] | None
    merges: int | None
    min_count: int | None
    max_piece_length: int | None
    limit_alphabet: int | None
    total_symbols: bool
    extend: Path | None
    shrink: Path | None
    character_coverage: float | str
    num_threads: int
    shrinking_factor: float | str
    num_sub_iterations: int
    seed_sentencepiece_size: int
    max_sentencepiece_length: int
    hard_vocab_limit: bool


class EncodingKeywords(TypedDict, total=False):
    """The options of how a vocabulary encodes.

    template: what surrounds each row's ids ($A), as '[CLS] $A [SEP]' (default: the scheme's; of
        lines, nothing)
    max_word_length: words of more than N characters are unknown, from 1 to 2^31 - 1 (default:
        100, and 200 with --normalizer bert-original)
    allow_special_tokens: find [MASK] and other special tokens in text first, as BertTokenizer
        does; without it they are ordinary text; or take special tokens such as <|endoftext|>
        out of text first; without it they are text like other text
    glossary: for codes of subword-nmt: a regular expression whose matches stay whole; may be
        repeated
    split_unknown: for codes of subword-nmt: split pieces that the .vocab file lacks into those
        that they were merged from, as its --vocabulary does
    dropout: for codes of subword-nmt: the chance, from 0 to 1, that a merge is left out, which
        is useful for training data only
    dropout_seed: with --dropout: equal rows have equal pieces for one seed (default: 0)
    unknown: token: they get the id of the unknown token; stop: an error names the line and the
        word (default: token)
    """

    template: str | None
    max_word_length: int | None
    allow_special_tokens: bool
    glossary: str | Sequence[str]
    split_unknown: bool
    dropout: float | str
    dropout_seed: int
    unknown: Literal['token', 'stop']


class FormatKeywords(TypedDict, total=False):
    """The options of the formats of corpora.

    keep: other fields, which become features of each example by their own names or by others:
        bytes, or int64 or floats where :int or :float follows
    label: field with a whole number, or with any number where :float follows: it is the
        targets, and the text the inputs
    labels: with --label or --line-labels: a file with a name on each line; labels are names
        then, and the targets their places from 0 on
    columns: column of the text, or of source and target: 0-based, up to 65,535, or by its name
        in the first line of each file, which then is not a row
    quoting: csv: a field in double quotes may hold tabs, line feeds, and quotes as two of them;
        such a file is read by one worker
    keep_tabs: the last of the columns, by its place in the line, is the rest of the line: tabs
        in it are text
    fields: field of the text, or of source and target, of each object or row; dots lead into
        objects, \\. is a dot in a name
    entities: decode: &amp;, &lt;, &gt;, &quot;, &apos; and numbers as &#233; become characters;
        keep: they stay, as in Tensor2Tensor
    languages: for TMX: the languages of source and target, or of a text; en takes en-US too
    markup: for TMX: drop codes of a native format in inline elements, or keep them as text

    Examples:
        >>> options: tokcore.FormatKeywords = {'columns': [0, 1]}
        >>> pipelines.ReadCorpus('pairs.tsv', format='tsv', **options).splits[0].format.columns
        (0, 1)
    """

    keep: str | Sequence[object]
    label: str | None
    labels: str | Sequence[object] | None
    columns: str | Sequence[object]
    quoting: Literal['none', 'csv']
    keep_tabs: bool
    fields: str | Sequence[object]
    entities: Literal['keep', 'decode']
    languages: str | Sequence[object]
    markup: Literal['drop', 'text']


class LearnKeywords(SchemeKeywords, LearningKeywords, total=False):
    """Both: the options of a scheme and of its learner.

    Examples:
        >>> options: tokcore.LearnKeywords = {'vocab_size': 300, 'preset': 'cl100k'}
        >>> tokcore.learn_vocabulary(paths=['train.en'], scheme='bpe', **options)
        BpeTokenizer(vocab_size=300, end=0)
    """


class EncodeKeywords(SchemeKeywords, EncodingKeywords, total=False):
    """Both: the options of a scheme and of its encoder.

    Examples:
        >>> options: tokcore.EncodeKeywords = {'split': 'unicode', 'unknown': 'token'}
        >>> tokcore.load_tokenizer('words.txt', 'word', **options).encode('the purple\\tcat')
        [3, 0, 4]
    """
