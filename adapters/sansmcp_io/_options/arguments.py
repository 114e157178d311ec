"""Functions that take the options of a class one by one, as their own arguments.

For a type checker the parameters are those of `__init__` of the class. At run time the signature
says so, too, and the docstring has the descriptions of the options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

P = ParamSpec("P")
OptionsT = TypeVar("OptionsT")
ReturnedT = TypeVar("ReturnedT")
SelfT = TypeVar("SelfT")


def takes(
    options: Callable[P, OptionsT],
) -> Callable[[Callable[[OptionsT], ReturnedT]], Callable[P, ReturnedT]]:
    """Give a function the parameters of its options, and their descriptions in its docstring."""

    def decorate(function: Callable[[OptionsT], ReturnedT]) -> Callable[P, ReturnedT]:
        @wraps(function)
        def spelled_out(*args: P.args, **keywords: P.kwargs) -> ReturnedT:
            with _errors_of(function.__name__, options):
                given = options(*args, **keywords)
            return function(given)

        returned = inspect.signature(function).return_annotation
        signature = _signature_of(options)
        spelled_out.__doc__ = _with_arguments(function.__doc__, options)
        setattr(spelled_out, _SIGNATURE, signature.replace(return_annotation=returned))
        return spelled_out

    return decorate


def init_takes(
    options: Callable[P, OptionsT],
) -> Callable[[Callable[[SelfT, OptionsT], None]], Callable[Concatenate[SelfT, P], None]]:
    """Give `__init__` of a class the parameters of its options, as `takes` does for a function."""

    def decorate(
        function: Callable[[SelfT, OptionsT], None],
    ) -> Callable[Concatenate[SelfT, P], None]:
        @wraps(function)
        def spelled_out(self: SelfT, /, *args: P.args, **keywords: P.kwargs) -> None:
            with _errors_of(type(self).__name__, options):
                given = options(*args, **keywords)
            function(self, given)

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        signature = _signature_of(options)
        parameters = [own, *signature.parameters.values()]
        setattr(spelled_out, _SIGNATURE, signature.replace(parameters=parameters))
        return spelled_out

    return decorate


def described(options: Callable[..., object]) -> Callable[[type[SelfT]], type[SelfT]]:
    """Add the descriptions of options to the docstring of a class."""

    def decorate(kind: type[SelfT]) -> type[SelfT]:
        kind.__doc__ = _with_arguments(kind.__doc__, options)
        return kind

    return decorate


_SIGNATURE: Final = "__signature__"
_TYPE_VARIABLE: Final = re.compile(r"\b(\w+)T\b")
_SECTIONS: Final = re.compile(r"\n\n(?=(?:Args|Raises):\n)")
_ARGUMENT: Final = re.compile(r"^    (\w+): (?:.*\n?)(?:     +.*\n?)*", re.MULTILINE)


@contextmanager
def _errors_of(name: str, options: Callable[..., object]) -> Generator[None, None, None]:
    """Let the text of a `TypeError` name the function that was called."""
    try:
        yield
    except TypeError as error:
        made = f"{_class_of(options).__name__}.__init__()"
        raise TypeError(str(error).replace(made, f"{name}()")) from None


def _class_of(options: Callable[..., object]) -> Any:
    return getattr(options, "__origin__", options)


def _signature_of(options: Callable[..., object]) -> inspect.Signature:
    """The signature of a class of options, without the `T` of type variables."""
    signature = inspect.signature(_class_of(options))
    parameters = [
        parameter.replace(annotation=_TYPE_VARIABLE.sub(r"\1", parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)


def _with_arguments(docstring: str | None, options: Callable[..., object]) -> str | None:
    """Return a docstring with the details, arguments and errors of the classes of options.

    Details and errors are those of the nearest class that has them.
    """
    if docstring is None:
        return None  # python -OO
    kind: type[object] = _class_of(options)
    details = raises = ""
    described: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        summary, *sections = _SECTIONS.split(inspect.cleandoc(base.__doc__ or ""))
        details = summary.partition("\n\n")[2] or details
        for section in sections:
            if section.startswith("Raises:"):
                raises = section
            else:
                described.update((found[1], found[0]) for found in _ARGUMENT.finditer(section))
    text, *own = _SECTIONS.split(inspect.cleandoc(docstring))
    names = inspect.signature(kind).parameters
    arguments = "\n".join(described[name].rstrip("\n") for name in names)
    return "\n\n".join(filter(None, (text, details, f"Args:\n{arguments}", *(own or [raises]))))
