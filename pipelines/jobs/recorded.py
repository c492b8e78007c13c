"""The corpus of a dataset as its manifest records it, whose files need not be there; and text added to it."""

import dataclasses
import itertools
import os
from collections.abc import Mapping
from typing import Any

from pipelines.artifacts.manifest import RunRecord
from pipelines.files import filesystem
from pipelines.files.filesystem import StoredFile
from pipelines.jobs.corpus import Corpus, CorpusInput, SplitPaths, check_same_shape
from pipelines.options.job import SPLITS, DatasetOptions
from pipelines.options.reading import options_from
from tokcore.corpus.corpus import CorpusFile, FilterSpec, Split
from tokcore.corpus.order_keys import key_ranges
from tokcore.corpus.stretches import CORPUS_INDEX, FileNewlines, parse_corpus_index
from tokcore.errors import InputError
from tokcore.filters.registry import is_code
from tokcore.reading.manifest import recorded_format
from tokcore.records.manifest import Manifest


def read_corpus_index(folder: str, manifest: Manifest) -> list[FileNewlines]:
    """Returns the line feeds of each input, as the index of a dataset has them.

    Raises:
        InputError: there is no index, or it is damaged.
    """
    data = filesystem.read_if_there(os.path.join(folder, CORPUS_INDEX))
    newlines = None if data is None else parse_corpus_index(data)
    if newlines is None or len(newlines) != len(manifest.inputs):
        what = 'no' if data is None else 'a damaged'
        raise InputError(
            f'{folder} has {what} {CORPUS_INDEX}, by which rows are found in the corpus; run `tokbeam '
            f'index {folder}`'
        )
    return newlines


def recorded_corpus(manifest: Manifest, run: RunRecord | None = None) -> Corpus:
    """Returns the corpus of a dataset, whose inputs have their entries, without looking for its files.

    Args:
        manifest: of the dataset.
        run: its last run, which has the paths; None: they are not known.

    Raises:
        InputError: the manifest does not say what the rows are.
    """
    try:
        return _corpus_of(manifest, run)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f'the manifest does not say what the rows of {manifest.options.get("name")!s:.60} are '
            f'({error!s:.200}); make the dataset again'
        ) from error


def _corpus_of(manifest: Manifest, run: RunRecord | None) -> Corpus:
    options: dict[str, Any] = manifest.options
    dataset = options_from(DatasetOptions, options)
    ranges = key_ranges(dataset.shares, dataset.seed) if dataset.shares else {}
    states = [('', text.bytes, 0.0) for text in manifest.inputs]
    if run is not None and len(run.inputs) == len(states):
        states = [*run.inputs]
    splits: list[Split] = []
    inputs: list[CorpusInput] = []
    for name in SPLITS:
        texts = [
            pair for pair in zip(manifest.inputs, states, strict=True) if pair[0].split == name
        ]
        left = iter(texts)
        records = [each for each in options.get('datasets', ()) if each['split'] == name]
        is_named, first = bool(records), 0
        for record in records or ([_of_split(options, name)] if texts else []):
            roles = {text.role for text, _ in texts}
            kind = recorded_format(roles, {'datasets': [record]} if is_named else record)
            width = len(kind.roles)
            own = [*itertools.islice(left, record.get('files', len(texts)) * width)]
            files = [CorpusFile(path, text.name, text.bytes, False) for text, (path, *_) in own]
            filters = tuple(
                FilterSpec(each['filter'], each['made_of'])
                if isinstance(each, dict)
                else FilterSpec(each)
                for each in record.get('clean', ())
            )
            splits.append(
                Split(
                    name,
                    kind,
                    tuple(zip(*[iter(files)] * width, strict=True)),
                    record.get('name', '') if is_named else '',
                    first,
                    tuple(record.get('prefixes', ())),
                    record.get('max_examples'),
                    filters=filters,
                    keeps_dropped=bool(options.get('keep_rejected') and filters),
                    key_range=ranges.get(name),
                )
            )
            for number, ((text, state), file) in enumerate(zip(own, files, strict=True)):
                stored = StoredFile(state[0], text.name, *state[1:])
                index, side = first + number // width, number % width
                inputs.append(CorpusInput(name, text.role, index, side, file, stored, text))
            first = splits[-1].file_indexes.stop
    return Corpus(tuple(splits), tuple(inputs))


def _of_split(options: Mapping[str, Any], split: str) -> dict[str, Any]:
    """Returns the options of the only dataset of a split."""
    prefix = '' if split == 'train' else f'{split}_'
    return {key[len(prefix) :]: value for key, value in options.items() if key.startswith(prefix)}


def as_recorded(added: SplitPaths, corpus: Corpus) -> SplitPaths:
    """Returns a dataset that is added with the options and filters of that which it continues.

    That is the one with its name in its split; the files of a new split are as those of the training corpus.

    Raises:
        InputError: not all of its rows are to be used, or a filter is code that nobody asked for.
    """
    if added.max_examples is not None:
        raise InputError('update takes all rows of what is added; leave max_examples out')
    of_split = [split for split in corpus.splits if split.name == added.split]
    like = next((split for split in of_split if split.dataset == added.dataset), None)
    kind = (like or corpus.splits[0]).format
    if added.format != kind.name or (like is None and (of_split or added.dataset)):
        return added
    clean = [] if like is None else [each.spec for each in like.filters]
    code = [*filter(is_code, clean)]
    if code and not added.clean:
        raise InputError(
            f'the dataset was made with the filter {code[0]}, which is code; give --clean '
            f'{",".join(clean)} to run it'
        )
    options = {**kind.options, **added.options}
    return dataclasses.replace(added, options=options, clean=added.clean or clean)


def with_added(corpus: Corpus, added: Corpus) -> Corpus:
    """Returns a recorded corpus with what is added at the ends of its splits.

    Raises:
        InputError: a dataset is not the last of its split, several have no name, or what is added has
            other features.
    """
    whole: list[Split] = []
    inputs: list[CorpusInput] = []
    for name in SPLITS:
        before, more = corpus.only(name), added.only(name)
        splits, count = [*before.splits], sum(len(split.files) for split in before.splits)
        for split in more.splits:
            if not splits or splits[-1].dataset != split.dataset:
                first = count + split.first_file_index
                splits.append(dataclasses.replace(split, first_file_index=first))
                continue
            last = splits[-1]
            for what in ('format', 'filters', 'prefixes'):
                there, now = getattr(last, what), getattr(split, what)
                if there != now and (what != 'prefixes' or now):
                    raise InputError(
                        f'{name} was made with other {what}: {there} there, and {now} of what is added; '
                        'give the same, or another name of the dataset in a job file'
                    )
            splits[-1] = dataclasses.replace(last, files=last.files + split.files)
        names = [split.dataset for split in splits]
        if len(names) > 1 and ('' in names or len({*names}) < len(names)):
            raise InputError(
                f'{name} has the datasets {", ".join(names)} then; name what is added in a job file, by '
                'another name or that of the last one'
            )
        whole += splits
        inputs += before.inputs
        inputs += (
            dataclasses.replace(each, file_index=each.file_index + count) for each in more.inputs
        )
    if added.splits:
        check_same_shape([(split.dataset or split.name, split.format) for split in whole])
    return Corpus(tuple(whole), tuple(inputs))
