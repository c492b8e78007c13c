"""What two vocabularies have in common: how they cut a text that both get, and their entries."""

from __future__ import annotations

import collections
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from pipelines.artifacts.vocabularies import read_vocabulary, scheme_of
from pipelines.files import filesystem
from pipelines.report.figures import TEXT_ROWS, Figures
from pipelines.report.page import page, piece_boxes, some_of, table, table_by_name
from pipelines.report.row_text import TextTally, legible, script_of
from tokcore.encoding.tokenizer import Tokenizer
from tokcore.reading.dataset import open_dataset
from tokcore.tokenizers import tokenizer_of

_WORDS = 60
"""Words that are listed of those that two tokenizers cut differently."""

_EXAMPLES = 100
"""Entries that are listed of those that only one vocabulary has."""

_PROBE = 'A b, c.'
"""Comes back unchanged from a tokenizer that keeps capital letters and spaces."""

_LEAD = 'a '
"""Stands before each word, since many vocabularies have other pieces for a word after a space."""

_TEXT_BYTES = 4 << 20
"""What is read of a text: plain Python takes seconds for its words."""


def text_of_file(path: str) -> list[str]:
    """Returns the lines at the beginning of a file of text."""
    with filesystem.open_binary(path) as stream:
        return stream.read(_TEXT_BYTES).decode('utf-8', 'replace').splitlines()


def cut_by_datasets(folders: Sequence[str], text: Sequence[str] | None) -> Figures:
    """Returns, by feature, `cut_text` by the vocabularies of two datasets.

    Args:
        folders: of the datasets.
        text: None: the first rows of both.
    """
    datasets = [open_dataset(folder) for folder in folders]
    first, second = (dataset.features for dataset in datasets)
    figures = {}
    for names in [(name, name) for name in first if name in second] or [(first[-1], second[-1])]:
        tokenizers, texts = [], []
        for dataset, name in zip(datasets, names, strict=True):
            tokenizers.append(tokenizer_of(dataset.vocabulary(name), dataset.scheme))
            texts.append(
                [
                    dataset.text(row[name], name)
                    for split in [*dataset.splits][: not text]
                    for row in itertools.islice(dataset.examples(split), TEXT_ROWS)
                ]
            )
        # A tokenizer without capital letters, say, gives back another text than it got.
        exact = [
            own for tokenizer, own in zip(tokenizers, texts, strict=True) if _is_exact(tokenizer)
        ]
        rows_of_both = itertools.chain.from_iterable(exact or texts)
        figures[names[0]] = cut_text(tokenizers, text or [*dict.fromkeys(rows_of_both)])
    return figures


def _is_exact(tokenizer: Tokenizer) -> bool:
    [ids] = _encode(tokenizer, [_PROBE])
    return tokenizer.decode(ids or ()) == _PROBE


def cut_text(tokenizers: Sequence[Tokenizer], texts: Sequence[str]) -> Figures:
    """Returns how two tokenizers cut the same texts.

    Returns:
        bytes: of the text.
        left_out: texts that are not counted, since a tokenizer has no ids for a part of them.
        ids, unknown: of each tokenizer: ids, without templates, and how many of them are the unknown token.
        words: as `TextSums` counts them.
        differing: how many of these the tokenizers cut at different characters.
        examples: (word, how often it occurs, the pieces of each tokenizer), the commonest that differ.
    """
    encoded = [*zip(texts, *(_encode(tokenizer, texts) for tokenizer in tokenizers), strict=True)]
    kept = [row for row in encoded if None not in row]
    tally = TextTally()
    tally.add_texts([text for text, *_ in kept])
    table = tally.words()
    bounds = zip(table.offsets, table.offsets[1:], table.counts.tolist())
    counts = {table.data[first:end].tobytes().decode(): count for first, end, count in bounds}
    words = sorted(counts, key=lambda word: (-counts[word], word))
    cut = [_cut_words(tokenizer, words) for tokenizer in tokenizers]
    differing = [
        (word, counts[word], *(ids for ids, _ in both))
        for word, *both in zip(words, *cut, strict=True)
        if both[0][1] != both[1][1]
    ]
    vocabularies = [tokenizer.vocabulary for tokenizer in tokenizers]
    return {
        'bytes': sum(len(text.encode('utf-8', 'surrogatepass')) for text, *_ in kept),
        'left_out': len(encoded) - len(kept),
        'ids': [sum(len(row[side]) for row in kept) for side in (1, 2)],
        'unknown': [
            sum(row[side].count(vocabulary.special_ids.unknown) for row in kept)
            for side, vocabulary in enumerate(vocabularies, 1)
        ],
        'words': sum(counts.values()),
        'differing': sum(count for _, count, *_ in differing),
        'examples': [
            (word, count, *map(legible, both, vocabularies))
            for word, count, *both in differing[:_WORDS]
        ],
    }


def _encode(tokenizer: Tokenizer, texts: Sequence[str]) -> Sequence[list[int] | None]:
    """Returns the ids of each text, None for one of which a part has no ids."""
    try:
        return tokenizer.encode_batch(texts, add_special_tokens=False)
    except ValueError:
        if len(texts) == 1:
            return [None]
        return [ids for text in texts for ids in _encode(tokenizer, [text])]


def _cut_words(
    tokenizer: Tokenizer, words: Sequence[str]
) -> Iterator[tuple[list[int], frozenset[int]]]:
    """Yields the ids of each word, and after how many characters a piece ends."""
    [lead], unknown = _encode(tokenizer, [_LEAD.strip()]), tokenizer.special_ids.unknown
    for ids in _encode(tokenizer, [_LEAD + word for word in words]):
        own = (ids or [])[len(lead or ()) :]
        ends = (len(tokenizer.decode(own[:end]).strip()) for end in range(1, len(own) + 1))
        yield own, frozenset([-1] if unknown in own else ends)


def compare_vocabularies(paths: Sequence[str], text: Sequence[str] | None = None) -> Figures:
    """Compares the vocabularies of two files.

    Returns:
        text: `cut_text` of a text; None without one.
        unit: what is compared: `pieces` as their files have them, or, for two schemes, `texts` that they
            spell, without the white space around them.
        shared: units that both have.
        vocabularies: of the first and of the second: its path and scheme; size; scripts: entries by the
            script of their first letter, the commonest first, `other` if they have none; own, how many
            units only this one has; examples, the first of these.

    Raises:
        InputError: a file is not a vocabulary.
    """
    schemes = [scheme_of([path]) for path in paths]
    entries = [
        read_vocabulary(path, scheme).entries for path, scheme in zip(paths, schemes, strict=True)
    ]
    texts = [  # that each id spells alone
        [vocabulary.decode([id_]) for id_ in range(vocabulary.vocab_size)] for vocabulary in entries
    ]
    is_same = schemes[0].name == schemes[1].name
    units = [
        dict.fromkeys(vocabulary.pieces if is_same else map(str.strip, own))
        for vocabulary, own in zip(entries, texts, strict=True)
    ]
    figures = []
    for path, scheme, own, unit, other in zip(
        paths, schemes, texts, units, reversed(units), strict=True
    ):
        scripts = collections.Counter(map(_script_of_entry, own))
        figures.append(
            {
                'path': path,
                'scheme': scheme.name,
                'size': len(own),
                'scripts': dict(sorted(scripts.items(), key=lambda item: (-item[1], item[0]))),
                'own': len(unit.keys() - other),
                'examples': [each for each in unit if each not in other][:_EXAMPLES],
            }
        )
    return {
        'text': text and cut_text([*map(tokenizer_of, entries, schemes)], text),
        'unit': 'pieces' if is_same else 'texts',
        'shared': len(units[0].keys() & units[1]),
        'vocabularies': figures,
    }


def _script_of_entry(text: str) -> str:
    letter = re.search(r'[^\W\d_]', text)
    return 'other' if letter is None else script_of(letter[0])


def comparison_page(compared: Figures) -> str:
    """Returns the page of two vocabularies."""
    named, unit = dict(zip('AB', compared['vocabularies'], strict=True)), compared['unit']
    summary = table(
        f'{compared["shared"]:,} {unit} are in both',
        ['', 'file', 'scheme', 'entries', f'{unit} that only this one has'],
        [(name, f['path'], f['scheme'], f['size'], f['own']) for name, f in named.items()],
    )
    scripts = {name: figures['scripts'] for name, figures in named.items()}
    only = (
        f'<h3>{f["own"]:,} {unit} only in {name}{some_of(f["own"], len(f["examples"]))}</h3>'
        f'{piece_boxes(f["examples"])}'
        for name, f in named.items()
    )
    return page(
        ' and '.join(os.path.basename(figures['path']) for figures in named.values()),
        summary,
        {
            **text_sections({'': compared['text']} if compared['text'] else {}),
            'Scripts': table_by_name(
                'Entries by the script of their first letter', 'script', scripts, 0
            ),
            'What only one has': ''.join(only),
        },
    )


def text_sections(cut: Mapping[str, Figures]) -> dict[str, str]:
    """Returns the sections of `cut_text`, by feature, or why there are none."""
    titles = 'Bytes per token of the same text', 'Words that are cut differently'
    if not cut:
        why = '<p>Not counted, because no text was given: --common-text FILE names one.</p>'
        return dict.fromkeys(titles, why)
    rows, words = [], []
    for feature, own in cut.items():
        per_token = [own['bytes'] / ids if ids else None for ids in own['ids']]
        rows.append([feature, own['bytes'], *per_token, *own['ids'], *own['unknown']])
        share = own['differing'] / max(1, own['words'])
        title = f'{own["differing"]:,} of {own["words"]:,} words ({share:.1%}) are cut differently'
        title = f'{feature}: {title}' if feature else title
        examples = [
            (word, count, *map(piece_boxes, both)) for word, count, *both in own['examples']
        ]
        heads = ['word', 'occurs', 'pieces of A', 'pieces of B']
        words.append(
            table(f'{title}; the most frequent first', heads, examples) or f'<p>{title}.</p>'
        )
    heads = [
        f'{what} {name}' for what in ('bytes per token:', 'tokens:', 'unknown:') for name in 'AB'
    ]
    caption = 'The more bytes a token stands for, the fewer tokens a text has'
    if left_out := sum(own['left_out'] for own in cut.values()):
        caption += f'; {left_out:,} texts are left out, of which A or B has no ids for a part'
    by_token = table(caption, ['', 'bytes', *heads], rows)
    return dict(zip(titles, [by_token, ''.join(words)], strict=True))
