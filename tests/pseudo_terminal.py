"""A terminal that tests write to, themselves or as another process's stderr."""

import fcntl
import os
import pty
import struct
import termios
import threading


class PseudoTerminal:
    """What is written is read all the while, since a terminal holds little.

    Attributes:
        stream: writes to it.
    """

    def __init__(self, columns=80):
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
        self.stream = open(theirs, 'w')
        self._seen = b''
        self._more = threading.Condition()
        # A test that fails may leave it open, and pytest would wait for the thread.
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def type(self, text: str) -> None:
        """Types a text, for a process whose standard input is `stream`."""
        os.write(self._ours, text.encode())

    def close(self) -> str:
        """Returns all that was written."""
        self.stream.close()
        self._reading.join()
        os.close(self._ours)
        return self._seen.decode()

    def wait_for(self, text: str, seconds: float = 120) -> bool:
        """Waits until a text was written; returns whether it was, in that time."""
        with self._more:
            return self._more.wait_for(lambda: text.encode() in self._seen, seconds)

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._ours, 1 << 16)
            except OSError:  # the other side is closed
                return
            if not piece:
                return
            with self._more:
                self._seen += piece
                self._more.notify_all()
