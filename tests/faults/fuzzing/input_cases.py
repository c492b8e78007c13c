"""Corpora of any bytes through every command: the same rows as by the plain rules, or a sentence."""

import json
import random

from plain.contents import READ, REFUSED, joint_verdict
from plain.lines import SplitRows

from tokcore.subword.text_encoder import SubwordTextEncoder

from . import results
from .drawn_corpora import DrawnSplit, draw_corpus
from .room import Room, entries
from .vocabulary_cases import SOUND_VOCABULARY

_LONGEST = 16 << 20  # the default of --max-line-size
_SIZE = 3000  # above any alphabet here, so that no vocabulary is refused


def attack_inputs(room: Room, dice: random.Random) -> None:
    command = dice.choice(['encode', 'encode', 'count', 'vocab', 'build'])
    names = ['train']
    if command in ('encode', 'build'):
        names += dice.choice([[], [], ['dev'], ['test'], ['dev', 'test']])
    splits = draw_corpus(room, dice, names)
    reading = _draw_reading(dice, splits)
    rows, must_stop = _expect(splits, reading.longest, reading.on_error)
    verdict = joint_verdict(text for split in splits for text in split.texts)
    inputs = [word for split in splits for word in split.arguments()]
    arguments = [command, *inputs, *reading.arguments]
    statuses = [2] if must_stop or verdict == REFUSED else [0] if verdict == READ else [0, 2]
    _RUNS[command](room, dice, arguments, splits, rows, statuses)


class _Reading:
    """How lines are read: what is done about bad ones, and how long they may be."""

    def __init__(self, on_error: str, longest: int, arguments: list[str]):
        self.on_error, self.longest, self.arguments = on_error, longest, arguments


def _draw_reading(dice: random.Random, splits: list[DrawnSplit]) -> _Reading:
    arguments = []
    on_error = dice.choice(['stop', 'skip', 'skip', 'skip'])
    if on_error == 'skip' or dice.random() < 0.5:
        arguments += ['--on-error', on_error]
    longest = _LONGEST
    if dice.random() < 0.3:
        longest = dice.choice([1, 10, 30, 50, 100, 200, 1000, 64 << 10])
        arguments += ['--max-line-size', str(longest)]
    return _Reading(on_error, longest, [*arguments, *_draw_running(dice, splits)])


def _draw_running(dice: random.Random, splits: list[DrawnSplit]) -> list[str]:
    """Options that change no byte."""
    arguments = []
    if dice.random() < 0.7:
        size = max(len(text) for split in splits for text in split.texts)
        # A hundred items at most, each of which takes Beam a millisecond or two.
        arguments += ['@item-size', str(max(size // dice.choice([1, 3, 20, 100]), 1))]
    if dice.random() < 0.7:
        arguments += ['--workers', str(dice.randint(1, 3))]
    return arguments


def _draw_shuffle(dice: random.Random) -> list[str]:
    shuffle = dice.choice(['files', 'engine'])
    buffer = ['@buffer', dice.choice(['1KiB', '20KiB', '1MiB'])] if dice.random() < 0.3 else []
    return ['@shuffle', shuffle, *buffer] if dice.random() < 0.7 else []


def _expect(
    splits: list[DrawnSplit], longest: int, on_error: str
) -> tuple[dict[str, SplitRows], bool]:
    """Returns each split's rows, and whether the job must be refused."""
    if any(split.is_damaged or split.is_unequal for split in splits):
        return {}, True
    rows = {split.name: split.rows(longest) for split in splits}
    stops = any(not each.rows or (each.rejects and on_error == 'stop') for each in rows.values())
    return rows, stops


def _count(room, dice, arguments, splits, rows, statuses) -> None:
    sides, words = (0,), []
    if splits[0].sides == 2 and dice.random() < 0.6:
        side = dice.choice(['inputs', 'targets', 'both'])
        words = ['--side', side]
        sides = {'inputs': (0,), 'targets': (1,), 'both': (0, 1)}[side]
    elif splits[0].sides == 2:
        sides = (0, 1)
    may = ['counts', 'counts.rejected']
    command = [*arguments, *words, '--output', 'counts']
    if room.run(*command, statuses=statuses, may_change=may).status == 0:
        folder = room.here / 'counts'
        results.check_counts(folder, rows['train'], sides)
        manifest = json.loads((folder / 'tokbeam.json').read_bytes())
        results.check_lines(manifest, room.here / 'counts.rejected', rows)
        _run_again(room, dice, command, splits, may)


def _vocab(room, dice, arguments, splits, rows, statuses) -> None:
    may = [f'vocab.x{ending}' for ending in ('', '.tokbeam.json', '.tokbeam.run.json', '.rejected')]
    command = [*arguments, '--vocab-size', _SIZE, '--output', 'vocab.x', *_draw_search(dice)]
    if room.run(*command, statuses=statuses, may_change=may).status == 0:
        manifest = json.loads((room.here / 'vocab.x.tokbeam.json').read_bytes())
        results.check_lines(manifest, room.here / 'vocab.x.rejected', rows)
        _check_vocabulary(room, 'vocab.x', {each for row in rows['train'].rows for each in row})
        _run_again(room, dice, command, splits, may)


def _encode(room, dice, arguments, splits, rows, statuses) -> None:
    room.write('vocab', SOUND_VOCABULARY)
    shards, words = _draw_shards(dice, splits)
    prefixes = [dice.choice(['', '', '', 'x ', '<2é> ', ' ']) for _ in range(splits[0].sides)]
    if splits[0].sides == 2:
        words += [f'--source-prefix={prefixes[0]}'] if prefixes[0] else []
    words += [f'--target-prefix={prefixes[-1]}'] if prefixes[-1] else []
    command = [*arguments, '--vocab', 'vocab', '--name', 'n', '--output', 'out', *words]
    shuffle = _draw_shuffle(dice)
    if room.run(*command, *shuffle, statuses=statuses, may_change=['out']).status == 0:
        encoders = [SubwordTextEncoder.load(room.here / 'vocab')] * splits[0].sides
        results.check_dataset(room.here / 'out', 'n', shards, rows, encoders, prefixes)
        _run_again(room, dice, [*command, *_draw_shuffle(dice)], splits, ['out'])


def _build(room, dice, arguments, splits, rows, statuses) -> None:
    shards, words = _draw_shards(dice, splits)
    is_shared = splits[0].sides == 2 and dice.random() < 0.5
    words += ['--shared-vocab'] if is_shared else []
    command = [
        *arguments, '--vocab-size', _SIZE, '--name', 'n', '--output', 'out', *words,
        *_draw_search(dice),
    ]  # fmt: skip
    counts = [f'out/{each}' for each in ('counts', 'counts.inputs', 'counts.targets')]
    ended = room.run(
        *command, *_draw_shuffle(dice), statuses=statuses, may_change=['out'], may_finish=counts
    )
    if ended.status == 0:
        folder = room.here / 'out'
        if splits[0].sides == 1 or is_shared:
            encoders = [SubwordTextEncoder.load(folder / f'vocab.n.{_SIZE}.subwords')]
            encoders *= splits[0].sides
            results.check_counts(folder / 'counts', rows['train'], range(splits[0].sides))
        else:
            encoders = []
            for side, name in enumerate(('inputs', 'targets')):
                path = folder / f'vocab.n.{_SIZE}.subwords.{name}'
                encoders.append(SubwordTextEncoder.load(path))
                results.check_counts(folder / f'counts.{name}', rows['train'], (side,))
        prefixes = [''] * splits[0].sides
        results.check_dataset(folder, 'n', shards, rows, encoders, prefixes)
        _run_again(room, dice, [*command, *_draw_shuffle(dice)], splits, ['out'])


_RUNS = {'count': _count, 'vocab': _vocab, 'encode': _encode, 'build': _build}


def _draw_shards(dice: random.Random, splits: list[DrawnSplit]) -> tuple[dict[str, int], list[str]]:
    shards, words = {}, []
    for split in splits:
        shards[split.name] = 10 if split.name == 'train' else 1
        if split.name == 'train' and dice.random() < 0.7:
            shards['train'] = dice.choice([1, 2, 3, 7])
            words += ['--shards', str(shards['train'])]
    if dice.random() < 0.3:
        words += ['--seed', str(dice.choice([1, 1 << 63, (1 << 64) - 1]))]
    return shards, words


def _draw_search(dice: random.Random) -> list[str]:
    words = ['--min-count-range', dice.choice(['1:1', '1:4', '2:9'])] if dice.random() < 0.7 else []
    words += ['--max-subtoken-length', dice.choice(['none', '1', '5'])] * (dice.random() < 0.2)
    return words


def _check_vocabulary(room: Room, name: str, texts: set[str]) -> None:
    encoder = SubwordTextEncoder.load(room.here / name)
    for text in texts:
        if encoder.decode(encoder.encode(text)) != text:
            raise AssertionError(f'{text!r} is not restored by {name}')


def _run_again(room, dice, command, splits, may_change) -> None:
    """A second run changes nothing, and one that makes it anew the other way gives the same."""
    if dice.random() < 0.8:
        return
    before = _bytes_of(room)
    anew = ['--overwrite'] if dice.random() < 0.5 else []
    room.run(*command, *_draw_running(dice, splits), *anew, statuses=[0], may_change=may_change)
    if _bytes_of(room) != before:
        raise AssertionError('a second run changed the result')


def _bytes_of(room: Room) -> dict:
    return {
        path: entry
        for path, entry in entries(room.here).items()
        if not path.endswith('tokbeam.run.json')
    }
