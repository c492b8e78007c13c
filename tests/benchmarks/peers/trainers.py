"""Trainers of byte pair encoding alone; each function imports its tool."""

from ..outcome import Outcome, Ready, timed


def gigabpe(ready: Ready, *, text: str, vocabulary_size: int, threads: int) -> Outcome:
    """Trains byte-level BPE on a file."""
    import gigabpe

    (vocabulary, _), seconds = timed(
        ready,
        lambda: gigabpe.train_bpe(
            [text], vocabulary_size, pretokenizer='bytelevel', threads=threads
        ),
    )
    return Outcome(seconds, {'size': len(vocabulary)})


def rustbpe(ready: Ready, *, text: str, vocabulary_size: int) -> Outcome:
    """Trains byte-level BPE with GPT-4's pattern on the lines of a file, with rayon's threads."""
    import rustbpe

    tokenizer = rustbpe.Tokenizer()

    def train() -> None:
        with open(text, encoding='utf-8', newline='\n') as lines:
            tokenizer.train_from_iterator(lines, vocabulary_size)

    _, seconds = timed(ready, train)
    return Outcome(seconds, {'size': tokenizer.vocab_size})


def subword_nmt(ready: Ready, *, text: str, vocabulary_size: int) -> Outcome:
    """Learns so many codes of subword-nmt from the lines of a file."""
    import io

    from subword_nmt.learn_bpe import learn_bpe

    codes = io.StringIO()

    def train() -> None:
        with open(text, encoding='utf-8', newline='\n') as lines:
            learn_bpe(lines, codes, vocabulary_size)

    _, seconds = timed(ready, train)
    return Outcome(seconds, {'size': codes.getvalue().count('\n') - 1})
