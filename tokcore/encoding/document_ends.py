"""The token that ends documents: it follows each of them where rows are joined in one stream.

It is the one that is asked for; else the one of a closed table that the vocabulary has as a special
token; else the `eos_token` that is configured next to the vocabulary's file. The table comes first, since
files of chat models configure the end of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from tokcore.checked_json import Within
from tokcore.encoding.hub_folders import END_TOKENS, eos_tokens
from tokcore.encoding.vocabulary import ReadBeside, Template, Vocabulary, named_id, read_if_there
from tokcore.errors import InputError

ENDS_OF_RANKS: Mapping[tuple[str, int], int] = {
    ('gpt2', 50_256): 50_256,
    ('gpt2', 50_280): 50_256,
    ('cl100k', 100_256): 100_257,
    ('o200k', 199_998): 199_999,
}
"""By pattern and number of ranks the id of `<|endoftext|>`, which files of ranks do not list: of GPT-2 and
r50k, p50k, cl100k, o200k. Other models have other numbers of ranks with the same patterns."""


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


def listed_ends(special_tokens: Mapping[str, int]) -> dict[str, int]:
    """Returns those special tokens, with their ids, that end documents by the closed table."""
    listed = {token: special_tokens[token] for token in END_TOKENS if token in special_tokens}
    separator = special_tokens.get('[SEP]')  # BERT has no other end
    return listed or ({} if separator is None else {'[SEP]': separator})


def end_candidates(
    vocabulary: Vocabulary, path: str = '', read: ReadBeside = read_if_there
) -> dict[str, int]:
    """Returns the ids of the tokens that may end documents, by token; a single one does.

    Raises:
        InputError: a file that configures the end is not a JSON object.
    """
    added = getattr(vocabulary, 'added', None)
    if added is None:
        ids = {token: vocabulary.id_of(token) for token in (*END_TOKENS, '[SEP]')}
        entries = {token: id_ for token, id_ in ids.items() if id_ is not None}
        # Special tokens come first in these files; others of the table were words of the text.
        return dict(sorted(entries.items(), key=lambda entry: entry[1])[:1])
    listed = listed_ends({token.content: token.id for token in added if token.special})
    if len(listed) == 1:
        return listed
    configured = {token: vocabulary.id_of(token) for token in eos_tokens(path, read)}
    known = {token: id_ for token, id_ in configured.items() if id_ is not None}
    both = {token: id_ for token, id_ in known.items() if token in listed}
    return both if len(both) == 1 else listed | known


def end_of_document(
    feature: str,
    vocabulary: Vocabulary,
    candidates: Mapping[str, int],
    template: Template,
    asked: str | None = None,
) -> EndOfDocument | None:
    """Returns the end of the documents of a feature; None if it is not known.

    Args:
        feature: of the rows.
        vocabulary: the entries.
        candidates: as `end_candidates` returns them.
        template: the ids around rows; its last one decides between several candidates.
        asked: a token, or digits, which are an id; None: the candidates decide.

    Raises:
        InputError: the vocabulary does not have what is asked for.
    """
    last = template.after[-1:]
    if asked is not None:
        id_ = named_id(asked, vocabulary, '--end', 'give a token that it has, or its id')
        token = vocabulary.pieces[id_] if id_ < vocabulary.vocab_size else ''
        return EndOfDocument(feature, id_, token, last == (id_,))
    in_template = [(token, id_) for token, id_ in candidates.items() if last == (id_,)]
    chosen = in_template or list(candidates.items())
    if len(chosen) != 1:
        return None
    [(token, id_)] = chosen
    return EndOfDocument(feature, id_, token, bool(in_template))


def unknown_end(vocabulary: str, candidates: Mapping[str, int]) -> InputError:
    """Returns the error that the end of documents is not known; `vocabulary` is its name in the sentence."""
    found = ' and '.join(f'{token} ({id_})' for token, id_ in candidates.items())
    what = f'{found}, any of which may end' if found else 'no special token that is known to end'
    return InputError(
        f'{vocabulary} has {what} documents, which are joined in one stream; give --end TOKEN or '
        '--end ID, or --end none to join them without an end'
    )
