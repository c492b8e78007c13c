"""The sample that a vocabulary is counted from: what it can be of, how it is found and told."""

import dataclasses
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
from tokcore.corpus.sampling import (
    FileSample,
    LineSample,
    RowSample,
    TakenLines,
    UniformSample,
    compile_sampling_kernels,
    number_items,
    sample_file,
    starts_to_number,
)
from tokcore.corpus.stats import LineTally
from tokcore.corpus.vocab_sample import LineBudget, UniformShare, asked_sample
from tokcore.errors import InputError
from tokcore.records.manifest import SampleRecord

_SAMPLING = 'sampling'


@dataclass(frozen=True)
class SampledPlan:
    """What is to be read, and what of it is counted.

    Attributes:
        plan: with numbered lines, if the sample is one of lines.
        how: the sample was asked for; None: there is none.
        sample: for workers.
    """

    plan: ReadPlan
    how: str | None = None
    sample: RowSample | None = None

    def records(
        self, side: str, sides: Sequence[int], lines: LineTally, tokens: int
    ) -> tuple[SampleRecord, ...]:
        """Returns what manifests tell of the sample; nothing if there is none.

        Args:
            side: which is counted of the corpus, by name.
            sides: the same by numbers.
            lines: what was read of the training corpus.
            tokens: that were counted.

        Raises:
            InputError: nothing was taken.
        """
        if not isinstance(self.sample, LineSample):
            if self.how is None:
                return ()
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
                sum(of.lines for (_, other), of in self.sample.taken.items() if other == number),
            )
            for number, name in zip(sides, names, strict=True)
        )


def refuse_unfit(how: str | None, corpus: Corpus) -> None:
    """Refuses a sample that cannot be had of a training corpus.

    Raises:
        InputError: lines of files are asked for, and not all rows are such, or not all are taken.
    """
    if how is None or isinstance(asked_sample(how), UniformShare):
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
        if split.max_examples is not None:
            raise InputError(
                f'--vocab-sample {how} takes lines from all of a file, as Tensor2Tensor does, and '
                f'of {whose} the first {split.max_examples} examples are taken; {instead}'
            )


def plan_sample(
    plan: ReadPlan, how: str | None, execution: Execution, folder: str, sides: frozenset[int]
) -> SampledPlan:
    """Finds what is taken of a training corpus; of lines that takes a pass over the files.

    Args:
        plan: of the training corpus.
        how: `refuse_unfit` has let pass; None for all of it.
        execution: runs the pass.
        folder: for what the workers report.
        sides: that are counted.

    Raises:
        InputError: a file cannot be read, is damaged, or none of a side's lines are taken.
    """
    if how is None:
        return SampledPlan(plan)
    asked = asked_sample(how)
    if isinstance(asked, UniformShare):
        return SampledPlan(plan, how, UniformSample(asked.threshold))
    execution.engine.compile_first(compile_sampling_kernels)
    parts = _parts(plan, asked, sides)
    found = _sample_files(parts, execution, folder)
    for side in sides:
        of_side = [(part, found[part.key]) for part in parts if part.side == side]
        if not any(each.taken.lines for _, each in of_side):
            _refuse_empty(how, of_side)
    first_lines = {place: each.first_lines for (place, _), each in found.items()}
    items = number_items(plan.items['train'], first_lines)
    numbered = dataclasses.replace(plan, items={**plan.items, 'train': items})
    taken = {key: each.taken for key, each in found.items()}
    return SampledPlan(numbered, how, LineSample(taken))


@dataclass(frozen=True)
class _Part:
    """A file that is to be sampled."""

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


def _parts(plan: ReadPlan, asked: LineBudget, sides: frozenset[int]) -> list[_Part]:
    starts = starts_to_number(plan.items['train'])
    most = plan.reading.max_line_bytes
    return [
        _Part(place, side, files[side], asked.size, tuple(starts.get(place, ())), most)
        for split in plan.reading.corpus.splits
        for place, files in zip(split.file_indexes, split.files, strict=True)
        for side in sorted(sides)
    ]


def _sample_files(
    parts: Sequence[_Part], execution: Execution, folder: str
) -> dict[tuple[int, int], FileSample]:
    report = filesystem.join(folder, 'sampled-files')
    passes = in_passes(parts, lambda part: (part.file,), execution.item_bytes)
    sampling = MapToStats(passes, _sample_parts, report)
    with track_work('sample', _SAMPLING, sum(part.file.size for part in parts)):
        execution.engine.run(lambda pipeline: pipeline | 'SampleFiles' >> sampling)
    return {
        (each.file_index, each.side): FileSample(
            TakenLines(each.period, each.lines), tuple(each.first_lines)
        )
        for each in read_stats(report, _Sampled)
    }


def _sample_parts(parts: Sequence[_Part]) -> Iterator[_Sampled]:
    # A compressed file is read twice, so of an archive two readers go on from member to member.
    twice = [(part.file, part.file) if part.file.compressed else (part.file,) for part in parts]
    with reading_on(filesystem.open_binary, twice) as open_binary:
        for part in parts:
            found = sample_file(
                part.file, part.budget, open_binary, part.max_line_bytes, part.starts
            )
            advance(_SAMPLING, part.file.size)
            lines = list(found.first_lines)
            yield _Sampled(*part.key, found.taken.period, found.taken.lines, lines)


def _refuse_empty(how: str, of_side: Sequence[tuple[_Part, FileSample]]) -> None:
    part, found = max(of_side, key=lambda each: each[1].taken.period)
    raise InputError(
        f'--vocab-sample {how} takes no line: of {part.file.path} it would be one line in '
        f'{found.taken.period:,}, and there are fewer; give a larger budget'
    )
