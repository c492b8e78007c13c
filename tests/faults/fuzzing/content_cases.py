"""Files whose content and name disagree: each is read as what its content is, or refused by its name."""

import gzip
import pickle
import random
from collections.abc import Callable

from plain import contents as content_rules
from plain.contents import READ, REFUSED
from plain.formats import FORMATS, DrawnRows

from .archives import MEMBERS, PACKERS
from .containers import CONTAINERS
from .format_cases import NOT_KNOWN, count_drawn
from .room import Room, Violation

_LONGEST = 16 << 20  # the default of --max-line-size

_NAMES = [
    '', '.txt', '.gz', '.tgz', '.tar', '.zip', '.bz2', '.zst', '.tar.xz', '.taz', '.tar.Z', '.7z', '.pdf',
    '.html', '.parquet', '.tsv', '.tar.gz.part', '.GZ', ' (1).tgz',
]  # fmt: skip


def _page(dice: random.Random) -> bytes:
    return dice.choice([b'<!DOCTYPE html>\n', b'\n<html lang="en">\n']) + b'<p>404</p>\n'


_FOREIGN: dict[str, Callable[[random.Random], bytes]] = {
    'a PDF document': lambda dice: b'%PDF-1.5\n%' + dice.randbytes(900),
    'a program': lambda dice: b'\x7fELF\2\1\1' + bytes(9) + dice.randbytes(900),
    'an image': lambda dice: b'\x89PNG\r\n\x1a\n' + dice.randbytes(900),
    'a pickle of Python': lambda dice: pickle.dumps(
        [dice.randrange(99) for _ in range(dice.randint(0, 50))], dice.choice([2, 3, 4, 5])
    ),
    'a NumPy array': lambda dice: b'\x93NUMPY\1\0v\0' + dice.randbytes(900),
    'a 7z archive': lambda dice: b'7z\xbc\xaf\x27\x1c\0\4' + dice.randbytes(900),
    'a rar archive': lambda dice: b'Rar!\x1a\7\1\0' + dice.randbytes(900),
    'a file of compress (.Z)': lambda dice: b'\x1f\x9d\x90' + dice.randbytes(900),
    'an SQLite database': lambda dice: b'SQLite format 3\0' + dice.randbytes(900),
    'an Avro file': lambda dice: b'Obj\1' + dice.randbytes(900),
    'a web page (HTML)': _page,
}


def attack_contents(room: Room, dice: random.Random) -> None:
    """Counts a corpus of one format, of which one file is stored in any way under any name."""
    drawn = FORMATS[dice.choice(list(FORMATS))](dice)
    odd = dice.randrange(len(drawn.files))
    words, paths, texts = [], [], []
    reason = ''
    for place, (role, text) in enumerate(drawn.files.items()):
        known_by = '.sgm' if role.startswith('sgm-') else ''  # SGM is known by its name
        name, inside, stored = f'corpus.{role}{known_by}', '', text
        if place == odd:
            name += dice.choice(_NAMES)
            stored, inside, reason = _stored(dice, drawn, text, name)
        room.write(name, stored)
        words += [f'--{role.removeprefix("sgm-")}', name + inside]
        paths.append(name + inside)
        texts.append(text)
    words += [*drawn.words, '--on-error=skip']
    expected = drawn.rows_of([*zip(paths, texts, strict=True)], _LONGEST)
    expected = expected if expected and expected.rows else None
    if reason:
        others = [text for place, text in enumerate(texts) if place != odd]
        is_first = content_rules.joint_verdict(others) == READ  # or another file may be the reason
        _refuse(room, words, reason if is_first else '')
        return
    verdict = content_rules.joint_verdict(texts)
    if 'parquet' in drawn.files or verdict == READ:
        count_drawn(room, words, paths, drawn.sides, expected)
    else:
        count_drawn(room, words, paths, drawn.sides, None if verdict == REFUSED else NOT_KNOWN)


def _stored(
    dice: random.Random, drawn: DrawnRows, text: bytes, name: str
) -> tuple[bytes, str, str]:
    """Returns how a text is stored, what follows the file's name, and what a refusal says, if it is one."""
    how = dice.random()
    if how < 0.25:
        reason = dice.choice(list(_FOREIGN))
        data = _FOREIGN[reason](dice)
        if name.endswith('.html') and data.lstrip().startswith(b'<'):
            return text, '', ''
        return (gzip.compress(data), '', reason) if dice.random() < 0.5 else (data, '', reason)
    if how < 0.35 and 'parquet' not in drawn.files and 'tmx' not in drawn.files:
        encoding = dice.choice(['utf-16', 'utf-16-le', 'utf-16-be', 'utf-32', 'utf-32-be'])
        line = 'some text of a corpus\n' * dice.randint(1, 20)
        data = (line + text.decode('utf-8', 'replace')).encode(encoding)
        return data, '', 'iconv -f UTF-'
    if not drawn.is_packed:
        return text, '', ''
    if how < 0.7:
        ending, member = dice.choice(list(PACKERS)), dice.choice(MEMBERS)
        archive = PACKERS[ending](dice, text, member)
        then = dice.random()
        if then < 0.25:
            return archive, '', 'name its members'
        if then < 0.4:
            return (
                PACKERS[dice.choice(list(PACKERS))](dice, archive, member),
                f'!{member}',
                'within an',
            )
        return archive, f'!{member}', ''
    container = CONTAINERS[dice.choice(list(CONTAINERS))]
    stored = container.pack(dice, text)
    if container.ending and stored and dice.random() < 0.2:
        return gzip.compress(stored), '', 'compressed twice'
    return stored, '', ''


def _refuse(room: Room, words: list[str], reason: str) -> None:
    ended = room.run('count', *words, '--output', 'counts', statuses=[2])
    if reason not in ended.complaints[0]:
        raise Violation(f'not refused as {reason!r}: {ended.complaints[0]}')
