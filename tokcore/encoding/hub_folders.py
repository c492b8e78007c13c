"""Folders of tokenizers as hubs have them: which file of one is its vocabulary.

The order is that of transformers 4.57: `tokenizer.json` is taken if it is there. Otherwise transformers
asks the class of the tokenizer for its files; here the files' names decide, and two of them are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from typing import Any

from tokcore.encoding.tokenizer_folder import CONFIG_NAME, TOKENIZER_NAME
from tokcore.encoding.vocabulary import ReadBeside, read_if_there
from tokcore.errors import InputError

_NAMES = (TOKENIZER_NAME, 'tekken.json', 'tokenizer.model', 'vocab.json', 'vocab.txt')
_BESIDE = {'vocab.json': 'merges.txt'}

_MODEL_CONFIG = 'config.json'
_SPECIAL_TOKENS_MAP = 'special_tokens_map.json'

_OWN_CLASS = 'PreTrainedTokenizer'  # of the folders that tokbeam itself writes
_CLASSES = {
    'vocab.json': {'GPT2Tokenizer', 'gpt2', _OWN_CLASS},
    'vocab.txt': {
        'BertTokenizer', 'DistilBertTokenizer', 'ElectraTokenizer', 'bert', 'distilbert', 'electra',
        _OWN_CLASS,
    },
}  # fmt: skip
"""The classes of tokenizers, and types of models without one, whose files are read as they are meant.
Others cut text in another way: RoBERTa, Qwen, CLIP have a vocab.json, ESM and BERTweet a vocab.txt."""


def vocabulary_in_folder(
    folder: str, names: Collection[str], read: ReadBeside = read_if_there
) -> tuple[str, list[str]]:
    """Returns the path of the file that a folder's vocabulary is in, and the names of others beside it.

    With `tokenizer.json` and `vocab.txt` in `bert` it is `('bert/tokenizer.json', ['vocab.txt'])`.

    Args:
        folder: its path.
        names: of the files in it.
        read: returns the bytes of a file, None if there is none.

    Raises:
        InputError: there is none of the known names, or several and not `tokenizer.json`; or the
            folder is of a class of tokenizers whose ids the file alone does not give.
    """
    known = [name for name in _NAMES if name in names and _BESIDE.get(name, name) in names]
    if not known:
        raise InputError(
            f'{folder} holds no tokenizer.json, tekken.json, tokenizer.model, vocab.json with '
            'merges.txt, or vocab.txt; give the path of the vocabulary file itself'
        )
    name, *others = known
    if others and name != TOKENIZER_NAME:
        raise InputError(
            f'{folder} holds {" and ".join(known)}, and no tokenizer.json to go before them; give the '
            'path of one of them'
        )
    path = f'{folder.rstrip("/")}/{name}'
    told, place = _class_of(path, read)
    if name in _CLASSES and told not in (None, *_CLASSES[name]):
        raise InputError(
            f'{place} says {told}, whose ids {name} alone does not give; write its tokenizer.json by '
            'AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers, or give '
            f'{path} itself to read it as {"BERT" if name == "vocab.txt" else "GPT-2"} would'
        )
    return path, others


def local_vocabulary_path(path: str) -> str:
    """Returns the path of a vocabulary's file on this machine; of a folder, that of the file in it.

    Raises:
        InputError: as `vocabulary_in_folder`, or the folder cannot be looked into.
    """
    if not os.path.isdir(path):
        return path
    try:
        names = os.listdir(path)
    except OSError as error:
        raise InputError(
            f'{path} cannot be looked into ({error.strerror}); give the path of a vocabulary file'
        ) from error
    return vocabulary_in_folder(path, names)[0]


def config_beside(path: str, read: ReadBeside = read_if_there) -> Mapping[str, Any]:
    """Returns what the tokenizer_config.json beside a vocab.txt says; nothing for another class's.

    Raises:
        InputError: it is not a JSON object.
    """
    config = _config(path, CONFIG_NAME, read)
    is_known = config and _class_of(path, read)[0] in (None, *_CLASSES['vocab.txt'])
    return config if is_known else {}


def eos_tokens(path: str, read: ReadBeside = read_if_there) -> list[str]:
    """Returns each token that a file next to a vocabulary's configures as `eos_token`.

    Raises:
        InputError: such a file is not a JSON object.
    """
    configured = [
        _config(path, name, read).get('eos_token') for name in (CONFIG_NAME, _SPECIAL_TOKENS_MAP)
    ]
    tokens = [token.get('content') if isinstance(token, dict) else token for token in configured]
    return list(dict.fromkeys(token for token in tokens if isinstance(token, str)))


def _class_of(path: str, read: ReadBeside) -> tuple[str | None, str]:
    """Returns the class of tokenizers or the type of model that is told beside a file, and where."""
    for name, key in (
        (CONFIG_NAME, 'tokenizer_class'),
        (_MODEL_CONFIG, 'tokenizer_class'),
        (_MODEL_CONFIG, 'model_type'),
    ):
        told = _config(path, name, read).get(key)
        if isinstance(told, str):
            return told.removesuffix('Fast'), _beside(path, name)
    return None, ''


def _config(path: str, name: str, read: ReadBeside) -> Mapping[str, Any]:
    place = _beside(path, name)
    data = read(place)
    if data is None:
        return {}
    try:
        config = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f'{place} is not JSON ({error}); give a whole one, or remove it') from None
    if not isinstance(config, dict):
        raise InputError(f'{place} is not a JSON object; give a whole one, or remove it')
    return config


def _beside(path: str, name: str) -> str:
    above, separator, _ = path.rpartition('/')
    return f'{above}{separator}{name}'
