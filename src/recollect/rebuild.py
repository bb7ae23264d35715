"""Objects that a file can name and describe by plain values, so that opening it builds them again and runs no code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Set
from typing import Any, TypeVar

import numpy as np
import torch

Plain = dict[str, Any]
T = TypeVar("T", bound=type)

PARTS = {"self", "model", "module", "memory"}  # arguments that are objects themselves, and are kept in their own way
UNNAMED = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
SETTINGS = (bool, int, float, str, tuple, list, np.generic, type(None))  # what may be changed after it was made
_KNOWN: dict[str, type] = {}


def rebuildable(cls: T) -> T:
    """Have instances of a class remember the arguments that they were made with; subclasses are marked themselves.

    Arguments have names and plain values, or arrays of them. Where an attribute has the name of one and was changed
    since, to another number, name, tuple, list or None, that takes its place. A file names the class by its name alone,
    so that no two can have the same.

    >>> @rebuildable
    ... class Box:
    ...     def __init__(self, size=(2, 3), *, name="box"): ...
    >>> described(Box((4, 5)))
    {'class': 'Box', 'arguments': {'size': [4, 5], 'name': 'box'}}
    """
    make, signature = cls.__init__, inspect.signature(cls.__init__)
    if unnamed := [name for name, each in signature.parameters.items() if each.kind in UNNAMED]:
        raise ValueError(f"{cls.__name__} takes any {' and '.join(unnamed)}: accepted are arguments that have names")
    taken = _KNOWN.get(cls.__name__, cls)
    if taken.__module__ != cls.__module__:  # in the same one it is the same class, made anew
        raise ValueError(f"{taken.__module__} has a class {cls.__name__}: accepted is another name")

    @functools.wraps(make)
    def remembering(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if type(self) is cls:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            given = {name: plain(value) for name, value in bound.arguments.items() if name not in PARTS}
            self._arguments = given
            self._settings = {
                name: plain(value) for name in given if isinstance(value := getattr(self, name, self), SETTINGS)
            }

    cls.__init__ = remembering
    _KNOWN[cls.__name__] = cls
    return cls


def described(thing: object) -> Plain:
    """The name of a class and the arguments; without arguments for a class that is not `rebuildable`."""
    arguments = getattr(thing, "_arguments", None)
    if arguments is not None:
        before: Plain = thing._settings  # pyright: ignore[reportAttributeAccessIssue]
        now = {name: getattr(thing, name) for name in before}
        arguments = arguments | {
            name: plain(value)
            for name, value in now.items()
            if isinstance(value, SETTINGS) and plain(value) != before[name]
        }
    return {"class": type(thing).__name__, "arguments": arguments}


def known(description: Plain) -> bool:
    """Whether what is described can be built here: a class may be someone's own, not imported, or changed since."""
    cls, arguments = _KNOWN.get(description["class"]), description["arguments"]
    return cls is not None and arguments is not None and arguments.keys() <= inspect.signature(cls).parameters.keys()


def rebuilt(description: Plain, **parts: object) -> Any:
    """An object as it was described, of one of the classes that were marked `rebuildable` and no other.

    >>> rebuilt({"class": "Popen", "arguments": {"args": "ls"}})
    Traceback (most recent call last):
    ValueError: Popen cannot be built from a file
    """
    if not known(description) or not PARTS.isdisjoint(description["arguments"]):
        raise ValueError(f"{description['class']} cannot be built from a file")
    return _KNOWN[description["class"]](**parts, **description["arguments"])


def plain(value: Any) -> Any:
    """``value`` with lists in the place of arrays, tuples and sets."""
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"a dictionary has the key {wrong[0]!r}: accepted are names, which a file can hold")
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic | torch.Tensor):
        return value.tolist()
    if isinstance(value, tuple | list | range | Set):
        return [plain(part) for part in value]
    return value
