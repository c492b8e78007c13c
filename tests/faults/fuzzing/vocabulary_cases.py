"""Vocabularies of any bytes: a sentence, or a text that comes back as it was."""

import random

from plain import drawn_text
from plain.lines import NamedText, lines_of, single_rows, without_mark

from tokcore.errors import InputError
from tokcore.subword.text_encoder import SubwordTextEncoder, parse_vocabulary

from . import results
from .room import Room, Violation

_ALPHABET = sorted(
    set('abcdefghijklmnopqrstuvwxyz LTWEOS0123456789.,-_\\;u&<>%小语料第行分段。，é')
)
_PARTS = [
    'the_',
    'of_',
    'and_',
    'a_',
    'lin',
    'line_',
    'word',
    'wor',
    'e_',
    's_',
    ' _',
    '20',
    '语料',
]

SOUND_VOCABULARY = b''.join(
    b"'%b'\n" % subtoken.encode() for subtoken in ['<pad>_', '<EOS>_', *_PARTS, *_ALPHABET]
)
"""A vocabulary that can spell every text, since it has what escaping needs."""

_ODD_LINES = [
    b"''", b"'", b'"', b'', b' ', b"'_'", b"'__'", b"'\\10;_'", b"'\\13;_'", b"'\\55296;_'", b"'\\'",
    b"'\\u'", b"'a_b'", b"'\t'", b"' '", b"'\r'", b"'\x00'", b"'\xe2\x80\xa8'", b"'\xef\xbb\xbf'",
    b"'<pad>_'", b"'<EOS>_'", b"'" + b'x' * 300 + b"'", b'no quotes', b"'\xff'", b"'\xed\xa0\x80'",
    b"'\\1114112;_'", b"'\\99999999999999999999;_'", b"'the_the_'", b"'\\;'", b"'_the'",
]  # fmt: skip
_ODD_IDS = [
    b'-1', b'+1', b'1.0', b'1e3', b'0x1', b'1_0', b'x', b'\xd9\xa3', b'9' * 30, b'9' * 5000, b'\xff',
    b'\xc2\xb2', b'00000000000000000001', b'2147483648', b'18446744073709551616', b'\x00', b"'",
]  # fmt: skip


def attack_vocabularies(room: Room, dice: random.Random) -> None:
    data = _draw_vocabulary(dice)
    room.write('v', data)
    try:
        subtokens = parse_vocabulary(data, 'v')
    except InputError:
        subtokens = None
    command = dice.choice(
        ['tokenize', 'tokenize', 'tokenize', 'detokenize', 'detokenize', 'encode']
    )
    if command == 'tokenize':
        _tokenize(room, dice, subtokens)
    elif command == 'detokenize':
        _detokenize(room, dice, subtokens)
    else:
        _encode(room, dice, subtokens)


def _draw_vocabulary(dice: random.Random) -> bytes:
    how = dice.random()
    if how < 0.4:
        return drawn_text.mutated(dice, SOUND_VOCABULARY)
    if how < 0.45:
        return dice.choice([b'', b'\n', dice.randbytes(500), bytes(300), b"'<pad>_'\n" * 3])
    if how < 0.5:
        return SOUND_VOCABULARY
    lines = SOUND_VOCABULARY.splitlines()
    for _ in range(dice.choice([1, 1, 3, 10])):
        change = dice.randrange(6)
        place = dice.randrange(len(lines)) if lines else 0
        if change == 0:
            del lines[place : place + dice.choice([1, 1, 5])]
        elif change == 1:
            lines[2:] = dice.sample(lines[2:], len(lines[2:]))
        elif change == 2:
            lines.insert(place, dice.choice(_ODD_LINES))
        elif change == 3:
            lines.insert(dice.randrange(2, 99), dice.choice(_ODD_LINES))
        elif change == 4:
            lines += dice.choices(lines, k=3) if lines else []
        elif lines:
            lines[place] = lines[place].strip(b"'")
    ending = dice.choice([b'\n', b'\n', b'\r\n', b' \n', b'\n\n'])
    return ending.join(lines) + dice.choice([ending, b''])


def _tokenize(room: Room, dice: random.Random, subtokens: list[str] | None) -> None:
    text = drawn_text.text(dice)
    with_eos = dice.random() < 0.3
    rows = single_rows([NamedText('', text)], None, 16 << 20)
    must_stop = subtokens is None or rows.rejects
    ended = room.run(
        'tokenize', '--vocab', 'v', *['--template', '$A <EOS>'] * with_eos,
        stdin=text, statuses=[2] if must_stop else [0, 2],
    )  # fmt: skip
    if ended.status:
        return
    encoder = SubwordTextEncoder(subtokens)
    found = [list(map(int, line.split())) for _, line in lines_of(ended.stdout)]
    texts = [without_mark(*line) for line in lines_of(text)]
    texts = [line.replace(b'\r', b'').decode().strip() for line in texts]
    if with_eos:
        if any(ids[-1:] != [1] for ids in found):
            raise Violation('a line does not end with EOS')
        found = [ids[:-1] for ids in found]
    if [encoder.decode(ids) for ids in found] != texts:
        raise Violation('the text does not come back')


def _detokenize(room: Room, dice: random.Random, subtokens: list[str] | None) -> None:
    size = len(subtokens or [0, 0])
    are_odd = dice.random() < 0.3
    lines = []
    for _ in range(dice.choice([0, 1, 5, 50])):
        words = [b'%d' % dice.randrange(size) for _ in range(dice.choice([0, 1, 5, 30]))]
        if are_odd and dice.random() < 0.2:
            words.insert(dice.randint(0, len(words)), dice.choice(_ODD_IDS))
        lines.append(dice.choice([b' ', b' ', b'  ', b'\t']).join(words))
    text = b'\n'.join(lines) + (b'\n' if lines and dice.random() < 0.8 else b'')
    statuses = [2] if subtokens is None else [0, 2]
    ended = room.run('detokenize', '--vocab', 'v', stdin=text, statuses=statuses)
    if ended.status:
        return
    encoder = SubwordTextEncoder(subtokens)
    found = [line for _, line in lines_of(ended.stdout)]
    if len(found) != len(lines_of(text)):
        raise Violation(f'{len(lines_of(text))} lines in, {len(found)} out')
    for line, (_, given) in zip(found, lines_of(text)):
        text = encoder.decode(map(int, given.split()), strip_extraneous=True)
        # What no line of UTF-8 can hold: its end, and half a surrogate pair.
        text = text.replace('\n', ' ').encode('utf-16-le', 'surrogatepass')
        if line != text.decode('utf-16-le', 'replace').encode():
            raise Violation(f'{given!r} gives {line!r}')


def _encode(room: Room, dice: random.Random, subtokens: list[str] | None) -> None:
    text = b''.join(drawn_text.line(dice, 0) + b'\n' for _ in range(20))
    room.write('text', text)
    ended = room.run(
        'encode', '--vocab', 'v', '--text', 'text', '--name', 'n', '--shards', 2, '--output', 'out',
        statuses=[2] if subtokens is None else [0, 2], may_change=['out'],
    )  # fmt: skip
    if ended.status == 0:
        rows = single_rows([NamedText('text', text)], None, 16 << 20)
        encoders = [SubwordTextEncoder(subtokens)]
        results.check_dataset(room.here / 'out', 'n', {'train': 2}, {'train': rows}, encoders, [''])
