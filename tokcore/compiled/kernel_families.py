"""Functions that kernels call and whose body the type of one argument selects.

What a scheme does its own way is a family: a generic function with a body for each type of state, a
module-level `NamedTuple` of arrays and numbers. A scheme's module registers its body; whoever calls
the function names no scheme:

    @kernel_family('model')
    def segment(text, model, ids):
        '''Says what every body does.'''

    @segment.register(WordModel)
    @kernel_without_allocation
    def _segment_words(text, model, ids): ...

In kernels numba chooses the body while it compiles, one specialisation a type, and finds it in its
cache in the next process. Elsewhere, and where nothing is compiled (NUMBA_DISABLE_JIT=1), the
function looks it up by the argument's type.
"""

import functools
import inspect
from collections.abc import Callable

import numba
from numba.extending import overload

_Decorator = Callable[[Callable], Callable]


def kernel_family(argument: str) -> _Decorator:
    """Decorates the signature and docstring of a family; `argument` has the type that selects."""

    def decorated(declared: Callable) -> Callable:
        signature = inspect.signature(declared)
        place = list(signature.parameters).index(argument)
        bodies: dict[type, Callable] = {}

        @functools.wraps(declared)
        def generic(*arguments):
            try:
                body = bodies[type(arguments[place])]
            except KeyError as error:
                raise TypeError(f'{declared.__name__} has no body for {error}') from None
            return body(*arguments)

        def register(state: type) -> _Decorator:
            """Decorates the kernel, of the same arguments, for this type of state."""

            def registered(body: Callable) -> Callable:
                if inspect.signature(body) != signature:
                    raise TypeError(f'{body.__name__} has other arguments than {declared.__name__}')
                bodies[state] = body
                if not numba.config.DISABLE_JIT:
                    _overload(generic, signature, place, state, body)
                return body

            return registered

        generic.register = register
        return generic

    return decorated


def _overload(generic, signature: inspect.Signature, place: int, state: type, body) -> None:
    """Tells numba of a body, which is compiled with its own options into whoever calls it."""

    def selected(*argument_types):
        is_chosen = getattr(argument_types[place], 'instance_class', None) is state
        return body.py_func if is_chosen else None

    selected.__signature__ = signature
    overload(generic, jit_options={'_nrt': body.targetoptions['_nrt']})(selected)
