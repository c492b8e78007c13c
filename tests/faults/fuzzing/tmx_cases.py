"""TMX, sound, cut off and mutated, in any container: the rows that were drawn, or a sentence."""

import random

from .format_cases import play_formats
from .room import Room


def attack_tmx(room: Room, dice: random.Random) -> None:
    play_formats(room, dice, ['tmx'], is_damaged=dice.random() < 0.5)
