"""The exceptions for what the user can mend."""


class InputError(Exception):
    """A file, a line, an option or an output cannot be used.

    The message is one sentence on one line: the file, the line or byte offset, what is wrong, and
    what to do. The command prints it without a traceback and ends with status 2. Characters that a
    terminal may interpret, as ESC in a file's name, are escaped.

    Examples:
        >>> try:
        ...     tokcore.load_tokenizer('nowhere.json')
        ... except tokcore.InputError as error:
        ...     print(error)
        nowhere.json: the vocabulary cannot be read (No such file or directory); give the path of a vocabulary file
    """

    def __init__(self, message: str):
        line = message.replace('\n', ' ')
        super().__init__(''.join(c if c.isprintable() else repr(c)[1:-1] for c in line))


def missing_package(what: str, extra: str) -> InputError:
    """Returns the error about something that needs the packages of an extra."""
    return InputError(
        f"{what} needs a package that is not installed; run `pip install '.[{extra}]'` in a clone of "
        'tokbeam'
    )


class OperatingSystemError(InputError):
    """The operating system refuses something; once that is mended, a run continues where it was."""


class FullDiskError(OperatingSystemError):
    """The disk is full; once there is room, a run continues where it was."""


class UnreachableError(OperatingSystemError):
    """A store or a cluster does not answer; once it does, a run continues where it was.

    A cluster starts a job again that meets it, as it does not for other mistakes of a user.
    """
