"""Files from which Hugging Face's libraries open a vocabulary by its folder.

`tokenizer.json` is the tokenizer of `tokenizers`, and `tokenizer_config.json` says to transformers which
of its tokens are for padding, for the end of a text and so on. A scheme makes them by
`Scheme.tokenizer_files`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from tokcore.encoding.vocabulary import Template

TOKENIZER_NAME, CONFIG_NAME = 'tokenizer.json', 'tokenizer_config.json'

CONFIG_NAMES = (CONFIG_NAME, 'special_tokens_map.json')
"""Files beside a vocabulary that say which of its special tokens have a role."""

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

ExportTarget = Literal['huggingface', 'tiktoken', 'sentencepiece', 'vocab.txt', 'subword-nmt']
EXPORT_TARGETS: tuple[ExportTarget, ...] = get_args(ExportTarget)
"""The tools whose files `tokbeam export` makes."""

_CLASS = 'PreTrainedTokenizerFast'
"""Of transformers 4, and an alias in 5: it takes tokenizer.json as it is. Classes of models make some
of it anew, differently in 4 and 5."""

_UNLIMITED = 10**30
"""By convention: texts may have any length."""


def _special_tokens_by_role(tokens: Iterable[str]) -> dict[str, str]:
    """Returns for each role of transformers the first of its tokens that is there."""
    known = set(tokens)
    roles = {
        role: next((name for name in names if name in known), None)
        for role, names in ROLE_TOKENS.items()
    }
    return {role: name for role, name in roles.items() if name is not None}


def tokenizer_config(
    special_tokens: Iterable[str], has_type_ids: bool = False, **arguments: bool | None
) -> bytes:
    """Returns the tokenizer_config.json.

    Args:
        special_tokens: of the vocabulary.
        has_type_ids: whether models take the number of a text of a pair, as BERT does.
        arguments: of a model's own class of tokenizers, for who opens the folder by that.
    """
    inputs = ['input_ids', *(['token_type_ids'] if has_type_ids else []), 'attention_mask']
    return _dumped(
        {
            **_special_tokens_by_role(special_tokens),
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
