"""The lines that a job may leave out."""

from pipelines.jobs.job import Execution
from pipelines.jobs.read_plan import ReadPlan
from pipelines.transforms.rejection_budget import RejectionBudget


def rejection_budget(plan: ReadPlan, execution: Execution) -> RejectionBudget | None:
    """Returns what the workers of a pipeline that reads a plan may leave out; None: any number."""
    if execution.max_rejected is None:
        return None
    firsts = [each for each in plan.reading.corpus.inputs if each.side == 0]
    splits = {(each.split, each.place) for each in firsts}
    known = {
        (split.name, place)
        for split in plan.reading.corpus.splits
        for place in split.places
        if split.format.identity == 'offset'
    }
    is_known = splits <= known and not any(each.file.compressed for each in firsts)
    size = sum(each.file.size for each in firsts) if is_known else None
    return RejectionBudget(execution.max_rejected, size)
