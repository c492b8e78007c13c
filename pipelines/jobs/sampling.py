"""The sample that a vocabulary is counted from: when it is possible, and which lines it has."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.engines.progress import advance, track_work
from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus
from pipelines.jobs.job import Execution
from pipelines.jobs.read_plan import ReadPlan
from pipelines.transforms.read import MapToStats
from pipelines.transforms.stats import read_stats
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.stats import LineTally
from tokcore.counts.sampling import (
    FileSample,
    LineSample,
    RowSample,
    SampledLines,
    UniformSample,
    compile_sampling_kernels,
    number_items,
    sample_file,
    starts_to_number,
)
from tokcore.counts.vocab_sample import LineBudget, UniformShare, sample_from_option
from tokcore.errors import InputError
from tokcore.records.manifest import SampleRecord

_SAMPLING = 'sampling'


@dataclass(frozen=True)
class SampledPlan:
    """What is read, and which of its rows are counted.

    Attributes:
        plan: with numbered lines, for a sample of lines.
        how: the value of `--vocab-sample`; None: all rows are counted.
        sample: decides in the workers which rows are counted; None: all are.
    """

    plan: ReadPlan
    how: str | None = None
    sample: RowSample | None = None

    def records(
        self, side: str, sides: Sequence[int], lines: LineTally, tokens: int
    ) -> tuple[SampleRecord, ...]:
        """Returns the manifest's records of the sample; empty if there is none.

        Args:
            side: the name of the side that is counted.
            sides: the numbers of the sides that are counted.
            lines: the tally of the training corpus.
            tokens: the number of tokens counted.

        Raises:
            InputError: the sample is empty.
        """
        if self.how is None:
            return ()
        if not isinstance(self.sample, LineSample):
            of_all = lines.examples + lines.not_sampled
            if not lines.examples:
                raise InputError(
                    f'--vocab-sample {self.how} takes none of the {of_all:,} lines with text; '
                    'give a larger share'
                )
            return (SampleRecord.of(self.how, side, of_all, lines.examples),)
        if not tokens:
            raise InputError(
                f'--vocab-sample {self.how} takes no line with text; give a larger budget'
            )
        names = self.plan.reading.corpus.format.sides if len(sides) > 1 else (side,)
        return tuple(
            SampleRecord.of(
                self.how,
                name,
                lines.lines,
                sum(of.count for (_, other), of in self.sample.lines.items() if other == number),
            )
            for number, name in zip(sides, names, strict=True)
        )


def refuse_unfit(how: str | None, corpus: Corpus) -> None:
    """Refuses a sample that cannot be drawn from a training corpus.

    Raises:
        InputError: a sample of lines, of rows that are not lines, or of a limited number of rows.
    """
    if how is None or isinstance(sample_from_option(how), UniformShare):
        return
    for split in corpus.splits:
        if split.name != 'train':
            continue
        whose = f'the dataset {split.dataset}' if split.dataset else 'the training corpus'
        instead = 'give --vocab-sample uniform:0.1, say, which takes rows of any format'
        if not split.format.rows_are_lines:
            raise InputError(
                f'--vocab-sample {how} takes every n-th line of a file, as Tensor2Tensor '
                f'does, and the rows of {whose} are {split.format.what}; {instead}'
            )
        if split.key_range is not None:
            raise InputError(
                f'--vocab-sample {how} takes lines of a whole file, as Tensor2Tensor does, and a part '
                f'of {whose} is cut off by --dev-share or --test-share; {instead}'
            )
        if split.max_examples is not None:
            raise InputError(
                f'--vocab-sample {how} takes lines from all of a file, as Tensor2Tensor does, and '
                f'of {whose} the first {split.max_examples} examples are taken; {instead}'
            )


def plan_sample(
    plan: ReadPlan, how: str | None, execution: Execution, folder: str, sides: frozenset[int]
) -> SampledPlan:
    """Determines the sample of a training corpus; a sample of lines takes a pass over the files.

    Args:
        plan: how the training corpus is read.
        how: the value of `--vocab-sample`, checked by `refuse_unfit`; None: all rows.
        execution: runs the pass.
        folder: where workers leave their stats.
        sides: the numbers of the sides that are counted.

    Raises:
        InputError: a file cannot be read or is damaged, or the sample has no line of a side.
    """
    if how is None:
        return SampledPlan(plan)
    sample = sample_from_option(how)
    if isinstance(sample, UniformShare):
        return SampledPlan(plan, how, UniformSample(sample.threshold))
    for item in plan.items['train']:
        if not item.format.rows_are_lines:
            paths = ' and '.join(file.path for file in item.files)
            raise InputError(
                f'--vocab-sample {how} takes every n-th line of a file, as Tensor2Tensor does, and '
                f'the rows of {paths} are not on the same lines; give --vocab-sample uniform:0.1, say'
            )
    execution.engine.compile_first(compile_sampling_kernels)
    parts = _parts(plan, sample, sides)
    samples = _sample_files(parts, execution, folder)
    for side in sides:
        of_side = [(part, samples[part.key]) for part in parts if part.side == side]
        if not any(sample.lines.count for _, sample in of_side):
            _refuse_empty(how, of_side)
    first_lines = {index: sample.first_lines for (index, _), sample in samples.items()}
    items = number_items(plan.items['train'], first_lines)
    numbered = dataclasses.replace(plan, items={**plan.items, 'train': items})
    lines = {key: sample.lines for key, sample in samples.items()}
    return SampledPlan(numbered, how, LineSample(lines))


@dataclass(frozen=True)
class _Part:
    """A file to be sampled."""

    file_index: int
    side: int
    file: CorpusFile
    budget: int
    starts: tuple[int, ...]
    max_line_bytes: int

    @property
    def key(self) -> tuple[int, int]:
        return self.file_index, self.side


@dataclass(frozen=True)
class _Sampled:
    """What was found in one file."""

    file_index: int
    side: int
    period: int
    lines: int
    first_lines: list[int]


def _parts(plan: ReadPlan, sample: LineBudget, sides: frozenset[int]) -> list[_Part]:
    starts = starts_to_number(plan.items['train'])
    most = plan.reading.max_line_bytes
    return [
        _Part(place, side, files[side], sample.size, tuple(starts.get(place, ())), most)
        for split in plan.reading.corpus.splits
        for place, files in zip(split.file_indexes, split.files, strict=True)
        for side in sorted(sides)
    ]


def _sample_files(
    parts: Sequence[_Part], execution: Execution, folder: str
) -> dict[tuple[int, int], FileSample]:
    report = os.path.join(folder, 'sampled-files')
    passes = in_passes(parts, lambda part: (part.file,), execution.item_bytes)
    sampling = MapToStats(passes, _sample_parts, report)
    with track_work('sample', _SAMPLING, sum(part.file.size for part in parts)):
        execution.engine.run(lambda pipeline: pipeline | 'SampleFiles' >> sampling, folder)
    return {
        (sample.file_index, sample.side): FileSample(
            SampledLines(sample.period, sample.lines), tuple(sample.first_lines)
        )
        for sample in read_stats(report, _Sampled)
    }


def _sample_parts(parts: Sequence[_Part]) -> Iterator[_Sampled]:
    # A compressed file is read twice, so two readers go through an archive, member by member.
    twice = [(part.file, part.file) if part.file.compressed else (part.file,) for part in parts]
    with reading_on(filesystem.open_binary, twice) as open_binary:
        for part in parts:
            sample = sample_file(
                part.file, part.budget, open_binary, part.max_line_bytes, part.starts
            )
            advance(_SAMPLING, part.file.size)
            lines = list(sample.first_lines)
            yield _Sampled(*part.key, sample.lines.period, sample.lines.count, lines)


def _refuse_empty(how: str, of_side: Sequence[tuple[_Part, FileSample]]) -> None:
    part, sample = max(of_side, key=lambda pair: pair[1].lines.period)
    raise InputError(
        f'--vocab-sample {how} takes no line: of {part.file.path} it would be one line in '
        f'{sample.lines.period:,}, and there are fewer; give a larger budget'
    )
