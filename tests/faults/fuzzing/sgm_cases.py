"""SGM, sound, cut off and mutated, in any container: the rows of a plain reader, or a sentence."""

import random

from .format_cases import play_formats
from .room import Room


def attack_sgm(room: Room, dice: random.Random) -> None:
    play_formats(room, dice, ['sgm'], is_damaged=dice.random() < 0.5)
