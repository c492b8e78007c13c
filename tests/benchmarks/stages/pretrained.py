"""Text to ids by the tokenizer file of a trained model."""

from collections.abc import Sequence
from pathlib import Path

from pipelines.engines.machine import keep_freed_memory
from tokcore.encoding.encoder import Encoder
from tokcore.schemes import find_scheme, scheme_names

from ..outcome import Outcome, Ready, timed
from .blocks import TextBlock, ids_of_blocks, text_blocks

_WARM_UP = 200_000


def encode(ready: Ready, *, text: str, file: str, pattern: str | None = None) -> Outcome:
    """Text in memory to ids in memory; a file of ranks needs a `pattern`."""
    data = Path(file).read_bytes()
    [name] = [name for name in scheme_names() if find_scheme(name).recognizes(data)]
    options = find_scheme(name).options_from_file(data, file)
    scheme = find_scheme(name, **(options if pattern is None else {'pattern': pattern}))
    vocabulary = scheme.parse(data, file)
    content = Path(text).read_bytes()

    def encoded(encoder: Encoder, blocks: Sequence[TextBlock]) -> int:
        return sum(map(len, ids_of_blocks(encoder, blocks, scheme.normalizer)))

    keep_freed_memory()
    encoded(scheme.encoder(vocabulary), text_blocks(content[:_WARM_UP])[:1])
    encoder, blocks = scheme.encoder(vocabulary), text_blocks(content)
    ids, seconds = timed(ready, lambda: encoded(encoder, blocks))
    return Outcome(seconds, {'ids': ids, 'digest': ids})
