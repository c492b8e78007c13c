"""Tools that only encode: nanotoken, gigatoken and tiktoken.

Each function imports its tool.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.text.patterns import DEFINITIONS

from ..outcome import Outcome, Ready, timed

_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def nanotoken(ready: Ready, *, text: str, model: str, parallel: bool) -> Outcome:
    """A text file, mapped into memory, a document a line, to ids, by BERT's tokenizer.json."""
    import nanotoken

    tokenizer = nanotoken.Tokenizer.from_json(Path(model).read_bytes())
    source = nanotoken.TextFileSource(text, separator='\n')
    Path(text).read_bytes()  # into the page cache
    ids, seconds = timed(
        ready,
        lambda: tokenizer.encode_files(source, add_special_tokens=False, parallel=parallel),
    )
    return Outcome(seconds, {'ids': ids.num_tokens})


def gigatoken(ready: Ready, *, text: str, model: str, parallel: bool) -> Outcome:
    """A text in memory, a document a line, to ids in memory, by a tokenizer.json of BPE."""
    import gigatoken

    tokenizer = gigatoken.Tokenizer.from_json(Path(model).read_bytes())
    return _encoded_by_gigatoken(ready, tokenizer, text, parallel)


def gigatoken_ranks(ready: Ready, *, text: str, file: str, pattern: str) -> Outcome:
    """The same on one core, by a file of ranks."""
    import gigatoken

    return _encoded_by_gigatoken(ready, gigatoken.Tokenizer.from_tiktoken(file, pattern), text)


def convert(ready: Ready, *, model: str, output: str) -> Outcome:
    """Writes the tokenizer.json that gigatoken makes of a SentencePiece model."""
    from gigatoken._load.sentencepiece import sentencepiece_to_tokenizer_json

    def write() -> None:
        made = sentencepiece_to_tokenizer_json(Path(model).read_bytes())
        Path(output).write_bytes(made if isinstance(made, bytes) else made.encode())

    return Outcome(timed(ready, write)[1])


def _encoded_by_gigatoken(ready: Ready, tokenizer, text: str, parallel: bool = False) -> Outcome:
    import gigatoken

    source = gigatoken.BytesSource([Path(text).read_bytes()], separator=b'\n')
    tokenizer.encode_batch(['warm'], parallel=parallel)  # it imports more on first use
    ids, seconds = timed(ready, lambda: tokenizer.encode_batch(source, parallel=parallel))
    # One array with awkward, and without it one for each line.
    found = len(ids.layout.content) if hasattr(ids, 'layout') else sum(map(len, ids))
    return Outcome(seconds, {'ids': found, 'digest': found})


def tiktoken(ready: Ready, *, text: str, model: str) -> Outcome:
    """Lines in memory to ids, one line after another, by the merges of a tokenizer.json."""
    bytes_of = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}
    merges = json.loads(Path(model).read_bytes())['model']['merges']
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [bytes(map(bytes_of.get, left + right)) for left, right in merges]
    ranks = {piece: rank for rank, piece in enumerate(dict.fromkeys(pieces))}
    return _encoded_by_tiktoken(ready, text, _PATTERN, ranks)


def tiktoken_ranks(ready: Ready, *, text: str, file: str, pattern: str) -> Outcome:
    """The same by a file of ranks and the name of its pattern."""
    lines = map(bytes.split, Path(file).read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in filter(None, lines)}
    return _encoded_by_tiktoken(ready, text, DEFINITIONS[pattern].expressions[0], ranks)


def _encoded_by_tiktoken(
    ready: Ready, text: str, pattern: str, ranks: Mapping[bytes, int]
) -> Outcome:
    import tiktoken

    encoding = tiktoken.Encoding('x', pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    lines = Path(text).read_text(encoding='utf-8').split('\n')
    ids, seconds = timed(ready, lambda: [encoding.encode_ordinary(line) for line in lines])
    count = sum(map(len, ids))
    return Outcome(seconds, {'ids': count, 'digest': count})
