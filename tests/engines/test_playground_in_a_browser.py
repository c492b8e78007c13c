"""The playground in headless Chromium: its ids are tokbeam's, whose Unicode is another than the browser's."""

import base64
import dataclasses
import json
import random
import re
import shutil
import subprocess

import pytest
from generated_text import chinese_lines, english_lines
from jobs import succeed
from plain.drawn_text import sentence, wild_character

import tokcore
from tokcore.bpe.vocabulary import AddedToken
from tokcore.text.byte_level import token_bytes

CHROMIUM = shutil.which('chromium')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason='chromium is not installed: apt install chromium'),
]

LINES = 1_000

ODD = [
    *"\t\n\r\x0b\x1c\x7f\x85\xa0\xad\u180e\u200b\u200d\u2028\u2029\u3000\ufeff\ufffd\uffff'_\\/#",
    *'ſKΩΣσςİıǅßẞΐﬁ½²Ⅷ٣〇ーゝ゠・々𑇉᙭🄰',  # noqa: RUF001
    *'\u0301\u0323\u0345\u05b0\u0e31\u093c\u1161\u11a8\u3099',
    *(
        '가',
        '한',
        '각',
        'Å',
        'ế',
        'क़',
        '\U0002f800',
        '\U00011382\U000113c9',
        '\U0001e4d0',
        '👨‍👩‍👧',
    ),
    *(
        "it's",
        "DON'T",
        "'ſ",
        "'LL",
        "x'Re",
        'HelloWorld',
        'ⅠⅡ',
        '12345',
        '3.14',
        '[MASK]',
        '[UNK]',
        '##s',
    ),
    *(
        '</w>',
        '<|endoftext|>',
        '<call>',
        '<call>>',
        'Å1',
        '\\10;',
        '\\u',
        '小语料',
        'かな',
        'שלום',
        'مرحبا',
    ),
    *('  ', '   ', ' \n', '\n\n', '\r\n', '😀', 'word ' * 30, 'x' * 101, 'ab' * 50, '字' * 20),
]


def drawn_lines(seed):
    """Returns texts of several scripts, with odd characters between; surrogates alone are none."""
    dice = random.Random(seed)
    lines = [*ODD, '', *english_lines(60, seed), *chinese_lines(60, seed)]
    while len(lines) < LINES:
        parts = [
            dice.choice(ODD),
            sentence(dice),
            ''.join(wild_character(dice).decode() for _ in range(dice.randint(1, 6))),
        ]
        lines.append(''.join(dice.choice(parts) for _ in range(dice.randint(1, 8))))
    return lines


VOCABULARIES = {
    'subwords': ['--scheme', 'subword', '--vocab-size', 2500],  # each character is an entry
    'bert': ['--scheme', 'wordpiece'],
    'bert cased': ['--scheme', 'wordpiece', '--no-lower-case', '--no-split-cjk'],
    'bert with accents': ['--scheme', 'wordpiece', '--strip-accents', 'no'],
    'bert cased without accents': [
        *('--scheme', 'wordpiece', '--no-lower-case', '--strip-accents', 'yes'),
    ],
    **{
        name: ['--scheme', 'bpe', '--pre-tokenizer', name]
        for name in ('gpt2', 'cl100k', 'llama3', 'qwen2', 'qwen3.5', 'o200k', 'tekken', 'deepseek', 'none')
    },
    'digits': ['--scheme', 'bpe', '--pattern', 'individual-digits', '--pattern', 'gpt2'],
    'prefix': ['--scheme', 'bpe', '--add-prefix-space'],
    'NFC': ['--scheme', 'bpe', '--unicode-form', 'NFC'],
    'NFKC': ['--scheme', 'bpe', '--pre-tokenizer', 'o200k', '--unicode-form', 'NFKC'],
}  # fmt: skip


@pytest.fixture(scope='session')
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp('corpus') / 'lines.txt'
    lines = [*drawn_lines(1), *english_lines(300, 2), *chinese_lines(300, 2)]
    path.write_text('\n'.join(re.sub(r'[\r\n]', ' ', line) for line in lines) + '\n', newline='')
    return path


@pytest.fixture
def ids_of_page(tmp_path):
    """A function from a vocabulary and texts to the ids that the page has of them, None if it has none."""

    def ids_of(path, texts, *options):
        succeed('export', path, '--to', 'playground', '--output', tmp_path / 'page', *options)
        page = (tmp_path / 'page' / 'index.html').read_text()
        asked = base64.b64encode(json.dumps(texts).encode()).decode()
        script = f"""<script>ready.then(() => {{
          const found = text => {{ try {{ return encode(text); }} catch {{ return null; }} }};
          const ids = JSON.parse(atob('{asked}')).map(found);
          document.body.textContent = `ids ${{JSON.stringify(ids)}} end`;
        }}, error => {{ document.body.textContent = error.message; }});</script></body>"""
        asking = tmp_path / 'asking.html'
        asking.write_text(page.replace('</body>', script))
        return json.loads(re.search('ids (.*) end', dumped(asking), re.DOTALL)[1])

    def dumped(page):
        ended = subprocess.run(
            [
                *(CHROMIUM, '--headless', '--no-sandbox', '--disable-gpu', '--dump-dom'),
                *(f'--user-data-dir={tmp_path / "profile"}', '--virtual-time-budget=60000'),
                page.as_uri(),
            ],
            capture_output=True,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.decode()

    ids_of.dumped = dumped
    return ids_of


def encoded(tokenizer, text):
    try:
        return tokenizer.encode(text)
    except ValueError:
        return None


def check(path, texts, ids_of_page, **options):
    """Compares the page with tokbeam; returns the ids."""
    tokenizer = tokcore.load_tokenizer(path, **options)
    expected = [encoded(tokenizer, text) for text in texts]
    found = ids_of_page(path, texts, *(f'--{name}={value}' for name, value in options.items()))
    rows = zip(texts, found, expected, strict=True)
    assert not [row for row in rows if row[1] != row[2]]
    return expected


@pytest.mark.parametrize('name', VOCABULARIES)
def test_ids_of_a_learned_vocabulary(name, corpus, ids_of_page, tmp_path):
    file = tmp_path / 'vocab.txt'
    options = ['--vocab-size', 1200, *VOCABULARIES[name]]
    succeed('vocab', '--text', corpus, *options, '--output', file)
    expected = check(file, drawn_lines(3), ids_of_page)
    assert len({id_ for ids in expected for id_ in ids or ()}) > 200


@pytest.fixture
def learned(corpus, tmp_path):
    """A function from options to a vocabulary of byte-level BPE in a file."""

    def learn(*options):
        file = tmp_path / 'learned.json'
        more = ['--vocab-size', 1200, *options]
        succeed('vocab', '--text', corpus, '--scheme', 'bpe', *more, '--output', file)
        return file, tokcore.load_tokenizer(file).vocabulary

    return learn


@pytest.mark.parametrize('form', ['NFC', None])
def test_added_tokens_are_found_first(form, learned, ids_of_page, tmp_path):
    """The longest at one place, of equal ones the first, and some in normalized text alone."""
    _, vocabulary = learned(*(['--unicode-form', form] if form else []))
    contents = ['<call>', '\u00c51', '<call>>', 'A\u030a1', ' \n', '가', 'x*']
    added = tuple(
        AddedToken(1200 + number, content, normalized=number % 2 == 1, special=False)
        for number, content in enumerate(contents)
    )
    special = AddedToken(1207, '[MASK]')
    template = {
        'type': 'TemplateProcessing', 'pair': [],
        'single': [{'SpecialToken': {'id': '[MASK]'}}, {'Sequence': {'id': 'A'}}],
        'special_tokens': {'[MASK]': {'id': '[MASK]', 'ids': [1207, 5], 'tokens': []}},
    }  # fmt: skip
    components = {**vocabulary.parts.components, 'post_processor': template}
    parts = dataclasses.replace(vocabulary.parts, components=components)
    file = tmp_path / 'added.json'
    file.write_bytes(dataclasses.replace(vocabulary, added=(*added, special), parts=parts).dump())
    dice = random.Random(4)
    texts = [
        ''.join(
            dice.choices([*contents, 'x', '\u030a', 'A', 'Å', ' ', '\u1161\u11a8', 'the'], k=12)
        )
        for _ in range(LINES // 2)
    ]
    expected = check(file, [*texts, *drawn_lines(5)[: LINES // 2]], ids_of_page)
    ids = {id_ for ids in expected for id_ in ids}
    assert ids >= {*range(1200, 1208)} - ({1203} if form else set())
    assert all(ids[:2] == [1207, 5] and 1207 not in ids[1:] for ids in expected)


@pytest.mark.parametrize('pattern', ['cl100k', 'gpt2', 'none'])
def test_ids_of_ranks(pattern, learned, ids_of_page, tmp_path):
    _, vocabulary = learned()
    tokens = [token_bytes(piece) for piece in vocabulary.pieces[1:]]
    file = tmp_path / 'file.tiktoken'
    file.write_bytes(b''.join(b'%b %d\n' % (base64.b64encode(token), rank) for rank, token in enumerate(tokens)))  # fmt: skip
    texts = [*(token.decode('utf-8', 'replace') for token in tokens[-300:]), *drawn_lines(6)]
    check(file, texts[:LINES], ids_of_page, pattern=pattern)


def test_a_browser_that_encodes_differently_shows_nothing(learned, ids_of_page, tmp_path):
    file, _ = learned()
    succeed('export', file, '--to', 'playground', '--output', tmp_path / 'page')
    page = tmp_path / 'page' / 'index.html'
    shown = ids_of_page.dumped(page).split('<script')[0]
    assert 'class="piece ' in shown and 'sample lines as tokbeam does' in shown
    page.write_text(page.read_text().replace("Lu: 'É'", "Lu: '—'"))
    shown = ids_of_page.dumped(page).split('<script')[0]
    assert 'No ids are shown: this browser encodes' in shown and 'class="piece ' not in shown


def test_the_page_is_alone_and_has_the_same_bytes_again(learned, tmp_path):
    file, _ = learned()
    for name in ('a/page', 'b/page'):
        succeed('export', file, '--to', 'playground', '--output', tmp_path / name)
    first, second = (tmp_path / name / 'index.html' for name in ('a/page', 'b/page'))
    assert [path.name for path in first.parent.iterdir()] == ['index.html']
    assert first.read_bytes() == second.read_bytes()
    assert not re.findall('https?:|src=|href=|@import|url', first.read_text())
