r"""The patterns by which models cut text into tokens, by name: regular expressions over classes.

A pattern is one expression, or several of which each cuts the tokens of the one before; or `none`,
so that a text is one token. A line of
`DEFINITIONS` is all that a new one needs, with its name in `Pattern`: the package `regex` then cuts
rows (`text.regex_splits`). Where the line has `PatternRules`, a kernel does (`text.byte_level_scan`),
also after expressions of `RUNS` (`text.split_sequence`),
and characters are of the classes of this Python's `unicodedata`, since that is what the kernel reads;
otherwise they are of those of `regex`, which may know more letters.

Llama 3 spells cl100k's in another way. They differ in one case: white space at the end of a text is
one token by cl100k's, and by Llama 3's two, if it has a line break and does not end with it.
"""

from __future__ import annotations

import functools
import typing
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from tokcore.text.expression_trees import Tree, spelled
from tokcore.text.expressions import fancy_regex, oniguruma

Pattern = Literal[
    'gpt2', 'cl100k', 'llama3', 'qwen2', 'qwen3.5', 'o200k', 'tekken', 'deepseek', 'none'
]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

WHITE_SPACE = ''.join(
    map(
        chr,
        [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
        + [0x2028, 0x2029, 0x202F, 0x205F, 0x3000],
    )
)
r"""Unicode's White_Space, which is `\s` in the engines that these patterns are written for.

Python's `str.isspace` includes U+001C to U+001F too."""


class PatternRules(NamedTuple):
    """What the kernel needs to know of a pattern.

    Attributes:
        words: how tokens of letters begin: 'blank', after one U+0020; 'any', after one character that
            is not a letter, number or line break; 'cased', likewise, and a token ends before the capital
            letters of the next word; 'punctuated', after one character that is not a letter, punctuation,
            symbol or line break, and A to Z also after one punctuation mark of ASCII. Numbers and
            control characters that no letter follows are then what lies between tokens.
        most_digits: numbers in a token; 0 for any number of them.
        ends_at_break: whether white space at a text's end is cut after its last line break.
        marks_are_letters: whether combining marks (M*) are of the class of letters.
        contractions: where "'s" and the like are tokens: 'lower case' or 'any case', of their own;
            'word', as the end of a word; 'none', nowhere.
    """

    words: Literal['blank', 'any', 'cased', 'punctuated']
    most_digits: int
    ends_at_break: bool = True
    marks_are_letters: bool = False
    contractions: Literal['lower case', 'any case', 'word', 'none'] = 'any case'


class PatternDefinition(NamedTuple):
    """The expressions of a pattern, as a tokenizer.json has them; and its kernel, if there is one.

    The rules are of the last expression; those before it are of `RUNS`.
    """

    expressions: tuple[str, ...]
    rules: PatternRules | None = None


class RunRules(NamedTuple):
    """What the kernel needs to know of an expression that finds runs of characters.

    Attributes:
        characters: which: categories N*; U+3040 to U+30FF and U+4E00 to U+9FA5; `PUNCTUATION`.
        most: how many of them are a token at most; 0 for any number.
    """

    characters: Literal['numbers', 'kana and ideographs', 'punctuation']
    most: int


class SequenceRules(NamedTuple):
    """What the kernel needs to know of several expressions.

    Attributes:
        runs: of the first ones, no two of which find the same character.
        pattern: of the last one, which cuts runs too; None: there is no such expression.
    """

    runs: tuple[RunRules, ...]
    pattern: PatternRules | None


_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r'[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]', r'[\p{Ll}\p{Lm}\p{Lo}\p{M}]'
_BREAKS_AND_BLANKS = r'|\s*[\r\n]+|\s+(?!\S)|\s+'


def _cased(ending: str, digits: str) -> str:
    before = r'[^\r\n\p{L}\p{N}]?'
    return (
        f'{before}{_UPPER}*{_LOWER}+{ending}|{before}{_UPPER}+{_LOWER}*{ending}|{digits}'
        rf'| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{_BREAKS_AND_BLANKS}'
    )


KANA_AND_IDEOGRAPHS = '[一-龥\u3040-ゟ゠-ヿ]'
ONCE_PUNCTUATION = '\u166d\U000111c9'
"""What was punctuation in Unicode 8, and is not any more."""

# Between the first and the last of each range, Unicode 8 has no punctuation.
_NEWER_PUNCTUATION = (
    '\u061d\u09fd-\u0a76\u0c77-\u0c84\u1b4e-\u1b4f\u1b7d-\u1b7f\u2e43-\u2e5d\U00010d6e-\U00010f89'
    '\U000113d4-\U0001145d\U00011660-\U000116b9\U0001183b-\U00011fff\U00012ff1-\U00012ff2'
    '\U00016d6d-\U00016fe2\U0001e5ff-\U0001e95f'
)
PUNCTUATION = rf'[!-/:-@\[-`{{-~{ONCE_PUNCTUATION}[\p{{P}}&&[^{_NEWER_PUNCTUATION}]]]'
"""That of `Punctuation` and `BertPreTokenizer`: of ASCII, and what was punctuation in Unicode 8."""

RUNS: dict[str, RunRules] = {
    r'\p{N}': RunRules('numbers', 1),
    r'\p{N}{1,3}': RunRules('numbers', 3),
    r'\p{N}+': RunRules('numbers', 0),
    f'{KANA_AND_IDEOGRAPHS}+': RunRules('kana and ideographs', 0),
    PUNCTUATION: RunRules('punctuation', 1),
    f'{PUNCTUATION}+': RunRules('punctuation', 0),
}
"""The expressions, as Oniguruma has them, that kernels cut text by before a pattern."""

DEFINITIONS: dict[Pattern, PatternDefinition] = {
    'gpt2': PatternDefinition(
        (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",),
        PatternRules('blank', 0, contractions='lower case'),
    ),
    'cl100k': PatternDefinition(
        (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}"
         r'| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s',),
        PatternRules('any', 3, ends_at_break=False),
    ),
    'llama3': PatternDefinition(
        (rf'{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}'
         rf'| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{_BREAKS_AND_BLANKS}',),
        PatternRules('any', 3),
    ),
    'qwen2': PatternDefinition(
        (rf'{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}'
         rf'| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{_BREAKS_AND_BLANKS}',),
        PatternRules('any', 1),
    ),
    'qwen3.5': PatternDefinition(
        (rf'{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}'
         rf'| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*{_BREAKS_AND_BLANKS}',),
        PatternRules('any', 1, marks_are_letters=True),
    ),
    'o200k': PatternDefinition(
        (_cased(f'{_CONTRACTIONS}?', r'\p{N}{1,3}'),),
        PatternRules('cased', 3, contractions='word'),
    ),
    'tekken': PatternDefinition(
        (_cased('', r'\p{N}'),), PatternRules('cased', 1, contractions='none')
    ),
    'deepseek': PatternDefinition(
        (r'\p{N}{1,3}',
         f'{KANA_AND_IDEOGRAPHS}+',
         r'[!"#$%&' r"'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
         r'| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+'),
        PatternRules('punctuated', 0, marks_are_letters=True, contractions='none'),
    ),
    'none': PatternDefinition(()),
}  # fmt: skip

DIGITS = {False: r'\p{N}+', True: r'\p{N}'}
"""The expressions of the pre-tokenizer `Digits` of tokenizers, by its `individual_digits`."""

_OTHER_SPELLINGS: dict[Pattern, str] = {
    'gpt2': r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
}
"""The spellings in tiktoken. They cut all text in the same way, though their trees differ."""


def pattern_trees(pattern: Pattern) -> tuple[Tree, ...]:
    """Returns the trees of a pattern's expressions."""
    return tuple(map(oniguruma, DEFINITIONS[pattern].expressions))


@functools.cache
def _names() -> dict[tuple[Tree | None, ...], Pattern]:
    """Returns the names of patterns by their trees, which are not the same in each dialect."""
    spelled_by = [(name, definition.expressions) for name, definition in DEFINITIONS.items()]
    spelled_by += [(name, (expression,)) for name, expression in _OTHER_SPELLINGS.items()]
    return {
        tuple(map(read, expressions)): name
        for read in (oniguruma, fancy_regex)
        for name, expressions in spelled_by
    }


@functools.cache
def _kernel_rules() -> tuple[dict[Tree | None, RunRules], dict[Tree | None, PatternRules]]:
    """Returns what kernels need to know of the trees of runs, and of those that end patterns."""
    ends = {trees[-1]: DEFINITIONS[name].rules for trees, name in _names().items() if trees}
    return (
        {oniguruma(expression): rules for expression, rules in RUNS.items()},
        {tree: rules for tree, rules in ends.items() if rules is not None},
    )


_REPRESENTATIVES = {
    'Lu': 'É', 'Lt': 'ǅ', 'Ll': 'é', 'Lm': 'ʰ', 'Lo': 'ª', 'M': '\u0301', 'N': '²', 'P': '—', 'S': '€',
}  # fmt: skip


def named_pattern(trees: Sequence[Tree | None]) -> Pattern | None:
    """Returns the name of the pattern that has these expressions, or None."""
    return _names().get(tuple(trees))


def expressions_of(patterns: Sequence[str]) -> tuple[str, ...]:
    """Returns the expressions of patterns, named or written out; each cuts the tokens of the one before."""
    named = typing.cast(dict[str, PatternDefinition], DEFINITIONS)
    return tuple(
        text
        for pattern in patterns
        for text in (named[pattern].expressions if pattern in named else (pattern,))
    )


def patterns_of(expressions: Sequence[str]) -> tuple[str, ...]:
    """Returns the patterns of expressions for Oniguruma, by name where they have one.

    Raises:
        ExpressionError: one of them has something that its grammar lacks.
    """
    trees = [*map(oniguruma, expressions)]
    if whole := named_pattern(trees):
        return (whole,)
    return tuple(
        named_pattern([tree]) or text for tree, text in zip(trees, expressions, strict=True)
    )


def sequence_rules(trees: Sequence[Tree | None]) -> SequenceRules | None:
    """Returns what a kernel needs to know of a sequence of expressions that begins with runs.

    None if there is no such kernel: an expression has no rules, or two of them are of the same
    characters, or it does not begin with runs.
    """
    of_runs, ends = _kernel_rules()
    count = next((n for n, tree in enumerate(trees) if tree not in of_runs), len(trees))
    runs, rest = tuple(of_runs[tree] for tree in trees[:count]), trees[count:]
    if not runs or len(rest) > 1 or not all(tree in ends for tree in rest):
        return None
    characters = {rules.characters for rules in runs}
    # A few kana are punctuation.
    if len(characters) < len(runs) or {'kana and ideographs', 'punctuation'} <= characters:
        return None
    return SequenceRules(runs, ends[rest[0]] if rest else None)


def split(text: str, pattern: Pattern = 'gpt2') -> list[str]:
    r"""Returns the tokens of a text; joined, they are the text.

    >>> split("don't  stop,\tok")
    ['don', "'t", ' ', ' stop', ',', '\t', 'ok']

    >>> split("12345 DON'T\tok", 'cl100k')
    ['123', '45', ' DON', "'T", '\tok']

    >>> split("HelloWorld it's", 'o200k')
    ['Hello', 'World', " it's"]
    """
    definition = DEFINITIONS[pattern]
    return split_by(text, pattern_trees(pattern), has_kernel=definition.rules is not None)


def split_by(text: str, trees: Sequence[Tree], has_kernel: bool = True) -> list[str]:
    """Returns the tokens of a text by expressions, of which each cuts the tokens of the one before.

    Args:
        text: the text.
        trees: the expressions.
        has_kernel: whether characters are of this Python's classes, as for kernels.
    """
    from tokcore.text.regex_splits import Split, cut

    shown = text
    if has_kernel:
        # `regex` has Unicode tables of its own, so each character becomes one of its class here.
        shown = text.translate(_TABLE)
    return [text[start:end] for start, end in cut(shown, [Split(spelled(tree)) for tree in trees])]


class _Representatives(dict[int, str]):
    """The table for `str.translate`: a code point to the character that represents its class."""

    def __missing__(self, code: int) -> str:
        from tokcore.text.unicode import age_table

        character = chr(code)
        category = unicodedata.category(character)
        # Expressions name these by themselves. ſ is an s where case is ignored.
        if code < 0x80 or character == 'ſ' or '\u3040' <= character <= '\u30ff':
            shown = character
        elif '一' <= character <= '龥':
            shown = '一'
        elif character in WHITE_SPACE:
            shown = '\t'
        elif character in ONCE_PUNCTUATION or (category[0] == 'P' and age_table()[code] > 8):
            shown = character
        else:
            shown = _REPRESENTATIVES.get(category) or _REPRESENTATIVES.get(category[0], '\0')
        return self.setdefault(code, shown)


_TABLE = _Representatives()
