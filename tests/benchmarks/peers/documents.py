"""One library measured as tokbench does: documents to ids, in a process without the other libraries.

For each library, `ENGINES` has a function that imports it, opens a tokenizer.json and returns two
functions: one encodes a document, the other a batch of documents on all cores. Ids are arrays if the
library has them, else lists.
"""

import hashlib
import importlib.metadata
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from tokcore.text.byte_level import BYTE_TO_CHARACTER

from ..outcome import Outcome, Ready

DOCUMENT_BYTES = 10 * 1024
SLICES = 6
"""A text is cut into so many: the first warms an encoder up, the others are timed."""

_REPEATS = 5
_REPEAT_SECONDS = 1.0
"""A library that takes longer for a text repeats it once."""

_Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]
_Engine = tuple[Callable[[str], Sequence[int]], _Encode]


def cut_documents(text: bytes, most: int) -> list[str]:
    """Cuts the beginning of a text into documents of about 10 KiB, between characters."""
    documents: list[str] = []
    start = 0
    while start < len(text) and len(documents) < most:
        end = min(start + DOCUMENT_BYTES, len(text))
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end += 1
        documents.append(text[start:end].decode())
        start = end
    return documents


def measure(
    ready: Ready,
    *,
    engine: str,
    model: str,
    texts: dict[str, str],
    documents: int,
    on_all_cores: bool,
    packages: str | None = None,
) -> Outcome:
    """Measures one library on some texts, each with a new tokenizer."""
    if packages:
        sys.path.insert(0, packages)
    started = time.perf_counter()
    _opened(engine, model)
    first_opened = time.perf_counter() - started
    ready()
    facts = {
        kind: _measured(engine, model, cut_documents(Path(path).read_bytes(), documents),
                        on_all_cores)
        for kind, path in texts.items()
    }  # fmt: skip
    version = importlib.metadata.version(engine.partition(' ')[0])
    seconds = sum(each['cold'] for each in facts.values())
    return Outcome(seconds, {'version': version, 'first_opened': first_opened, 'kinds': facts})


def _measured(engine: str, model: str, documents: list[str], on_all_cores: bool) -> dict[str, Any]:
    started = time.perf_counter()
    one, batch = _opened(engine, model)
    opened = time.perf_counter() - started
    encode: _Encode = batch if on_all_cores else lambda texts: [one(text) for text in texts]
    bounds = [len(documents) * number // SLICES for number in range(SLICES + 1)]
    slices = [documents[start:end] for start, end in zip(bounds, bounds[1:])]
    sizes = [sum(len(text.encode()) for text in texts) for texts in slices]
    first, _ = _encoded(encode, slices)
    unseen = [seconds / size for seconds, size in zip(first[1:], sizes[1:], strict=True)]
    repeated: list[float] = []
    while len(repeated) < _REPEATS and sum(repeated) < _REPEAT_SECONDS:
        seconds, digests = _encoded(encode, slices)
        repeated.append(sum(seconds))
    return {
        'bytes': sum(sizes),
        'opened': opened,
        'cold': sum(first),
        'unseen': statistics.median(unseen) * sum(sizes),
        'repeated': statistics.median(repeated),
        'digests': digests,
    }


def _opened(engine: str, model: str) -> _Engine:
    one, batch = ENGINES[engine](model)
    one('warm 1')
    return one, batch


def _encoded(encode: _Encode, slices: Sequence[Sequence[str]]) -> tuple[list[float], list[str]]:
    """Returns the seconds of each slice, and a digest of each document's ids."""
    seconds, digests = [], []
    for texts in slices:
        started = time.perf_counter()
        encoded = encode(texts)
        seconds.append(time.perf_counter() - started)
        for ids in encoded:
            content = np.asarray(ids, np.uint32).tobytes()
            digests.append(hashlib.blake2b(content, digest_size=6).hexdigest())
    return seconds, digests


def _in_threads(encode: _Encode) -> _Encode:
    """Divides a batch among threads, for a library without threads."""
    threads = os.cpu_count() or 1
    pool = ThreadPoolExecutor(threads)

    def encode_batch(texts: Sequence[str]) -> list[Sequence[int]]:
        step = max(1, len(texts) // (4 * threads))
        parts = [texts[start : start + step] for start in range(0, len(texts), step)]
        return [ids for part in pool.map(encode, parts) for ids in part]

    return encode_batch


def _tokbeam(model: str) -> _Engine:
    """The encoder of the commands; each thread takes an idle one."""
    from tokcore.encoding.encoder import Encoder, side_of_rows
    from tokcore.schemes import find_scheme, schemes_of_file

    data = Path(model).read_bytes()
    scheme = find_scheme(schemes_of_file(data)[0])
    scheme = find_scheme(scheme.name, **scheme.options_from_file(data, model))
    vocabulary = scheme.parse(data, model)
    idle: list[Encoder] = []

    def encode(texts: Sequence[str]) -> list[np.ndarray]:
        try:
            encoder = idle.pop()
        except IndexError:
            encoder = make()
        encoded = encoder.encode_side(side_of_rows([text.encode() for text in texts]))
        idle.append(encoder)
        return np.split(encoded.ids, encoded.offsets[1:-1])

    def make() -> Encoder:
        return scheme.encoder(vocabulary, scheme.encoding(allow_special_tokens=True))

    encoder = make()
    return lambda text: encoder.encode_text(text.encode()), _in_threads(encode)


def _tokbeam_lists(model: str) -> _Engine:
    """The public API."""
    import tokcore

    tokenizer = tokcore.load_tokenizer(model, allow_special_tokens=True)

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return tokenizer.encode_batch(texts, add_special_tokens=False)

    return lambda text: tokenizer.encode(text, add_special_tokens=False), _in_threads(encode)


def _tokenizers(model: str) -> _Engine:
    from .hugging_face import open_tokenizer

    one, batch = open_tokenizer(model)
    ids = attrgetter('ids_array' if hasattr(one('warm'), 'ids_array') else 'ids')
    return lambda text: ids(one(text)), lambda texts: list(map(ids, batch(texts)))


def _gigatoken(model: str) -> _Engine:
    import gigatoken

    tokenizer = gigatoken.Tokenizer.from_json(Path(model).read_bytes())
    return tokenizer.encode, lambda texts: tokenizer.encode_batch(list(texts))


def _tiktoken(model: str) -> _Engine:
    import tiktoken

    pattern, ranks, special = tiktoken_parts(json.loads(Path(model).read_bytes()))
    encoding = tiktoken.Encoding(
        'x', pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
    )
    return (
        lambda text: encoding.encode(text, allowed_special='all'),
        lambda texts: encoding.encode_batch(
            list(texts), num_threads=os.cpu_count() or 1, allowed_special='all'
        ),
    )


def tiktoken_parts(file: dict[str, Any]) -> tuple[str, dict[bytes, int], dict[str, int]]:
    """Returns the pattern, ranks and special tokens of a tokenizer.json.

    Raises ValueError, with the reason, if tiktoken cannot do what the file asks for.
    """
    if file['normalizer'] is not None:
        raise ValueError('refuses: tiktoken does not normalize')
    steps = file['pre_tokenizer'].get('pretokenizers', [file['pre_tokenizer']])
    match steps:
        case [{'type': 'ByteLevel', 'use_regex': True}]:
            pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
        case [
            {'type': 'Split', 'pattern': {'Regex': pattern}},
            {'type': 'ByteLevel', 'use_regex': False},
        ]:
            pass
        case _:
            raise ValueError('refuses: tiktoken splits by one pattern, and works on bytes')
    vocabulary = file['model']['vocab']
    special = {each['content']: each['id'] for each in file['added_tokens']}
    merges = (
        each if isinstance(each, list) else each.split(' ') for each in file['model']['merges']
    )
    merged = [vocabulary[left + right] for left, right in merges]
    if sorted(merged) != merged and not file['model'].get('ignore_merges'):
        raise ValueError('refuses: the ids are not in the order of the merges')
    byte_of = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}
    ranks = {
        bytes(map(byte_of.__getitem__, piece)): id_
        for piece, id_ in vocabulary.items()
        if piece not in special
    }
    return pattern, ranks, special


def _kitoken(model: str) -> _Engine:
    from kitoken import Kitoken

    tokenizer = Kitoken.from_tokenizers_file(model)
    return (
        lambda text: tokenizer.encode(text, True),
        _in_threads(lambda texts: tokenizer.encode_all(list(texts), True)),
    )


ENGINES: dict[str, Callable[[str], _Engine]] = {
    'tokbeam': _tokbeam,
    'tokbeam lists': _tokbeam_lists,
    'tokenizers': _tokenizers,
    'gigatoken': _gigatoken,
    'tiktoken': _tiktoken,
    'kitoken': _kitoken,
}
"""By the name of the package, with the kind of ids if a package has two."""
