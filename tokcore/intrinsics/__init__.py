"""What numba has no words for: LLVM instructions that kernels call like functions.

They run on every processor that numba compiles for. None asks whether a place is within its array.
"""
