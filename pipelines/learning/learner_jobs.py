"""The jobs of a learner on Beam, each as a function that builds a pipeline."""

from collections.abc import Sequence

import apache_beam as beam

from pipelines.learning.count_suffixes import CountSubstrings
from pipelines.learning.partition_selection import SelectFromStored, StoreGroups
from pipelines.learning.survey_tokens import SurveyTokens


def survey_job(pipeline: beam.Pipeline, paths: Sequence[str], surveying: SurveyTokens) -> None:
    """Builds the survey of all tokens."""
    (
        pipeline
        | 'Paths' >> beam.Create(list(paths), reshuffle=False)
        | 'Share' >> beam.Reshuffle()
        | 'SurveyTokens' >> surveying
    )


def store_job(
    pipeline: beam.Pipeline,
    paths: Sequence[str],
    counting: CountSubstrings,
    storing: StoreGroups,
) -> None:
    """Builds a pass that makes the first iteration's tables."""
    (
        pipeline
        | 'Paths' >> beam.Create(list(paths), reshuffle=False)
        | 'Share' >> beam.Reshuffle()
        | 'CountSubstrings' >> counting  # (group, table)
        | 'StoreGroups' >> storing
    )


def round_job(pipeline: beam.Pipeline, transforms: Sequence[beam.PTransform]) -> None:
    """Builds iterations, or passes of one, each after the one before."""
    signal = pipeline | 'Begin' >> beam.Create([0], reshuffle=False)
    for number, transform in enumerate(transforms):
        iteration = 1 if isinstance(transform, SelectFromStored) else transform.counting.iteration
        signal = signal | f'Iteration{iteration}Step{number}' >> transform
