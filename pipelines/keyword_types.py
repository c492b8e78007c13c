"""The keyword arguments of `build`, `count`, `vocab`, `encode` and `update`, as the command has them.

Written by `python -m tests.keyword_types` from the declarations of the options; do not edit it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

Path = str | os.PathLike


class _JobKeywords(TypedDict, total=False):
    """Of every job."""

    source: Path | Sequence[Path]
    target: Path | Sequence[Path]
    tsv: Path | Sequence[Path]
    jsonl: Path | Sequence[Path]
    parquet: Path | Sequence[Path]
    tmx: Path | Sequence[Path]
    text: Path | Sequence[Path]
    line_labels: Path | Sequence[Path]
    keep: str | Sequence[object] | None
    label: str | Sequence[object] | None
    labels: str | Sequence[object] | None
    columns: str | Sequence[object] | None
    quoting: Literal['none', 'csv'] | None
    keep_tabs: bool | None
    fields: str | Sequence[object] | None
    entities: Literal['keep', 'decode'] | None
    languages: str | Sequence[object] | None
    markup: Literal['drop', 'text'] | None
    clean: str | Sequence[object] | None
    output: Path
    workers: int | None
    overwrite: bool


class _ReadingKeywords(TypedDict, total=False):
    """Of jobs that read a whole corpus."""

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
    max_line_size: int | str
    on_error: int | str
    keep_rejected: bool
    work: Path | None


class _SplitKeywords(TypedDict, total=False):
    """Of jobs that read all splits."""

    dev: Path | Sequence[Path]
    dev_source: Path | Sequence[Path]
    dev_target: Path | Sequence[Path]
    test: Path | Sequence[Path]
    test_source: Path | Sequence[Path]
    test_target: Path | Sequence[Path]


class _DatasetKeywords(TypedDict, total=False):
    """Of jobs that write a dataset."""

    name: str
    shards: int
    dev_share: str | None
    test_share: str | None
    source_prefix: str
    target_prefix: str
    seed: int
    output_format: Literal[
        'tfrecord',
        'text',
        'parquet',
        'megatron',
        'flat',
        'nanogpt',
        'packed',
        'joined',
        'array_record',
    ]
    pack: int | None
    leave_out: Path | None
    end: int | str | None
    template: str | None
    max_word_length: int | None
    allow_special_tokens: bool
    glossary: str | Sequence[str]
    split_unknown: bool
    dropout: float | str
    dropout_seed: int
    unknown: Literal['token', 'stop']


class _LearningKeywords(TypedDict, total=False):
    """Of jobs that learn a vocabulary."""

    scheme: Literal['subword', 'wordpiece', 'bpe', 'word', 'byte', 'unigram', 'pretrained']
    vocab_size: int | None
    search: Literal['t2t', 'closest', 'tensorflow-text', 'at-most']
    min_count_range: str | Sequence[object] | None
    max_subtoken_length: int | None
    reserved_token: str | Sequence[str]
    learner: Literal['auto', 'memory', 'beam']
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
    temperature: str | None


class BuildKeywords(
    _JobKeywords, _ReadingKeywords, _SplitKeywords, _DatasetKeywords, _LearningKeywords, total=False
):
    """The options of `tokbeam build`.

    source: source side, a sentence a line, or <seg>s in documents where the names end in .sgm
    target: target side, the same number of files, with the same lines or ids
    tsv: pairs in tab-separated columns
    jsonl: JSON lines, an object on each line
    parquet: Parquet files, a row each
    tmx: TMX files, a row for each translation unit
    text: text, a line each; without --line-labels it is the targets
    line_labels: labels of the lines of --text, the same number of files and of lines: whole
        numbers, or names with --labels
    keep: other fields, which become features of each example by their own names or by others:
        bytes, or int64 or floats where :int or :float follows (default: none)
    label: field with a whole number, or with any number where :float follows: it is the
        targets, and the text the inputs (default: none)
    labels: with --label or --line-labels: a file with a name on each line; labels are names
        then, and the targets their places from 0 on (default: none)
    columns: column of the text, or of source and target: 0-based, up to 65,535, or by its name
        in the first line of each file, which then is not a row (default: 0,1)
    quoting: csv: a field in double quotes may hold tabs, line feeds, and quotes as two of them;
        such a file is read by one worker (default: none)
    keep_tabs: the last of the columns, by its place in the line, is the rest of the line: tabs
        in it are text (default: no)
    fields: field of the text, or of source and target, of each object or row; dots lead into
        objects, \\. is a dot in a name (default: text)
    entities: decode: &amp;, &lt;, &gt;, &quot;, &apos; and numbers as &#233; become characters;
        keep: they stay, as in Tensor2Tensor (default: keep)
    languages: for TMX: the languages of source and target, or of a text; en takes en-US too
        (default: required for TMX)
    markup: for TMX: drop codes of a native format in inline elements, or keep them as text
        (default: drop)
    clean: filters of the rows, which act in this order (`tokbeam help filters` explains them):
        length:MIN:MAX[:tokens], ratio:R[:tokens], different, script:CODE:SHARE[:source|target],
        nfc, nfd, nfkc, nfkd, paracrawl, clean_en_xx[:source|target], MODULE:FUNCTION (default:
        none, or those of the job file)
    dev: development corpus, of the same format as the training corpus and with the same options
        of it
    dev_source: source side of the development corpus
    dev_target: target side of the development corpus
    test: test corpus, as --dev
    test_source: source side of the test corpus
    test_target: target side of the test corpus
    name: name of the dataset, in its file names
    shards: training shards, from 1 to 100,000; other splits have one (default: 10)
    dev_share: cut this share of the rows off the training corpus as the dev split, as 1%: by a
        key of each row and --seed; the vocabulary is learned from the others
    test_share: cut this share of the rows off the training corpus as the test split, as 1%: by
        a key of each row and --seed; the vocabulary is learned from the others
    source_prefix: put before each source text; a reserved or special token of the vocabulary in
        it gets its id, as <2zh> in "<2zh> "
    target_prefix: put before each target text, as --source-prefix
    seed: seed of the shuffle, from 0 to 2^64 - 1 (default: 0)
    output_format: what shards are: TFRecords of tf.train.Example; aligned text, one file for
        each side, pieces between blanks; Parquet with columns list<int32>; .bin and .idx of
        Megatron; flat, ids one after another as .npy without a header, with a .csv.gz of
        documents; nanogpt, likewise train.bin, and val.bin of the dev split, for nanoGPT;
        packed, TFRecords with several rows in each, of --pack ids; joined, TFRecords of --pack
        ids with BERT's input_ids, input_mask and segment_ids; or ArrayRecord, for grain
        (default: tfrecord)
    pack: with --output-format packed: ids of a packed row at most, from 1 to 4,194,304; longer
        texts are cut, longer pairs left out; with --output-format joined: ids of a row, at
        least 3; longer pairs are cut
    leave_out: leave out the rows of this list, with an address on each line, FILE:BYTE, as
        where --json gives it
    end: the token, or its id, that follows each document in megatron, flat and nanogpt, and
        where rows are packed as they are read; none: nothing does (default: the vocabulary's)
    output: folder for the result
    scheme: how text becomes ids (default: subword)
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
    shared_vocab: learn one vocabulary from both sides (default: one for each side)
    vocab_languages: how the names of the vocabularies of source and target end, as en,zh, where
        the problems of Tensor2Tensor look for them (default: inputs,targets)
    vocab_sample: count a sample for the vocabulary: t2t:100MB takes lines of each file as
        Tensor2Tensor's file_byte_budget=1e8 does, of text and bitext, and before any filter;
        uniform:0.1 a tenth of the rows of any format, by their order keys of seed 0 (default:
        all is counted)
    temperature: weight each dataset by its share of all bytes to the power of 1/T, as
        multilingual BERT and XLM do: with 1 each counts as it is, and the larger T is, the more
        small ones count (default: no weights)
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
    workers: work items in flight in a process, from 1 to 1,024 (default: the cores that this
        process may use, 1 on a cluster)
    max_line_size: the longest line that is read, in bytes without its end, up to 1GiB; memory
        for 16 times as much may be needed (default: 16MiB)
    on_error: at a line that is not UTF-8, lacks a column or is too long: stop, or skip: leave
        it out and keep it in rejected/SPLIT.REASON.jsonl; 100 or 0.5% skips so many lines, or
        this share of those read, and stops once it is sure that there are more (default: stop)
    keep_rejected: keep what --clean drops too, in rejected/SPLIT.FILTER.jsonl
    work: where a learner on Beam keeps its rounds and the shuffle its runs, to resume from,
        until the output is whole, and what is fetched is kept; on a filesystem that every
        worker reaches (default: .tokbeam in the folder of the output)
    overwrite: make the result again, replacing what is there
    memory: memory of the whole job, locally no more than there is; buffers and threads are cut
        down to it, and a learner that needs more goes in rounds or on Beam (default: what is
        free, on a cluster no limit)

    Examples:
        >>> options: pipelines.BuildKeywords = {'text': 'train.en', 'scheme': 'byte', 'name': 'en'}
        >>> pipelines.build_job(output='data/en', **options).dataset.name
        'en'
    """

    special_tokens: str | Sequence[object] | None
    shared_vocab: bool
    vocab_languages: str | Sequence[object] | None
    vocab_sample: str | None
    memory: int | str | None


class CountKeywords(_JobKeywords, _ReadingKeywords, total=False):
    """The options of `tokbeam count`.

    source: source side, a sentence a line, or <seg>s in documents where the names end in .sgm
    target: target side, the same number of files, with the same lines or ids
    tsv: pairs in tab-separated columns
    jsonl: JSON lines, an object on each line
    parquet: Parquet files, a row each
    tmx: TMX files, a row for each translation unit
    text: text, a line each; without --line-labels it is the targets
    line_labels: labels of the lines of --text, the same number of files and of lines: whole
        numbers, or names with --labels
    keep: other fields, which become features of each example by their own names or by others:
        bytes, or int64 or floats where :int or :float follows (default: none)
    label: field with a whole number, or with any number where :float follows: it is the
        targets, and the text the inputs (default: none)
    labels: with --label or --line-labels: a file with a name on each line; labels are names
        then, and the targets their places from 0 on (default: none)
    columns: column of the text, or of source and target: 0-based, up to 65,535, or by its name
        in the first line of each file, which then is not a row (default: 0,1)
    quoting: csv: a field in double quotes may hold tabs, line feeds, and quotes as two of them;
        such a file is read by one worker (default: none)
    keep_tabs: the last of the columns, by its place in the line, is the rest of the line: tabs
        in it are text (default: no)
    fields: field of the text, or of source and target, of each object or row; dots lead into
        objects, \\. is a dot in a name (default: text)
    entities: decode: &amp;, &lt;, &gt;, &quot;, &apos; and numbers as &#233; become characters;
        keep: they stay, as in Tensor2Tensor (default: keep)
    languages: for TMX: the languages of source and target, or of a text; en takes en-US too
        (default: required for TMX)
    markup: for TMX: drop codes of a native format in inline elements, or keep them as text
        (default: drop)
    clean: filters of the rows, which act in this order (`tokbeam help filters` explains them):
        length:MIN:MAX[:tokens], ratio:R[:tokens], different, script:CODE:SHARE[:source|target],
        nfc, nfd, nfkc, nfkd, paracrawl, clean_en_xx[:source|target], MODULE:FUNCTION (default:
        none, or those of the job file)
    counts: instead of text: add up folders of earlier counts
    pieces: count the pieces that codes make of the text, into a table `piece count`, and write
        their ids next to the codes: X.vocab next to X.codes
    vocab: with --pieces: the codes
    special_tokens: with --pieces: what has the first ids (default: <pad>,</s>,<unk>)
    vocabulary_threshold: with --pieces: pieces that occur less often get no ids (default: 1;
        subword-nmt has this where text is encoded)
    side: which side of the pairs is counted (default: both)
    output: folder for the counts
    scheme: whose tokens are counted; repeated, into OUTPUT/SCHEME of each (default: subword)
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
    vocab_sample: count a sample for the vocabulary: t2t:100MB takes lines of each file as
        Tensor2Tensor's file_byte_budget=1e8 does, of text and bitext, and before any filter;
        uniform:0.1 a tenth of the rows of any format, by their order keys of seed 0 (default:
        all is counted)
    workers: work items in flight in a process, from 1 to 1,024 (default: the cores that this
        process may use, 1 on a cluster)
    max_line_size: the longest line that is read, in bytes without its end, up to 1GiB; memory
        for 16 times as much may be needed (default: 16MiB)
    on_error: at a line that is not UTF-8, lacks a column or is too long: stop, or skip: leave
        it out and keep it in rejected/SPLIT.REASON.jsonl; 100 or 0.5% skips so many lines, or
        this share of those read, and stops once it is sure that there are more (default: stop)
    keep_rejected: keep what --clean drops too, in rejected/SPLIT.FILTER.jsonl
    work: where a learner on Beam keeps its rounds and the shuffle its runs, to resume from,
        until the output is whole, and what is fetched is kept; on a filesystem that every
        worker reaches (default: .tokbeam in the folder of the output)
    overwrite: make the result again, replacing what is there

    Examples:
        >>> options: pipelines.CountKeywords = {'text': 'train.en', 'scheme': 'word'}
        >>> pipelines.count(output='counts', **options).manifest.lines[0].examples
        400
    """

    counts: Path | Sequence[Path]
    pieces: bool
    vocab: Path | None
    special_tokens: str | Sequence[object] | None
    vocabulary_threshold: int
    side: Literal['inputs', 'targets', 'both'] | None
    scheme: str | Sequence[str]
    vocab_sample: str | None


class VocabKeywords(_JobKeywords, _ReadingKeywords, _LearningKeywords, total=False):
    """The options of `tokbeam vocab`.

    source: source side, a sentence a line, or <seg>s in documents where the names end in .sgm
    target: target side, the same number of files, with the same lines or ids
    tsv: pairs in tab-separated columns
    jsonl: JSON lines, an object on each line
    parquet: Parquet files, a row each
    tmx: TMX files, a row for each translation unit
    text: text, a line each; without --line-labels it is the targets
    line_labels: labels of the lines of --text, the same number of files and of lines: whole
        numbers, or names with --labels
    keep: other fields, which become features of each example by their own names or by others:
        bytes, or int64 or floats where :int or :float follows (default: none)
    label: field with a whole number, or with any number where :float follows: it is the
        targets, and the text the inputs (default: none)
    labels: with --label or --line-labels: a file with a name on each line; labels are names
        then, and the targets their places from 0 on (default: none)
    columns: column of the text, or of source and target: 0-based, up to 65,535, or by its name
        in the first line of each file, which then is not a row (default: 0,1)
    quoting: csv: a field in double quotes may hold tabs, line feeds, and quotes as two of them;
        such a file is read by one worker (default: none)
    keep_tabs: the last of the columns, by its place in the line, is the rest of the line: tabs
        in it are text (default: no)
    fields: field of the text, or of source and target, of each object or row; dots lead into
        objects, \\. is a dot in a name (default: text)
    entities: decode: &amp;, &lt;, &gt;, &quot;, &apos; and numbers as &#233; become characters;
        keep: they stay, as in Tensor2Tensor (default: keep)
    languages: for TMX: the languages of source and target, or of a text; en takes en-US too
        (default: required for TMX)
    markup: for TMX: drop codes of a native format in inline elements, or keep them as text
        (default: drop)
    clean: filters of the rows, which act in this order (`tokbeam help filters` explains them):
        length:MIN:MAX[:tokens], ratio:R[:tokens], different, script:CODE:SHARE[:source|target],
        nfc, nfd, nfkc, nfkd, paracrawl, clean_en_xx[:source|target], MODULE:FUNCTION (default:
        none, or those of the job file)
    counts: instead of text: folders of `tokbeam count`, Parquet files with columns token and
        count, or text with a token and its count on a line; each may have a weight, as en=0.7,
        or a whole factor, as en=2x
    parity: for bytes of bpe: a development text of each of --counts, in their order; at each
        merge, the language whose text has the most pieces chooses the pair
    side: which side of the pairs is counted (default: both)
    output: vocabulary file to write
    vocab_sample: count a sample for the vocabulary: t2t:100MB takes lines of each file as
        Tensor2Tensor's file_byte_budget=1e8 does, of text and bitext, and before any filter;
        uniform:0.1 a tenth of the rows of any format, by their order keys of seed 0 (default:
        all is counted)
    temperature: weight each dataset by its share of all bytes to the power of 1/T, as
        multilingual BERT and XLM do: with 1 each counts as it is, and the larger T is, the more
        small ones count (default: no weights)
    scheme: how text becomes ids (default: subword)
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
    workers: work items in flight in a process, from 1 to 1,024 (default: the cores that this
        process may use, 1 on a cluster)
    max_line_size: the longest line that is read, in bytes without its end, up to 1GiB; memory
        for 16 times as much may be needed (default: 16MiB)
    on_error: at a line that is not UTF-8, lacks a column or is too long: stop, or skip: leave
        it out and keep it in rejected/SPLIT.REASON.jsonl; 100 or 0.5% skips so many lines, or
        this share of those read, and stops once it is sure that there are more (default: stop)
    keep_rejected: keep what --clean drops too, in rejected/SPLIT.FILTER.jsonl
    work: where a learner on Beam keeps its rounds and the shuffle its runs, to resume from,
        until the output is whole, and what is fetched is kept; on a filesystem that every
        worker reaches (default: .tokbeam in the folder of the output)
    overwrite: make the result again, replacing what is there
    memory: memory of the whole job, locally no more than there is; buffers and threads are cut
        down to it, and a learner that needs more goes in rounds or on Beam (default: what is
        free, on a cluster no limit)

    Examples:
        >>> options: pipelines.VocabKeywords = {'scheme': 'word', 'vocab_size': 100}
        >>> result = pipelines.vocab(text='train.en', output='frequent.txt', **options)
        >>> tokcore.load_tokenizer(result.path)
        WordTokenizer(vocab_size=100, begin=1, end=2, unknown=0)
    """

    counts: Path | Sequence[Path]
    parity: Path | Sequence[Path]
    side: Literal['inputs', 'targets', 'both'] | None
    vocab_sample: str | None
    special_tokens: str | Sequence[object] | None
    memory: int | str | None


class EncodeKeywords(_JobKeywords, _ReadingKeywords, _SplitKeywords, _DatasetKeywords, total=False):
    """The options of `tokbeam encode`.

    source: source side, a sentence a line, or <seg>s in documents where the names end in .sgm
    target: target side, the same number of files, with the same lines or ids
    tsv: pairs in tab-separated columns
    jsonl: JSON lines, an object on each line
    parquet: Parquet files, a row each
    tmx: TMX files, a row for each translation unit
    text: text, a line each; without --line-labels it is the targets
    line_labels: labels of the lines of --text, the same number of files and of lines: whole
        numbers, or names with --labels
    keep: other fields, which become features of each example by their own names or by others:
        bytes, or int64 or floats where :int or :float follows (default: none)
    label: field with a whole number, or with any number where :float follows: it is the
        targets, and the text the inputs (default: none)
    labels: with --label or --line-labels: a file with a name on each line; labels are names
        then, and the targets their places from 0 on (default: none)
    columns: column of the text, or of source and target: 0-based, up to 65,535, or by its name
        in the first line of each file, which then is not a row (default: 0,1)
    quoting: csv: a field in double quotes may hold tabs, line feeds, and quotes as two of them;
        such a file is read by one worker (default: none)
    keep_tabs: the last of the columns, by its place in the line, is the rest of the line: tabs
        in it are text (default: no)
    fields: field of the text, or of source and target, of each object or row; dots lead into
        objects, \\. is a dot in a name (default: text)
    entities: decode: &amp;, &lt;, &gt;, &quot;, &apos; and numbers as &#233; become characters;
        keep: they stay, as in Tensor2Tensor (default: keep)
    languages: for TMX: the languages of source and target, or of a text; en takes en-US too
        (default: required for TMX)
    markup: for TMX: drop codes of a native format in inline elements, or keep them as text
        (default: drop)
    clean: filters of the rows, which act in this order (`tokbeam help filters` explains them):
        length:MIN:MAX[:tokens], ratio:R[:tokens], different, script:CODE:SHARE[:source|target],
        nfc, nfd, nfkc, nfkd, paracrawl, clean_en_xx[:source|target], MODULE:FUNCTION (default:
        none, or those of the job file)
    dev: development corpus, of the same format as the training corpus and with the same options
        of it
    dev_source: source side of the development corpus
    dev_target: target side of the development corpus
    test: test corpus, as --dev
    test_source: source side of the test corpus
    test_target: target side of the test corpus
    vocab: vocabulary of all sides, or one of the source and one of the target: a file, the
        folder of a tokenizer, or hf://OWNER/NAME
    scheme: how text becomes ids (default: the one recorded next to the vocabulary, else the one
        that its file has the form of)
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
    name: name of the dataset, in its file names
    shards: training shards, from 1 to 100,000; other splits have one (default: 10)
    dev_share: cut this share of the rows off the training corpus as the dev split, as 1%: by a
        key of each row and --seed; the vocabulary is learned from the others
    test_share: cut this share of the rows off the training corpus as the test split, as 1%: by
        a key of each row and --seed; the vocabulary is learned from the others
    source_prefix: put before each source text; a reserved or special token of the vocabulary in
        it gets its id, as <2zh> in "<2zh> "
    target_prefix: put before each target text, as --source-prefix
    seed: seed of the shuffle, from 0 to 2^64 - 1 (default: 0)
    output_format: what shards are: TFRecords of tf.train.Example; aligned text, one file for
        each side, pieces between blanks; Parquet with columns list<int32>; .bin and .idx of
        Megatron; flat, ids one after another as .npy without a header, with a .csv.gz of
        documents; nanogpt, likewise train.bin, and val.bin of the dev split, for nanoGPT;
        packed, TFRecords with several rows in each, of --pack ids; joined, TFRecords of --pack
        ids with BERT's input_ids, input_mask and segment_ids; or ArrayRecord, for grain
        (default: tfrecord)
    pack: with --output-format packed: ids of a packed row at most, from 1 to 4,194,304; longer
        texts are cut, longer pairs left out; with --output-format joined: ids of a row, at
        least 3; longer pairs are cut
    leave_out: leave out the rows of this list, with an address on each line, FILE:BYTE, as
        where --json gives it
    end: the token, or its id, that follows each document in megatron, flat and nanogpt, and
        where rows are packed as they are read; none: nothing does (default: the vocabulary's)
    output: folder for the result
    workers: work items in flight in a process, from 1 to 1,024 (default: the cores that this
        process may use, 1 on a cluster)
    max_line_size: the longest line that is read, in bytes without its end, up to 1GiB; memory
        for 16 times as much may be needed (default: 16MiB)
    on_error: at a line that is not UTF-8, lacks a column or is too long: stop, or skip: leave
        it out and keep it in rejected/SPLIT.REASON.jsonl; 100 or 0.5% skips so many lines, or
        this share of those read, and stops once it is sure that there are more (default: stop)
    keep_rejected: keep what --clean drops too, in rejected/SPLIT.FILTER.jsonl
    work: where a learner on Beam keeps its rounds and the shuffle its runs, to resume from,
        until the output is whole, and what is fetched is kept; on a filesystem that every
        worker reaches (default: .tokbeam in the folder of the output)
    overwrite: make the result again, replacing what is there
    memory: memory of the whole job, locally no more than there is; buffers and threads are cut
        down to it, and a learner that needs more goes in rounds or on Beam (default: what is
        free, on a cluster no limit)
    max_unknown: stop before any work if more of the ids in a sample of the text are unknown
        tokens, or bytes that become no id; a vocabulary learned from the same text is only
        warned of (default: 20%)

    Examples:
        >>> options: pipelines.EncodeKeywords = {'vocab': 'data/enzh', 'shards': 1}
        >>> result = pipelines.encode(text='dev.en', name='dev', output='data/dev', **options)
        >>> result.manifest.lines[0].examples
        20
    """

    vocab: Path | Sequence[Path]
    scheme: Literal['subword', 'wordpiece', 'bpe', 'word', 'byte', 'unigram', 'pretrained'] | None
    memory: int | str | None
    max_unknown: str


class UpdateKeywords(_JobKeywords, _SplitKeywords, total=False):
    """The options of `tokbeam update`; those of files are as of `EncodeKeywords`.

    job: a job file with the datasets that are added, after all that are there
    remove: remove the rows of this list, with an address on each line, FILE:BYTE, as where
        --json gives it
    workers: files or work items that are read at once, from 1 to 1,024 (default: the cores that
        this process may use)

    Examples:
        >>> options: pipelines.UpdateKeywords = {'source': 'dev.en', 'target': 'dev.zh'}
        >>> result = pipelines.update('data/enzh', output='data/options', **options)
        >>> result.manifest.stage
        'encode'
    """

    job: Path | None
    remove: Path | None
    max_unknown: str
