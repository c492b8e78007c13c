"""Folders of tokenizers, as hubs and datasets have them: the file of the vocabulary, and those next to it.

A dataset's manifest names its vocabularies. In other folders the order is that of transformers 4.57:
`tokenizer.json` is taken if it is there. Otherwise transformers asks the class of the tokenizer for its
files; here the files' names decide, and two of them are refused.

A scheme makes files with which Hugging Face's libraries open its vocabularies (`Scheme.tokenizer_files`):
`tokenizer.json` is the tokenizer of `tokenizers`, and `tokenizer_config.json` says to transformers which
of its tokens are for padding, for the end of a text and so on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from tokcore.checked_json import FilePath, checked
from tokcore.encoding.vocabulary import ReadBeside, Template, read_if_there
from tokcore.errors import InputError
from tokcore.text.patterns import Pattern

TOKENIZER_NAME, CONFIG_NAME = 'tokenizer.json', 'tokenizer_config.json'

CONFIG_NAMES = (CONFIG_NAME, 'special_tokens_map.json')
"""Files next to a vocabulary that say which of its special tokens have a role."""

GPT_END = '<|endoftext|>'

END_TOKENS = (
    '</s>', '<eos>', '<EOS>', GPT_END, '<|end_of_text|>', '<｜end▁of▁sentence｜>', '<EOS_TOKEN>',
    '[EOS]',
)  # fmt: skip
"""The special tokens that end documents: of Llama 2, Mistral and T5; Gemma; Tensor2Tensor; GPT, Qwen, OLMo
and Falcon; Llama 3; DeepSeek; Command R; Kimi."""

ROLE_TOKENS = {
    'bos_token': ('<s>', '<bos>', '<|begin_of_text|>'),
    'eos_token': END_TOKENS,
    'unk_token': ('[UNK]', '<unk>'),
    'pad_token': ('[PAD]', '<pad>', '<|pad|>'),
    'cls_token': ('[CLS]', '<cls>'),
    'sep_token': ('[SEP]', '<sep>'),
    'mask_token': ('[MASK]', '<mask>'),
}
"""Transformers' roles, and the usual names of the tokens that have them, the first ones first."""

ExportTarget = Literal[
    'huggingface', 'tiktoken', 'sentencepiece', 'vocab.txt', 'subword-nmt', 'playground'
]
EXPORT_TARGETS: tuple[ExportTarget, ...] = get_args(ExportTarget)
"""The tools whose files `tokbeam export` makes."""

_CLASS = 'PreTrainedTokenizerFast'
"""A class of transformers 4, and an alias in 5: it takes tokenizer.json as it is. Classes of models make some
of it anew, differently in 4 and 5."""

_UNLIMITED = 10**30
"""By convention: texts may have any length."""

TOKENIZER_FOLDER = r'tokenizer(\.(inputs|targets))?'
"""The names of folders of a dataset that have the files of its tokenizer, as a regular expression."""

DATASET_MANIFEST = 'tokbeam.json'
"""The manifest of a dataset's folder; `records.manifest` says what it holds."""

_NAMES = (
    TOKENIZER_NAME, 'tekken.json', 'tiktoken.model', 'tokenizer.model', 'spiece.model',
    'sentencepiece.bpe.model', 'vocab.json', 'vocab.txt',
)  # fmt: skip
_SUFFIX = '.tiktoken'
_BESIDE = {'vocab.json': 'merges.txt'}

_MODEL_CONFIG = 'config.json'

NEIGHBOURS = (
    *CONFIG_NAMES, _MODEL_CONFIG, 'README.md', 'vocab.json', 'merges.txt', DATASET_MANIFEST,
)  # fmt: skip
"""Files of a folder that say more of the vocabulary in another one, or are read together with it."""

_OWN_CLASS = 'PreTrainedTokenizer'  # of the folders that tokbeam itself writes
_CLASSES = {
    'vocab.json': {'GPT2Tokenizer', 'gpt2', _OWN_CLASS},
    'vocab.txt': {
        'BertTokenizer', 'DistilBertTokenizer', 'ElectraTokenizer', 'bert', 'distilbert', 'electra',
        _OWN_CLASS,
    },
    'spiece.model': {'T5Tokenizer', 'MT5Tokenizer', 't5', 'mt5', 'umt5', _OWN_CLASS},
    'sentencepiece.bpe.model': {_OWN_CLASS},
}  # fmt: skip
"""The classes of tokenizers, and types of models without one, whose files are read as they are meant.
Others cut text in another way: RoBERTa, Qwen, CLIP have a vocab.json, ESM and BERTweet a vocab.txt; or
have other ids than the file: ALBERT lowers case, XLM-R and NLLB shift the ids."""

_READ_AS = {'vocab.json': 'GPT-2', 'vocab.txt': 'BERT'}

_PATTERNS: dict[str, Pattern] = {
    'cl100k_base.tiktoken': 'cl100k', 'o200k_base.tiktoken': 'o200k', 'p50k_base.tiktoken': 'gpt2',
    'r50k_base.tiktoken': 'gpt2', 'gpt2.tiktoken': 'gpt2', 'multilingual.tiktoken': 'gpt2',
}  # fmt: skip
"""By file of ranks the pattern that it is for: those of tiktoken and Whisper. Other names are for any pattern."""


@dataclass(frozen=True)
class DatasetVocabulary:
    """What a dataset's manifest says of a vocabulary in its folder; see `VocabularyRecord`."""

    side: str
    name: FilePath
    scheme: str
    scheme_options: dict[str, object] | None = None


class FolderVocabulary(NamedTuple):
    """The file that the vocabulary of a folder is in.

    Attributes:
        path: of the file.
        unread: names of other vocabularies in the folder.
        record: what the manifest says of it, if the folder is a dataset.
    """

    path: str
    unread: list[str]
    record: DatasetVocabulary | None = None


def vocabulary_in_folder(
    folder: str,
    names: Collection[str],
    read: ReadBeside = read_if_there,
    side: str | None = None,
) -> FolderVocabulary:
    """Returns the file that a folder's vocabulary is in.

    With `tokenizer.json` and `vocab.txt` in `bert` it is `('bert/tokenizer.json', ['vocab.txt'])`.

    Args:
        folder: its path.
        names: of the files in it.
        read: returns the bytes of a file, None if there is none.
        side: of a dataset with two vocabularies, that of the `inputs` or of the `targets`.

    Raises:
        InputError: there is none of the known names, or several and not `tokenizer.json`; or the
            folder is of a class of tokenizers whose ids the file alone does not give; or it is a
            dataset with two vocabularies, and there is no side.
    """
    manifest = f'{folder.rstrip("/")}/{DATASET_MANIFEST}'
    listed = _vocabularies_of(manifest, read) if DATASET_MANIFEST in names else ()
    of_sides = {record.side: record for record in listed}
    if of_sides:
        paths = {name: f'{folder.rstrip("/")}/{each.name}' for name, each in of_sides.items()}
        chosen = 'both' if 'both' in of_sides else side
        if chosen not in of_sides:
            raise InputError(
                f'{folder} has several vocabularies; give the path of one: {" and ".join(paths.values())}'
            )
        return FolderVocabulary(paths[chosen], [], of_sides[chosen])
    known = [name for name in _NAMES if name in names and _BESIDE.get(name, name) in names]
    known += sorted(name for name in names if name.endswith(_SUFFIX))
    if not known:
        looked_for = ', '.join(
            f'{name} with {_BESIDE[name]}' if name in _BESIDE else name for name in _NAMES
        )
        raise InputError(
            f'{folder} holds no {looked_for} or *{_SUFFIX}; give the path of the vocabulary file itself'
        )
    name, *others = known
    if others and name != TOKENIZER_NAME:
        raise InputError(
            f'{folder} holds {" and ".join(known)}, and no tokenizer.json to go before them; give the '
            'path of one of them'
        )
    path = f'{folder.rstrip("/")}/{name}'
    class_name, config_path = _class_of(path, read)
    if name in _CLASSES and class_name not in (None, *_CLASSES[name]):
        raise InputError(
            f'{config_path} says {class_name}, whose ids {name} alone does not give; write its tokenizer.json by '
            'AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers, or give '
            f'{path} itself to read it as {_READ_AS.get(name, "SentencePiece")} would'
        )
    return FolderVocabulary(path, others)


def local_vocabulary(path: str) -> FolderVocabulary:
    """Returns a vocabulary's file on this machine, with what is recorded of it; of a folder, the file in it.

    Raises:
        InputError: as `vocabulary_in_folder`, or the folder cannot be looked into.
    """
    if not os.path.isdir(path):
        for manifest, listed in manifests_of(os.path.abspath(path)).items():
            for record in _vocabularies_of(manifest, read_if_there):
                if record.name == listed:
                    return FolderVocabulary(path, [], record)
        return FolderVocabulary(path, [])
    try:
        names = os.listdir(path)
    except OSError as error:
        raise InputError(
            f'{path} cannot be looked into ({error.strerror}); give the path of a vocabulary file'
        ) from error
    return vocabulary_in_folder(path, names)


def manifests_of(path: str) -> dict[str, str]:
    """Returns where the manifest of a vocabulary file may be, and the name by which it lists the file."""
    folder, name = os.path.split(path)
    manifests = {
        f'{path}.{DATASET_MANIFEST}': name,
        os.path.join(folder, DATASET_MANIFEST): name,
    }
    dataset, own = os.path.split(folder)
    if re.fullmatch(TOKENIZER_FOLDER, own):
        manifests[os.path.join(dataset, DATASET_MANIFEST)] = f'{own}/{name}'
    return manifests


def _vocabularies_of(manifest: str, read: ReadBeside) -> tuple[DatasetVocabulary, ...]:
    """Returns the vocabularies that a manifest lists; none if there is no such file."""
    try:
        listed = json.loads(read(manifest) or b'{}').get('vocabularies', [])
        return checked(listed, tuple[DatasetVocabulary, ...], 'vocabularies')
    except (ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f'{manifest} is not a manifest of tokbeam ({error!s:.200}); give the path of the vocabulary '
            'file itself'
        ) from error


def pattern_of_ranks(path: str) -> Pattern | None:
    """Returns the pattern that a file of ranks is for by its name; None if the name is for any pattern."""
    return _PATTERNS.get(path.rpartition('/')[2])


def config_beside(path: str, read: ReadBeside = read_if_there) -> Mapping[str, Any]:
    """Returns what the tokenizer_config.json next to a vocab.txt says; nothing for another class's.

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
    configured = [_config(path, name, read).get('eos_token') for name in CONFIG_NAMES]
    tokens = [token.get('content') if isinstance(token, dict) else token for token in configured]
    return list(dict.fromkeys(token for token in tokens if isinstance(token, str)))


def _class_of(path: str, read: ReadBeside) -> tuple[str | None, str]:
    """Returns the class of tokenizers or the type of model that a file next to a vocabulary states, and its path."""
    for name, key in (
        (CONFIG_NAME, 'tokenizer_class'),
        (_MODEL_CONFIG, 'tokenizer_class'),
        (_MODEL_CONFIG, 'model_type'),
    ):
        stated = _config(path, name, read).get(key)
        if isinstance(stated, str):
            return stated.removesuffix('Fast'), _path_beside(path, name)
    return None, ''


def _config(path: str, name: str, read: ReadBeside) -> Mapping[str, Any]:
    place = _path_beside(path, name)
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


def _path_beside(path: str, name: str) -> str:
    above, separator, _ = path.rpartition('/')
    return f'{above}{separator}{name}'


def tokenizer_config(
    special_tokens: Iterable[str], has_type_ids: bool = False, **arguments: bool | None
) -> bytes:
    """Returns the tokenizer_config.json.

    Args:
        special_tokens: of the vocabulary.
        has_type_ids: whether models take the number of a text of a pair, as BERT does.
        arguments: of a model's class of tokenizers, for those who open the folder by that.
    """
    known = set(special_tokens)
    # The first of a role's names that is known.
    roles = {
        role: name for role, names in ROLE_TOKENS.items() for name in names[::-1] if name in known
    }
    inputs = ['input_ids', *(['token_type_ids'] if has_type_ids else []), 'attention_mask']
    return _dumped(
        {
            **roles,
            **arguments,
            'clean_up_tokenization_spaces': False,
            'model_input_names': inputs,
            'model_max_length': _UNLIMITED,
            'tokenizer_class': _CLASS,
        }
    )


def tokenizer_json(
    model: dict[str, Any],
    special_tokens: Sequence[tuple[int, str]],
    template: Template,
    **parts: dict[str, Any],
) -> bytes:
    """Returns a tokenizer.json, as `tokenizers` writes it.

    Args:
        model: its JSON.
        special_tokens: with their ids; those of the template are among them.
        template: the ids around a row; in a pair, those after a row follow both.
        parts: the JSON of the normalizer, the pre_tokenizer and the decoder.
    """
    tokens = dict(special_tokens)
    added = [
        {
            'id': id_,
            'content': content,
            'single_word': False,
            'lstrip': False,
            'rstrip': False,
            'normalized': False,
            'special': True,
        }
        for id_, content in sorted(special_tokens)
    ]
    return _dumped(
        {
            'version': '1.0',
            'truncation': None,
            'padding': None,
            'added_tokens': added,
            'normalizer': parts['normalizer'],
            'pre_tokenizer': parts['pre_tokenizer'],
            'post_processor': _post_processor(template, tokens) if template.size else None,
            'decoder': parts['decoder'],
            'model': model,
        }
    )


def _post_processor(template: Template, tokens: dict[int, str]) -> dict[str, Any]:
    def special(ids: Iterable[int], text: int) -> list[dict[str, Any]]:
        return [{'SpecialToken': {'id': tokens[id_], 'type_id': text}} for id_ in ids]

    def row(name: str, text: int) -> dict[str, Any]:
        return {'Sequence': {'id': name, 'type_id': text}}

    first = [*special(template.before, 0), row('A', 0), *special(template.after, 0)]
    second = [row('B', 1), *special(template.after, 1)]
    used = sorted({*template.before, *template.after})
    return {
        'type': 'TemplateProcessing',
        'single': first,
        'pair': [*first, *second],
        'special_tokens': {
            tokens[id_]: {'id': tokens[id_], 'ids': [id_], 'tokens': [tokens[id_]]} for id_ in used
        },
    }


def _dumped(value: dict[str, Any]) -> bytes:
    return f'{json.dumps(value, indent=2, ensure_ascii=False)}\n'.encode()
