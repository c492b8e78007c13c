"""The survey of token counts, as a job: files to one file of facts, with the borders of groups."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.count_batches import read_new_batches
from pipelines.learning.learner_files import TokenStats
from pipelines.transforms.write_report import GatherOnOne
from tokcore.subword.partitioned.prefix_partitions import choose_groups
from tokcore.subword.partitioned.suffix_table import SuffixTable
from tokcore.subword.partitioned.token_survey import Surveyor, TokenSurvey, add_surveys
from tokcore.subword.vocabulary_file import UNSTORABLE

GROUP_BYTES = 4 << 20
"""What a group's table is to take: streamed through in a tenth of a second, and a cluster has some
hundred to share out for each GB. With half, twice as many small tables are merged for each
batch."""

MOST_GROUPS = 4096
"""Each is a file and two elements in every iteration; beyond, groups get larger instead."""


@dataclass(eq=False)
class SurveyTokens(beam.PTransform):
    """Writes the facts about all tokens of count files, and chooses the prefix groups.

    Attributes:
        facts_path: gets the facts.
        bits: one token in 2^bits is sampled.
        longest: the longest substring counted, in characters.
        group_bytes: what a group's table is to take.
    """

    facts_path: str
    bits: int
    longest: int
    group_bytes: int = GROUP_BYTES

    def expand(self, paths: beam.PCollection) -> beam.PCollection:
        return (
            paths
            | 'Survey' >> beam.Map(_survey, self.bits, self.longest)
            | 'Gather' >> GatherOnOne()  # (0, [packed survey])
            | 'Finish' >> beam.Map(_finish, self)
        )


def _survey(path: str, bits: int, longest: int) -> tuple:
    surveyor = Surveyor(bits, longest)
    for arrays in read_new_batches(path, UNSTORABLE):
        surveyor.add(*arrays)
    survey = surveyor.result()
    sums = (survey.tokens, survey.characters, str(survey.weight), str(survey.most))
    return (survey.alphabet, *sums, survey.sample.to_bytes(), survey.smaller_sample.to_bytes())


def _finish(gathered: tuple[int, Iterable[tuple]], surveying: SurveyTokens) -> None:
    survey = add_surveys(map(_unpacked, gathered[1]))
    predicted = survey.predicted_bytes(surveying.bits)
    groups = min(MOST_GROUPS, math.ceil(predicted / surveying.group_bytes))
    facts = TokenStats(
        survey.alphabet,
        survey.tokens,
        survey.characters,
        survey.weight,
        survey.most,
        predicted,
        choose_groups(survey.sample, groups).borders,
    )
    facts.write(surveying.facts_path)


def _unpacked(packed: Sequence) -> TokenSurvey:
    alphabet, tokens, characters, weight, most, sample, smaller = packed
    return TokenSurvey(
        alphabet, tokens, characters, int(weight), int(most),
        SuffixTable.from_bytes(sample), SuffixTable.from_bytes(smaller),
    )  # fmt: skip
