"""This project's speed and memory beside those of the tools its users would pick instead.

    python -m tests.benchmarks --help

The extra `bench` installs the peers; one that is not there is reported as missing. A row is a task
and its contenders, each measured in a fresh process, the runs interleaved.
"""
