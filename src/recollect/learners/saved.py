"""A learner as parts of a file, beside those of its memory, and back."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from recollect.averaging import Average
from recollect.checks import check_number
from recollect.memory import file
from recollect.memory.memory import Memory
from recollect.memory.saved import (
    BROKEN,
    ITEMS,
    bytes_to_tensors,
    commit,
    module_described,
    module_rebuilt,
    restored,
    tensors_to_bytes,
)
from recollect.rebuild import Plain, described, known, plain, rebuilt

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.codecs.interface import Codec
    from recollect.learners.learner import Learner
    from recollect.module import RecollectionModule


ACCEPTED = "accepted are the classes of recollect, and your own that are marked with recollect.rebuild.rebuildable"


def save(learner: Learner, path: Path, progress: Plain | None) -> None:
    """Commit a learner and its memory to a file."""
    module: RecollectionModule | None = getattr(learner, "module", None)
    values, tensors = learner._state()
    average = learner._average
    objects = {"memory": learner.memory} if module is None and learner.memory is not None else {}
    description = {
        "learner": _described(learner, model=learner.model, **({"module": module} if module else objects)),
        "learning_rate": check_number("learning_rate", learner.learning_rate, above=0, or_equal=True),
        "model": module_described(learner.model),
        "module": _described(module, memory=module.memory) if module is not None else None,
        "values": values,
        "steps": average.steps if average is not None else 0,
        "progress": _checked(learner.progress if progress is None else progress),
    }
    parts = {
        "learner": json.dumps(description).encode(),
        "model": tensors_to_bytes(learner.model.state_dict()),
        "state": tensors_to_bytes({**tensors, "random": torch.get_rng_state()}),
        "average": tensors_to_bytes(average.kept if average is not None else {}),
        "optimiser": tensors_to_bytes(module.optimiser_state() if module is not None else {}),
    }
    if of_items := learner._of_items():
        parts[ITEMS] = tensors_to_bytes(of_items)
    if learner.memory is not None:
        commit(learner.memory, path, parts)
    else:
        learner._tried = file.home_at(path, learner._home, learner._tried)
        learner._home = file.commit(learner._tried, file.Change(parts=parts))
    learner.progress = description["progress"]


def _checked(progress: object) -> Plain:
    """The progress of a user's own, as it will be when it is loaded."""
    if not isinstance(progress, dict):
        raise TypeError(f"progress is {type(progress).__name__}: accepted is a dictionary of plain values")
    try:
        return json.loads(json.dumps(plain(progress)))
    except TypeError as error:
        raise TypeError(f"progress cannot be saved ({error}): accepted are plain values, under names") from None


def _described(thing: object, **parts: object) -> Plain:
    """A learner or its module, if it can be built again: what could never be loaded is not saved either."""
    description = described(thing)
    if not known(description):
        raise file.MemoryFileError(f"a {description['class']} cannot be built again from a file: {ACCEPTED}")
    if functions := [name for name, value in description["arguments"].items() if callable(value)]:
        raise file.MemoryFileError(
            f"{functions[0]} of a {description['class']} is a function, which no file holds: accepted are the names "
            f"that it has, and a class of your own, marked with recollect.rebuild.rebuildable, that gives the function"
        )
    made: Plain = thing._arguments  # pyright: ignore[reportAttributeAccessIssue]
    if description["arguments"] | {"learning_rate": 0} != made | {"learning_rate": 0}:
        # Settings were changed, and what is not accepted is said now. To make it must not change what is there.
        with torch.random.fork_rng(devices=[]):
            rebuilt(
                description, **{name: copy.deepcopy(part) if name == "model" else part for name, part in parts.items()}
            )
    return description


def load(path: Path, model: nn.Module | None, codec: Codec | None, device: torch.device) -> Learner:
    """The learner that a file holds."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # as PyTorch says it, by device
        raise ValueError(f"device={str(device)!r} is not to be had here: {str(error).splitlines()[0]}") from error
    with file.reading(path) as reader:
        if "learner" not in reader.parts:
            raise file.MemoryFileError(f"{path} holds a memory alone: accepted is a file that a learner was saved to")
        memory = restored(Memory, reader, codec) if reader.holds_memory() else None
        try:
            learner = _built(reader.parts, model, memory, device)
        except BROKEN as error:
            reader.damaged(f"its learner cannot be read ({error})")
        if memory is None:
            learner._home = reader.home
    return learner


def _built(parts: dict[str, bytes], model: nn.Module | None, memory: Memory | None, device: torch.device) -> Learner:
    description: Plain = json.loads(parts["learner"])
    for thing in (description["learner"], description["module"]):
        if thing is not None and not known(thing):
            raise file.MemoryFileError(
                f"the file holds a {thing['class']}, which is not known here, or takes other arguments: {ACCEPTED}"
            )
    if memory is not None and isinstance(memory.codec, nn.Module):
        memory.codec.to(device)
    objects: dict[str, Any] = {"model": module_rebuilt(description["model"], parts["model"], model).to(device)}
    if description["module"] is not None:
        objects["module"] = rebuilt(description["module"], memory=memory)
        objects["module"].restore_optimiser(bytes_to_tensors(parts["optimiser"]))
    elif memory is not None:
        objects["memory"] = memory
    learner: Learner = rebuilt(description["learner"], **objects)
    learner.learning_rate = description["learning_rate"]
    tensors = bytes_to_tensors(parts["state"]) | (bytes_to_tensors(parts[ITEMS]) if ITEMS in parts else {})
    torch.set_rng_state(tensors.pop("random"))
    if steps := description.get("steps"):  # older files have none
        learner._average = Average(learner.model)
        learner._average.restore(steps, bytes_to_tensors(parts["average"]))
    learner._restore(description["values"], {name: tensor.to(device) for name, tensor in tensors.items()})
    learner.progress = description["progress"]
    return learner
