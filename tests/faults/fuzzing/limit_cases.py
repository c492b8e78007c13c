"""Writing that fails at any byte, as on a full disk: a sentence, and the same command goes on."""

import random

from plain import drawn_text
from plain.lines import NamedText, single_rows

from tokcore.subword.text_encoder import SubwordTextEncoder

from . import results
from .room import Room
from .vocabulary_cases import SOUND_VOCABULARY

_LEAST = 1200  # bytes, which what is said needs too


def attack_limits(room: Room, dice: random.Random) -> None:
    lines = [drawn_text.line(dice, 0.02) for _ in range(dice.choice([50, 300, 2000]))]
    text = b'\n'.join(lines)
    room.write('text', text)
    room.write('vocab', SOUND_VOCABULARY)
    command = dice.choice(['count', 'encode', 'encode', 'build', 'vocab'])
    output = {'count': 'counts', 'vocab': 'vocab.x'}.get(command, 'out')
    line = [command, '--text', 'text', '--on-error', 'skip', '--output', output]
    if command in ('build', 'vocab'):
        line += ['--vocab-size', '900', '--min-count-range', '1:2']
    if command == 'encode':
        line += ['--vocab', 'vocab']
    if command in ('encode', 'build'):
        line += ['--name', 'n', '--shards', '2', '@item-size', str(max(1, len(text) // 20))]
        line += dice.choice([['@shuffle', 'engine'], ['@buffer', '4KiB'], []])
    limits = {'FSIZE': round(_LEAST * 1.2 ** dice.uniform(0, 24))}
    if dice.random() < 0.2:
        limits = {'NOFILE': dice.randint(12, 60)}
    made = [
        output,
        *(f'{output}{end}' for end in ('.tokbeam.json', '.tokbeam.run.json', '.rejected')),
    ]
    room.run(
        *line, limits=limits, may_change=made, may_finish=['out/counts'], may_keep=['out/.tokbeam'],
    )  # fmt: skip
    room.run(*line, statuses=[0], may_change=made)
    rows = single_rows([NamedText('text', text)], None, 16 << 20)
    if command == 'count':
        results.check_counts(room.here / 'counts', rows, (0,))
    elif command == 'encode':
        encoder = SubwordTextEncoder.load(room.here / 'vocab')
        results.check_dataset(
            room.here / 'out', 'n', {'train': 2}, {'train': rows}, [encoder], ['']
        )
    elif command == 'build':
        encoder = SubwordTextEncoder.load(room.here / 'out' / 'vocab.n.900.subwords')
        results.check_dataset(
            room.here / 'out', 'n', {'train': 2}, {'train': rows}, [encoder], ['']
        )
