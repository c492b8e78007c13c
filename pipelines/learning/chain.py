"""Steps of a learner on Beam that wait for one another within one pipeline, each by a signal.

A step begins when the signal of the one before it is there, and reads what that one has left in files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.transforms.stats import GatherToDriver


def build_chain(steps: Mapping[str, beam.PTransform], pipeline: beam.Pipeline) -> None:
    """Builds steps, by their labels; each takes a signal and returns one."""
    signal = pipeline | 'Begin' >> beam.Create([0], reshuffle=False)
    for label, step in steps.items():
        signal = signal | label >> step


@dataclass(eq=False)
class EmitElements(beam.PTransform):
    """Emits the elements of a plan for any worker, when the signal is there."""

    plan: Sequence

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        return signal | 'Emit' >> beam.FlatMap(_emit, self.plan) | 'Reshuffle' >> beam.Reshuffle()


def _emit(signal: object, plan: Sequence) -> Sequence:
    return plan


@dataclass(eq=False)
class GatherResults(beam.PTransform):
    """Takes (signal, results) and returns one (0, [results]), with None among them.

    With one more element, a step without results ends with a signal too.
    """

    def expand(self, inputs) -> beam.PCollection:
        signal, results = inputs
        none = signal | 'AddNone' >> beam.Map(_none)
        return (none, results) | beam.Flatten() | 'Gather' >> GatherToDriver()


def _none(signal: object) -> None:
    return None
