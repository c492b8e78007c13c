"""The token that ends documents: it follows each of them where rows are joined in one stream.

It is the one that is asked for; else the one of a closed table that the vocabulary has as a special
token; else the `eos_token` that is configured next to the vocabulary's file. The table comes first, since
files of chat models configure the end of a turn.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from tokcore.checked_json import Within
from tokcore.encoding.hub_folders import eos_tokens
from tokcore.encoding.tokenizer_folder import END_TOKENS, GPT_END
from tokcore.encoding.vocabulary import (
    ReadBeside,
    Template,
    Vocabulary,
    named_id,
    read_if_there,
)
from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    from tokcore.encoding.scheme import Scheme

_SEPARATOR = '[SEP]'
"""Ends documents of vocabularies that have none of `END_TOKENS`: BERT's."""

_ENDS_OF_RANKS: Mapping[tuple[str, int], int] = {
    ('gpt2', 50_256): 50_256,
    ('gpt2', 50_280): 50_256,
    ('cl100k', 100_256): 100_257,
    ('o200k', 199_998): 199_999,
}
"""By pattern and number of ranks the id of `GPT_END`, for files of ranks, which list no special token:
r50k and GPT-2, p50k, cl100k, o200k. Other models have other ranks with the same patterns."""


@dataclass(frozen=True)
class EndOfDocument:
    """The token that ends the documents of a feature.

    Attributes:
        feature: `inputs` or `targets`.
        id: of the token.
        token: as the vocabulary spells it; '' if its file does not list the id.
        in_template: whether rows end with it as they are stored.
    """

    feature: str
    id: Annotated[int, Within(0, (1 << 31) - 1)]
    token: str
    in_template: bool

    def __str__(self) -> str:
        return f'{self.token} ({self.id})' if self.token else f'the id {self.id}'


def end_of_ranks(pattern: str, count: int) -> int | None:
    """Returns the id of `<|endoftext|>` of a file of tiktoken's ranks; None if it is not known.

    Args:
        pattern: the name of the pattern.
        count: how many ranks there are.
    """
    return _ENDS_OF_RANKS.get((pattern, count))


def end_candidates(
    scheme: Scheme,
    vocabulary: Vocabulary,
    template: Template,
    asked: str | None = None,
    path: str = '',
    read: ReadBeside = read_if_there,
) -> dict[str, int]:
    """Returns the ids of the tokens that may end documents, by token; one if it is known.

    Args:
        scheme: of the vocabulary.
        vocabulary: the entries.
        template: the ids around rows; its last one decides between several candidates.
        asked: a token, or digits, which are an id; None: the vocabulary decides.
        path: of the vocabulary's file.
        read: reads files next to it.

    Raises:
        InputError: there is no token or id as asked, or a file next to the vocabulary is not JSON.
    """
    if asked is not None:
        id_ = named_id(asked, vocabulary, '--end', 'give a token that it has, or its id')
        return {vocabulary.pieces[id_] if id_ < vocabulary.vocab_size else '': id_}
    listed = listed_ends(scheme.special_tokens_among(vocabulary, (*END_TOKENS, _SEPARATOR)))
    if len(listed) == 1:
        return listed
    in_template = {token: id_ for token, id_ in listed.items() if (id_,) == template.after[-1:]}
    if in_template:
        return in_template
    ids = {token: vocabulary.id_of(token) for token in eos_tokens(path, read)}
    configured = {token: id_ for token, id_ in ids.items() if id_ is not None}
    chosen = {token: id_ for token, id_ in configured.items() if token in listed}
    return chosen if len(chosen) == 1 else listed | configured


def listed_ends(special_tokens: Mapping[str, int]) -> dict[str, int]:
    """Returns those special tokens, with their ids, that end documents by the closed table."""
    for names in (END_TOKENS, (_SEPARATOR,)):
        listed = {token: special_tokens[token] for token in names if token in special_tokens}
        if listed:
            break
    return listed


def end_of_document(
    feature: str, candidates: Mapping[str, int], template: Template
) -> EndOfDocument | None:
    """Returns the end of the documents of a feature; None if there is not one candidate."""
    if len(candidates) != 1:
        return None
    [(token, id_)] = candidates.items()
    return EndOfDocument(feature, id_, token, template.after[-1:] == (id_,))


def unknown_end(vocabulary: str, candidates: Mapping[str, int]) -> InputError:
    """Returns the error that documents cannot be joined, since their end is not known.

    Args:
        vocabulary: how the sentence calls it.
        candidates: for the end.
    """
    found = ' and '.join(f'{token} ({id_})' for token, id_ in candidates.items())
    what = f'{found}, any of which may end' if found else 'no special token that is known to end'
    return InputError(
        f'{vocabulary} has {what} documents, which are joined in one stream; give --end TOKEN or '
        '--end ID, or --no-end to join them without an end'
    )
