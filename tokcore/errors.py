"""The exceptions that stand for a user's mistake."""


class InputError(Exception):
    """Something the user gave cannot be used: a file, a line, an option, an output.

    The message is one sentence on one line that names the file, the line or byte offset, what was
    wrong and what to do. The command line prints it without a traceback and ends with status 2; it
    crosses process borders as text, so it must make sense without its traceback. What a terminal may
    take for an order, as ESC in a file's name, is escaped.
    """

    def __init__(self, message: str):
        line = ' '.join(message.split('\n'))
        super().__init__(
            line
            if line.isprintable()
            else ''.join(each if each.isprintable() else repr(each)[1:-1] for each in line)
        )


class OperatingSystemError(InputError):
    """The system refuses something; with that mended, a run goes on where it was."""


class FullDiskError(OperatingSystemError):
    """There is no room for what is to be written; with more of it, a run goes on."""
