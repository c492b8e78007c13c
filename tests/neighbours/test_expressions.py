"""Expressions cut text as the engines do that tokenizers 0.23 and tiktoken have.

Random ones, TOKBEAM_EXPRESSIONS of each engine (200 of them unless it says otherwise), and those of
published tokenizers with every character that `regex` knows, also newer ones than the engines have: above
1,000 all of them, else a few thousand.
"""

import itertools
import json
import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
import regex
from environments import python_of
from expression_strategies import expressions, known_characters, texts_for
from hypothesis import HealthCheck, assume, given, settings

from tokcore.text.expression_trees import Class, compiled, may_be_empty, spelled
from tokcore.text.expressions import ExpressionError, fancy_regex, oniguruma
from tokcore.text.patterns import DEFINITIONS
from tokcore.text.regex_splits import Split

SCRIPTS = Path(__file__).parent / 'scripts'
COUNT = int(os.environ.get('TOKBEAM_EXPRESSIONS', 200))

_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_NO_HAN = r'\p{M}&&[^\p{Han}]]'
_KIMI = '|'.join(
    [
        r'[\p{Han}]+',
        rf'[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}{_NO_HAN}*[\p{{Ll}}\p{{Lm}}\p{{Lo}}{_NO_HAN}+{_ENDING}',
        rf'[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}{_NO_HAN}+[\p{{Ll}}\p{{Lm}}\p{{Lo}}{_NO_HAN}*{_ENDING}',
        r'\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+',
    ]
)
"""Of Kimi K2's ranks."""

PUBLISHED = [
    *(expression for definition in DEFINITIONS.values() for expression in definition.expressions),
    DEFINITIONS['cl100k'].expressions[0].replace('{1,3}', '{1,3}+'),  # tiktoken's
    _KIMI,
    r' ?[^(\s|[.,!?…。，、।۔،])]+',  # BLOOM's
    r'\d{1,3}(?=(?:\d{3})*\b)',  # Tiny Aya's
    r'[0-9][0-9][0-9]',  # Falcon's
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",  # CLIP's
    r'\w+|[^\w\s]+', r'[[:punct:]]', r'(?<=\D)(?=\d)', r'\b', '^ +', r'[\s\S]', r'\S+\s?', '\n+',
]  # fmt: skip


class Tokenizers:
    """The cuts of `Split`, isolated."""

    def __init__(self, cache):
        python = python_of('tokenizers 0.23', cache)
        self._process = _started([python, SCRIPTS / 'cut_by_tokenizers.py'])

    def cuts(self, expression, texts):
        """Returns the first and last characters of tokens; None if the expression is refused."""
        found = json.loads(_asked(self._process, json.dumps([expression, texts])))
        return found and [without_empty(map(tuple, text)) for text in found]

    @staticmethod
    def ours(tree):
        return Split(spelled(tree)).cuts


class FancyRegex:
    """The matches of `find_iter`."""

    def __init__(self, cache):
        if shutil.which('cargo') is None:
            pytest.skip('there is no cargo to build a program with fancy-regex')
        built = subprocess.run(
            ['cargo', 'build', '--release', '--target-dir', cache / 'fancy_cuts',
             '--manifest-path', _copied(SCRIPTS / 'fancy_cuts', cache / 'fancy_cuts_source')],
            capture_output=True, text=True,
        )  # fmt: skip
        if built.returncode:
            pytest.skip(f'fancy-regex cannot be built here: {built.stderr.strip()[-200:]}')
        self._process = _started([cache / 'fancy_cuts' / 'release' / 'fancy_cuts'])

    def cuts(self, expression, texts):
        """Returns the first and last characters of matches; None if the expression is refused."""
        line = '\t'.join(text.encode().hex() for text in [expression, *texts])
        found = _asked(self._process, line)
        if found == 'refused':
            return None
        return [
            _of_characters(text, matches)
            for text, matches in zip(texts, found.split('\t'), strict=True)
        ]

    @staticmethod
    def ours(tree):
        return Split(spelled(tree), 'Removed', True).cuts


def without_empty(cuts):
    return [cut for cut in cuts if cut[0] < cut[1]]


def _of_characters(text, matches):
    places = itertools.accumulate((len(character.encode()) for character in text), initial=0)
    number = {place: n for n, place in enumerate(places)}
    return [tuple(number[int(place)] for place in match.split('-')) for match in matches.split()]


def _copied(folder, to):
    """Cargo writes a lock file beside what it builds."""
    shutil.copytree(folder, to, dirs_exist_ok=True)
    return to / 'Cargo.toml'


def _started(command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _asked(process, line):
    process.stdin.write(f'{line}\n')
    process.stdin.flush()
    return process.stdout.readline().rstrip('\n')


ENGINES = {'Oniguruma': (Tokenizers, oniguruma), 'fancy-regex': (FancyRegex, fancy_regex)}


@pytest.fixture(scope='module', params=ENGINES)
def engine(request, kept):
    """An engine, and the reader of its dialect."""
    made, read = ENGINES[request.param]
    return made(kept), read


@pytest.fixture(scope='module')
def is_known(engine):
    """Whether a character is assigned in the tables of the engine and of `regex`."""
    characters = known_characters()
    [cuts] = engine[0].cuts(r'\p{Cn}', [''.join(characters)])
    unknown = {''.join(characters)[first:last] for first, last in cuts if last == first + 1}
    unknown |= {*compiled(Class('property', 'Cn')).findall(''.join(characters))}
    return lambda character: character not in unknown


def test_random_expressions(engine, is_known):
    theirs, read = engine
    done = {'compared': 0, 'refused': 0}

    @settings(
        max_examples=COUNT, database=None,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )  # fmt: skip
    @given(expressions(read is oniguruma))
    def same(expression):
        try:
            tree = read(expression)
        except ExpressionError:
            done['refused'] += 1
            return
        assume(read is oniguruma or not may_be_empty(tree))
        texts = texts_for(tree, zlib.crc32(expression.encode()), is_known)
        found = theirs.cuts(expression, texts)
        assume(found is not None)
        done['compared'] += 1
        ours = theirs.ours(tree)
        for text, cuts in zip(texts, found, strict=True):
            assert without_empty(ours(text)) == cuts, (expression, spelled(tree), text)

    same()
    assert done['compared'] > done['refused'] / 2, done


@pytest.mark.parametrize('expression', PUBLISHED)
def test_published_expressions(engine, expression):
    theirs, read = engine
    try:
        tree = read(expression)
    except ExpressionError:
        assert theirs.cuts(expression, ['']) is None
        return
    if read is fancy_regex and may_be_empty(tree):
        pytest.skip('ranks refuse it')
    # A few thousand, beside those at the borders of classes; all of them where all expressions are tried.
    step = 1 if COUNT > 1000 else 97
    everything = ''.join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    characters = regex.findall(r'[^\p{Cn}\p{Co}]', everything)[::step]
    texts = [
        *texts_for(tree, 0, lambda character: not 0xD800 <= ord(character) < 0xE000),
        *characters,
        *(f'a{each}b {each}{each} 1{each}2{each}\n' for each in characters),
        *(''.join(characters[n : n + 200]) for n in range(0, len(characters), 200)),
    ]
    ours = theirs.ours(tree)
    for first in range(0, len(texts), 10_000):
        some = texts[first : first + 10_000]
        for text, cuts in zip(some, theirs.cuts(expression, some), strict=True):
            assert without_empty(ours(text)) == cuts, text
