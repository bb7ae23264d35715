"""A memory as parts and segments of a file, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import nn

from recollect.memory import file
from recollect.memory.index import PackedIndex
from recollect.rebuild import Plain, described, rebuilt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from recollect.codecs.interface import Codec
    from recollect.memory.file import Reader
    from recollect.memory.memory import Memory

M = TypeVar("M", bound="Memory")

# What a broken description raises when something is built from it.
BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    safetensors.SafetensorError,
)
SETTINGS = ("capacity", "admission", "classes", "tasks", "scheme")


def parts_of(memory: Memory) -> dict[str, bytes]:
    """All that a memory is but its records."""
    codec = memory.codec
    state = {
        **{name: getattr(memory, name) for name in SETTINGS},
        "seen": memory.seen,
        "counts": memory._admission.state(),
        "random": {name: generator.bit_generator.state for name, generator in _generators(memory).items()},
        "codec": module_described(codec),
        "code": [*codec.shape, codec.variables, codec.categories],
    }
    parts = {"memory": json.dumps(state).encode()}
    if isinstance(codec, nn.Module):
        parts["codec"] = tensors_to_bytes(codec.state_dict())
    return parts


def commit(memory: Memory, path: Path, more: Mapping[str, bytes]) -> None:
    """Write what changed since the last commit, with ``more`` parts beside those of the memory.

    What else the file holds, such as a learner, stays in it. It must not be older than the memory: it may see that
    items were forgotten, but not that others came.
    """
    index, home, parts = memory._index, memory._home, {**parts_of(memory), **more}
    fresh = home is None or home.path != path.resolve()
    if home is not None and not fresh and memory.seen != memory._seen_at_home and (kept := home.parts.keys() - parts):
        raise file.MemoryFileError(
            f"{path} holds {', '.join(sorted(kept))} as of {memory._seen_at_home} examples, and the memory has seen "
            f"{memory.seen}: accepted are Learner.save, which commits both, and another file"
        )
    numbers = range(len(index.changed)) if fresh else np.flatnonzero(index.changed).tolist()
    segments = {number: index.segment(number) for number in numbers}
    memory._home, memory._seen_at_home = file.commit(path, home, parts, segments, memory.audit), memory.seen
    index.changed[:] = False


def restored(kind: type[M], reader: Reader, codec: Codec | None) -> M:
    """The memory that a file holds."""
    if "memory" not in reader.parts:
        for _ in reader.segments():
            reader.damaged("it holds records without a memory")
        raise file.MemoryFileError(f"{reader.path} holds no memory: accepted is a file that one was committed to")
    try:
        memory = built(kind, reader.parts, reader.segment_bytes, reader.segments(), codec)
    except BROKEN as error:
        reader.damaged(f"its state cannot be read ({error})")
    memory.audit = [*reader.audit]
    memory._home, memory._seen_at_home = reader.home, memory.seen
    return memory


def built(
    kind: type[M],
    parts: Mapping[str, bytes],
    segment_bytes: int,
    segments: Iterable[tuple[int, bytes]],
    codec: Codec | None,
) -> M:
    """A memory from its parts and segments; one of the errors in BROKEN if they contradict each other."""
    state: Plain = json.loads(parts["memory"])
    codec = _codec(state, parts.get("codec"), codec)
    settings = {name: state[name] for name in SETTINGS}
    widths = kind.widths(codec, settings["classes"], settings["tasks"], settings["scheme"])
    # Before anything is allocated: the file may not ask for more than it holds.
    if (expected := PackedIndex.bytes_of(settings["capacity"], widths)) != segment_bytes:
        raise ValueError(f"{segment_bytes} bytes of records: {settings['capacity']} of them take {expected}")
    memory = kind(codec, **settings)
    for number, data in segments:
        memory._index.restore(number, data)
    memory.seen = int(state["seen"])
    memory._admission.restore(state["counts"])
    for name, generator in _generators(memory).items():
        generator.bit_generator.state = state["random"][name]
    _check_records(memory)
    memory._index.changed[:] = False
    return memory


def _generators(memory: Memory) -> dict[str, np.random.Generator]:
    return {"admission": memory._admission_rng, "sampling": memory._sample_rng}


def _codec(state: Plain, weights: bytes | None, given: Codec | None) -> Codec:
    """The codec of a file, or the one given with what the file has for it."""
    codec = module_rebuilt(state["codec"], weights, given)
    if [*codec.shape, codec.variables, codec.categories] != state["code"]:
        raise ValueError(f"channels, height, width, variables and categories of the codec are not {state['code']}")
    return codec


def module_described(module: object) -> Plain:
    """A codec or a model in plain values; its weights are kept apart."""
    if not isinstance(module, nn.Module):
        return described(module)
    frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
    return {**described(module), "training": module.training, "frozen": frozen}


def module_rebuilt(description: Plain, weights: bytes | None, given: Any = None) -> Any:
    """What a file describes, with its weights if it has any; they may be put into a module that is given."""
    if given is None and description["arguments"] is None:
        raise file.MemoryFileError(
            f"the file holds a {description['class']}, a class of your own: give one made as it was, "
            f"by Memory.open(path, codec=...) or Learner.load(path, model=..., codec=...)"
        )
    module = _empty(description, weights) if given is None else given
    if weights is not None and isinstance(module, nn.Module):
        module.load_state_dict(bytes_to_tensors(weights))
        module.train(description["training"])
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(name not in description["frozen"])
    return module


def _empty(description: Plain, weights: bytes | None) -> Any:
    if weights is None:
        if "training" in description:
            raise ValueError(f"no weights of a {description['class']}")
        return rebuilt(description)
    # Built without memory first: a description may ask for more of it than the weights take.
    with torch.device("meta"):
        shapes = {name: (tensor.shape, tensor.dtype) for name, tensor in rebuilt(description).state_dict().items()}
    if shapes != {name: (tensor.shape, tensor.dtype) for name, tensor in bytes_to_tensors(weights).items()}:
        raise ValueError(f"weights that are not those of a {description['class']}")
    return rebuilt(description)


def tensors_to_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """In the format of safetensors, which holds nothing that could be run."""
    return safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def bytes_to_tensors(data: bytes) -> dict[str, torch.Tensor]:
    """Back."""
    return safetensors.torch.load(data)


def _check_records(memory: Memory) -> None:
    """Make sure that the records can be what a memory wrote, as its counts say."""
    index, slots = memory._index, memory._admission.slots(np.arange(len(memory)))
    limits = {"labels": memory.classes, "tasks": memory.tasks, "ids": memory.seen}
    largest = {name: int(index.arrays[name].read_integers(slots).view(np.uint64).max(initial=0)) for name in limits}
    wrong = [f"{name} of {limit} and above" for name, limit in limits.items() if largest[name] >= max(limit, 1)]
    if len(np.unique(index.ids.read_integers(slots))) != len(slots):
        wrong.append("an id twice")
    if wrong:
        raise ValueError(", ".join(wrong))
