"""What tests remember of Beam is what Beam works out."""

import apache_beam as beam
import faster_beam
import pytest
from apache_beam.coders import VarIntCoder
from apache_beam.options.pipeline_options import (
    DebugOptions,
    DirectOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.transforms import core, userstate
from apache_beam.typehints import decorators

# `transforms.core` has it by name.
ORIGINAL_SIGNATURE = core.get_signature
FLAGS = [[], ['--direct_num_workers=2', '--runner=x', '--experiments=a'], ['--no_such_option']]


class Summing(beam.DoFn):
    SUM = userstate.ReadModifyWriteStateSpec('sum', VarIntCoder())

    def process(self, element, state=beam.DoFn.StateParam(SUM), factor=3):
        yield element


@pytest.fixture(autouse=True)
def installed():
    faster_beam.install()


@pytest.mark.parametrize('flags', FLAGS, ids=str)
def test_options_are_those_of_their_flags(flags):
    options = PipelineOptions(flags)
    for _ in range(2):
        for kind in (StandardOptions, DirectOptions, DebugOptions):
            view = options.view_as(kind)
            assert type(view) is kind
            alone = kind(flags)
            listed = {name for name in dir(alone._visible_options) if name[0] != '_'}
            assert {*view._visible_option_list()} == listed
            assert {name: getattr(view, name) for name in alone._visible_option_list()} == {
                name: getattr(alone, name) for name in alone._visible_option_list()
            }


def test_views_share_what_is_set_and_other_options_do_not():
    first, second = (PipelineOptions(['--experiments=a']) for _ in range(2))
    first.view_as(DebugOptions).experiments.append('b')
    first.view_as(StandardOptions).runner = 'mine'
    assert first.view_as(DebugOptions).experiments == ['a', 'b']
    assert first.view_as(StandardOptions).runner == 'mine'
    assert second.view_as(DebugOptions).experiments == ['a']
    assert second.view_as(StandardOptions).runner is None


@pytest.mark.parametrize('flags', FLAGS, ids=str)
@pytest.mark.parametrize(
    'how', [{}, {'drop_default': True, 'retain_unknown_options': True}], ids=str
)
def test_all_options_are_those_of_flags_and_of_what_was_set(flags, how):
    for experiments in (['b'], ['c'], None):
        options = PipelineOptions(flags)
        options.view_as(DebugOptions).experiments = experiments
        # With a function of its own it is worked out anew.
        expected = options.get_all_options(**how, add_extra_args_fn=lambda parser: None)
        for _ in range(2):
            values = options.get_all_options(**how)
            assert values == expected
            values['experiments'] = 'mine'


def test_signatures_are_those_of_the_function():
    for function in (Summing.process, Summing().process, installed, int, 'a'.join):
        for _ in range(2):
            assert decorators.get_signature(function) == ORIGINAL_SIGNATURE(function)


def test_a_function_that_yields_and_returns_is_found():
    def both(element):
        yield element
        return [element]

    def one(element):
        return [element]

    for _ in range(2):
        assert core._check_fn_use_yield_and_return(both)
        assert not core._check_fn_use_yield_and_return(one)


def test_arguments_and_states_are_those_of_the_class():
    for _ in range(2):
        names, defaults = core.get_function_arguments(Summing(), 'process')
        assert names == ['element', 'state', 'factor']
        assert defaults[0].state_spec is Summing.SUM and defaults[1:] == [3]
        assert userstate.get_dofn_specs(Summing()) == ({Summing.SUM}, set())
        assert not userstate.is_stateful_dofn(core.CallableWrapperDoFn(len))
