"""Byte pair encoding whose words end with a suffix, `</w>` of GPT-1, CLIP and HerBERT.

The last unit of a word, a byte or a character, is another entry than the same unit within a word: `e</w>`
and `e`. As in subword-nmt's codes, a symbol is the number of a unit, plus `CODE_POINTS` if it is the last;
other entries have the numbers after these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tokcore.bpe.model import MergeModel
from tokcore.bpe.model_kernels import numbered_units
from tokcore.bpe.vocabulary import BpeVocabulary, refuse
from tokcore.text.byte_level import BYTE_TO_CHARACTER, CHARACTER_TO_BYTE
from tokcore.text.unicode import CODE_POINTS


def checked_suffix(model: Mapping[str, Any], vocabulary: BpeVocabulary, path: str) -> str:
    """Returns the suffix of the model of a tokenizer.json; '' if it has none.

    Raises:
        InputError: the model has a rule that is not supported with a suffix.
    """
    suffix, rules = model.get('end_of_word_suffix') or '', vocabulary.rules
    odd = [name for name in ('fuse_unk', 'byte_fallback', 'ignore_merges') if getattr(rules, name)]
    if rules.unk_token is None:
        odd.append('no unk_token')
    if any(rules.unk_token in pair for pair in vocabulary.merges if suffix):
        odd.append('a merge of unk_token')
    if suffix and (odd or not isinstance(suffix, str)):
        what = ' and '.join([f'the suffix {suffix!r:.80}', *odd])
        refuse(path, '$.model.end_of_word_suffix', what)
    return suffix


def suffix_model(vocabulary: BpeVocabulary, suffix: str) -> MergeModel:
    """Returns the model of a vocabulary whose suffix was checked."""
    byte_level, entries = vocabulary.parts.byte_level, vocabulary.entries
    symbols: dict[str, int] = {}
    others = 2 * CODE_POINTS
    for entry in entries:
        unit = entry if len(entry) == 1 else entry.removesuffix(suffix)
        if len(unit) == 1 and (unit in CHARACTER_TO_BYTE or not byte_level):
            code = CHARACTER_TO_BYTE[unit] if byte_level else ord(unit)
            symbols[entry] = code + CODE_POINTS * (unit != entry)
        else:
            symbols[entry] = others
            others += 1
    assert vocabulary.rules.unk_token is not None  # it was checked
    outputs = np.full(others, entries[vocabulary.rules.unk_token], np.int32)
    outputs[[*symbols.values()]] = [*entries.values()]
    merges = [
        (symbols[left], symbols[right], symbols[left + right]) for left, right in vocabulary.merges
    ]
    alphabet = [BYTE_TO_CHARACTER[byte] for byte in range(256)]
    units = numbered_units(alphabet if byte_level else ())
    return MergeModel(merges, units, size=vocabulary.vocab_size, outputs=outputs)
