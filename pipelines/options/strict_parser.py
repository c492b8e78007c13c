"""An argument parser whose errors are a user's mistakes: a sentence and status 2."""

import argparse

from tokcore.errors import InputError

_MOST_CHARACTERS = 400
"""Of an error: argparse repeats values, which may be of any length."""


class Parser(argparse.ArgumentParser):
    """Knows no abbreviations, and raises InputError where argparse would end the process."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, allow_abbrev=False, **keywords)

    def error(self, message: str):
        if len(message) > _MOST_CHARACTERS:
            message = message[:_MOST_CHARACTERS] + '…'
        raise InputError(f'{message} (see {self.prog} --help)')
