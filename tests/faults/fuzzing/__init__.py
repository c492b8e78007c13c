"""Thousands of commands over drawn files and options, each held to what is promised of any command.

A kind of case is a function that draws files and options from a seeded dice, runs commands in a
`Room`, and compares what they made with a plain restatement of the rules. Every command must end
with status 0, or with 2 and one sentence, leave nothing behind then, and touch nothing that is not
its own. `python -m tests.faults.fuzzing --help` runs as many as wanted.
"""
