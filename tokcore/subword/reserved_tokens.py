r"""Which subtokens of a vocabulary are reserved tokens: those that no text becomes.

A vocabulary's file does not say so. A reserved token `X` is the subtoken of the whole token `X`, and a
text that has `X` in it is cut within, as `<2zh>` is cut into `<`, `2zh` and `>`. One that the
pre-tokenizer does not cut, as `2zh`, is a token like others and gets its id where it stands alone.
"""

import re
from collections.abc import Iterable

from tokcore.subword.text_encoder import ROLES
from tokcore.text.t2t import alphabet_of, escape_token, tokenize, unescape_token

_END_OF_ESCAPE = re.compile(r'u|[0-9]*;')


def reserved_tokens_in(subtokens: Iterable[str], text: str) -> dict[str, int]:
    """Returns the reserved tokens within a text, with their ids: `<2zh>` of `'<2zh>_'`."""
    reserved = {token: id_ for token, id_ in ROLES.items() if token in text}
    for id_, subtoken in enumerate(subtokens):
        if subtoken.endswith('_'):
            token = unescape_token(subtoken)
            if token in text and token not in ROLES and _is_reserved(subtoken, token):
                reserved[token] = id_
    return reserved


def _is_reserved(subtoken: str, token: str) -> bool:
    """Whether a subtoken spells a whole token that the pre-tokenizer never makes."""
    if not token or escape_token(token, alphabet_of([token])) != subtoken:
        return False
    # The end of a token may begin within an escape: `10;a_` is the end of `\10;a_`.
    ends = [token]
    if escape := _END_OF_ESCAPE.match(token):
        ends.append(token[escape.end() :])
    return all(len(tokenize(end)) > 1 for end in ends)
