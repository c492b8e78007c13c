"""The mark `fast`: what runs within a minute in all, without processes of its own or a long oracle."""

from pathlib import Path

import pytest

NOT_FAST = {
    # These compile kernels or start processes.
    'test_code_digest.py', 'test_jit.py', 'test_warm_up.py', 'test_walls.py', 'test_refusal_table.py',
    'test_process_end.py', 'test_first_mistakes.py', 'test_keyword_types.py', 'test_typed_program.py',
    # These serve stores, or open hundreds of files.
    'test_objects.py', 'test_bounds.py', 'test_hub.py', 'test_resumed_transfers.py',
    # These try many characters, rows or readers.
    'test_byte_level_scan.py', 'test_dropped.py', 'test_row_ends.py', 'test_split_sequence.py',
    'test_normalizers.py', 'test_bert_kernels.py', 'test_trainer.py', 'test_readers.py',
    'test_mixture.py', 'test_long_lines.py', 'test_storage.py', 'test_rules.py', 'test_sampling.py',
    'test_learner.py', 'test_write_runs.py', 'test_rounds.py',
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.path.name not in NOT_FAST:
            item.add_marker(pytest.mark.fast)
