"""A plan's elements to the workers: whichever is free takes the next one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.transforms.write_report import WriteReport


@dataclass(eq=False)
class ShareOut(beam.PTransform):
    """Begins a pipeline with the elements of a plan, which no worker has in fixed shares.

    Attributes:
        plan: the elements; they go with the pipeline, so they are small and name what is large.
    """

    plan: Sequence

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            root
            # Beam would look at the type of each element, and at those of all that a tuple holds.
            | 'Plan' >> beam.Create(list(self.plan), reshuffle=False).with_output_types(Any)
            | 'ShareOut' >> beam.Reshuffle()
        )


@dataclass(eq=False)
class ReportEach(beam.PTransform):
    """Calls a function for each element of a plan, on any worker, and reports what it gives.

    Attributes:
        plan: the elements.
        call: gives any number of instances of dataclasses, as `WriteReport` takes them.
        report: the file that they go to.
    """

    plan: Sequence
    call: Callable[[Any], Iterable[object]]
    report: str

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            root
            | ShareOut(self.plan)
            | 'Call' >> beam.FlatMap(self.call)
            | 'Report' >> WriteReport(self.report)
        )
