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
from recollect.memory.coded_index import CodedIndex
from recollect.memory.index import PackedIndex
from recollect.memory.room import widths_of
from recollect.memory.targets import ClassLabels, targets_described, targets_rebuilt
from recollect.packing import blocks
from recollect.rebuild import Plain, described, known, rebuilt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from recollect.codecs.interface import Codec
    from recollect.memory.file import Reader
    from recollect.memory.memory import Memory
    from recollect.memory.targets import Targets

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
ITEMS = "items"  # the part with what a learner keeps of single items, by their ids
PATCHES = 50  # they may take one in so many bytes of the records
SETTINGS = ("capacity", "admission", "classes", "tasks", "scheme")


def parts_of(memory: Memory) -> dict[str, bytes]:
    """All that a memory is but its records."""
    codec, index = memory.codec, memory._index
    coded = isinstance(index, CodedIndex)
    state = {
        **{name: getattr(memory, name) for name in SETTINGS},
        **({"budget": index.budget.settings} if coded else {}),
        **targets_described(memory.targets),
        **({} if memory.examples is None else {"examples": memory.examples}),
        "seen": memory.seen,
        "counts": memory._admission.state(),
        "random": {name: generator.bit_generator.state for name, generator in _generators(memory).items()},
        "codec": module_described(codec),
        "code": _code(codec),
    }
    parts = {"memory": json.dumps(state).encode()}
    if coded:
        parts["frequencies"] = index.codes.coder.data
    if isinstance(codec, nn.Module):
        parts["codec"] = tensors_to_bytes(codec.state_dict())
    return parts


def commit(memory: Memory, path: Path, more: Mapping[str, bytes]) -> None:
    """Write what changed since the last commit, with ``more`` parts beside those of the memory.

    What else the file holds, such as a learner, stays in it, but for what it keeps of items that were forgotten. It
    must not be older than the memory: it may see that items were forgotten, but not that others came.
    """
    index, parts = memory._index, {**parts_of(memory), **more}
    memory._tried = home = file.home_at(path, memory._home, memory._tried)
    kept = {name for state in file.possible(home) for name in state.parts} - parts.keys()
    if kept and memory.seen != memory._seen_at_home:
        raise file.MemoryFileError(
            f"{path} holds {', '.join(sorted(kept))} as of {memory._seen_at_home} examples, and the memory has seen "
            f"{memory.seen}: accepted are Learner.save, which commits both, and another file"
        )
    erased = home.commits > 0 and len(memory.audit) > len(home.audit)
    if erased and ITEMS in kept:
        parts[ITEMS] = _of_held(memory, path)
    patch, numbers = index.patch(), np.flatnonzero(index.changed).tolist()
    if not home.commits:
        patch, numbers = None, range(len(index.changed))
    elif patch is not None:
        # What is erased must not stay in patches, nor may these make the file much larger than what it holds.
        patch = None if erased or home.patch_bytes + len(patch) > index.nbytes // PATCHES else patch
    segments = {} if patch is not None else {number: index.segment(number) for number in numbers}
    change = file.Change(parts=parts, segments=segments, patch=patch, audit=memory.audit, format=_format(memory))
    memory._home, memory._seen_at_home = file.commit(home, change), memory.seen
    index.committed(folded=patch is None)


def _format(memory: Memory) -> int:
    """The oldest format that can say what the memory is."""
    if memory.examples is not None:
        return file.EXAMPLES
    if isinstance(memory._index, CodedIndex):
        return file.ENTROPY
    return file.CLASSES if memory.classes else file.TARGETS


def _of_held(memory: Memory, path: Path) -> bytes:
    """What a learner in the file keeps of single items, without those that the memory does not hold any more."""
    with file.reading(path) as reader:
        rows = bytes_to_tensors(reader.parts[ITEMS])
    held = torch.isin(rows["ids"], memory.ids)
    return tensors_to_bytes({name: tensor[held] for name, tensor in rows.items()})


def restored(kind: type[M], reader: Reader, codec: Codec | None) -> M:
    """The memory that a file holds."""
    if not reader.holds_memory():
        raise file.MemoryFileError(f"{reader.path} holds no memory: accepted is a file that one was committed to")
    try:
        memory = built(kind, reader.parts, reader.length, reader.segments(), reader.patches(), codec=codec)
    except BROKEN as error:
        reader.damaged(f"its state cannot be read ({error})")
    memory.audit = (*reader.audit,)
    memory._home, memory._seen_at_home = reader.home, memory.seen
    return memory


def built(
    kind: type[M],
    parts: Mapping[str, bytes],
    length: int,
    segments: Iterable[tuple[int, bytes]],
    patches: Iterable[bytes],
    *,
    codec: Codec | None,
) -> M:
    """A memory from what a file of this length holds; one of the errors in BROKEN if it contradicts itself."""
    state: Plain = json.loads(parts["memory"])
    codec = _codec(state, parts.get("codec"), codec)
    settings: Plain = {name: state[name] for name in SETTINGS} | {"examples": state.get("examples")}
    classes = settings.pop("classes")
    targets = targets_rebuilt(state["targets"]) if "targets" in state else ClassLabels(classes)
    if settings["scheme"] == "entropy":
        settings |= {"capacity": None, **state["budget"]}
    else:
        widths = widths_of(codec, targets, settings["tasks"], settings["examples"], settings["scheme"])
        _check_sizes(settings, state["counts"], targets, widths, length)
    memory = kind(codec, targets=targets, **settings)
    index = memory._index
    if isinstance(index, CodedIndex):
        index.restore(segments, parts["frequencies"])
    else:
        index.restore(segments)
    index.committed(folded=True)
    for patch in patches:
        index.apply(patch)
    memory.seen = int(state["seen"])
    if memory.examples is not None and memory.seen > memory.examples:
        raise ValueError(f"{memory.seen} examples seen, of {memory.examples} in all")
    memory._admission.restore(state["counts"])
    for name, generator in _generators(memory).items():
        generator.bit_generator.state = state["random"][name]
    _check_records(memory)
    return memory


def _check_sizes(settings: Plain, counts: Plain, targets: Targets, widths: dict[str, int], length: int) -> None:
    """Make sure that a file of this length can hold what is about to be reserved."""
    if PackedIndex.bytes_of(settings["capacity"], widths) > length:
        raise ValueError(f"it is too short for {settings['capacity']} records")
    if settings["admission"] in {"balanced", "chosen"}:  # rules that keep a count for each class
        counted = len(counts.get("since", counts)["held"])
        if counted != targets.classes:
            raise ValueError(f"it counts {counted} classes, and not {targets.classes}")


def _generators(memory: Memory) -> dict[str, np.random.Generator]:
    return {"admission": memory._admission_rng, "sampling": memory._sample_rng}


def _codec(state: Plain, weights: bytes | None, given: Codec | None) -> Codec:
    """The codec of a file, or the one given with what the file has for it."""
    name, code = state["codec"]["class"], state["code"]
    if given is not None and (type(given).__name__, _code(given)) != (name, code):
        raise file.MemoryFileError(
            f"the codec given is a {type(given).__name__} with channels, height, width, variables and categories "
            f"{_code(given)}: accepted is, as in the file, a {name} with {code}"
        )
    if given is not None and weights is None and described(given) != state["codec"]:
        raise file.MemoryFileError(
            f"the {name} given has the arguments {described(given)['arguments']}: accepted are, as in the file, "
            f"{state['codec']['arguments']}"
        )
    codec = module_rebuilt(state["codec"], weights, given)
    if _code(codec) != code:
        raise ValueError(f"channels, height, width, variables and categories of the codec are not {code}")
    return codec


def _code(codec: Codec) -> list[int]:
    return [int(number) for number in (*codec.shape, codec.variables, codec.categories)]


def module_described(module: object) -> Plain:
    """A codec or a model in plain values; its weights are kept apart."""
    if not isinstance(module, nn.Module):
        return described(module)
    frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
    # Parts that are in the other mode, such as a batch normalisation that stays in evaluation.
    apart = [name for name, part in module.named_modules() if part.training != module.training]
    modes = {"training": module.training, "frozen": frozen, **({"apart": apart} if apart else {})}
    return described(module) | modes


def module_rebuilt(description: Plain, weights: bytes | None, given: Any = None) -> Any:
    """What a file describes, with its weights if it has any; they may be put into a module that is given."""
    if given is None and not known(description):
        raise file.MemoryFileError(
            f"the file holds a {description['class']}, a class of your own: give one made as it was, "
            f"by Memory.open(path, codec=...) or Learner.load(path, model=..., codec=...)"
        )
    tensors = bytes_to_tensors(weights) if weights is not None else {}
    module = _empty(description, tensors) if given is None else given
    if weights is not None and not _fit(tensors, module):
        raise file.MemoryFileError(
            f"the {type(given).__name__} given has other weights than the file, which holds those of a "
            f"{description['class']}: accepted is one made as it was"
        )
    if weights is not None and isinstance(module, nn.Module):
        module.load_state_dict(tensors)
        module.train(description["training"])
        for name in description.get("apart", ()):
            module.get_submodule(name).training = not description["training"]
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(name not in description["frozen"])
    return module


def _empty(description: Plain, tensors: Mapping[str, torch.Tensor]) -> Any:
    # Built without memory first: a description may ask for more of it than the weights take.
    with torch.device("meta"):
        module = _in_numbers_of(tensors, rebuilt(description))
    if not _fit(tensors, module):
        raise ValueError(f"weights that are not those of a {description['class']}")
    return _in_numbers_of(tensors, rebuilt(description))


def _in_numbers_of(tensors: Mapping[str, torch.Tensor], module: Any) -> Any:
    """A module in as many bits as its weights have, whatever the default is and if it was changed to others."""
    found = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    return module.to(found.pop()) if len(found) == 1 and isinstance(module, nn.Module) else module


def _fit(tensors: Mapping[str, torch.Tensor], module: object) -> bool:
    """Whether these are the weights of a module, all of them and no others."""
    return _shapes(tensors) == _shapes(module.state_dict() if isinstance(module, nn.Module) else {})


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def tensors_to_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """In the format of safetensors, which holds nothing that could be run."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    first = {tensor.untyped_storage().data_ptr(): name for name, tensor in reversed(plain.items())}
    # A file has no tied weights: each of them is written by itself.
    tied = {name for name, tensor in plain.items() if first[tensor.untyped_storage().data_ptr()] != name}
    return safetensors.torch.save({name: tensor.clone() if name in tied else tensor for name, tensor in plain.items()})


def bytes_to_tensors(data: bytes) -> dict[str, torch.Tensor]:
    """Back."""
    return safetensors.torch.load(data)


def _check_records(memory: Memory) -> None:
    """Make sure that the records can be what a memory wrote, as its counts say."""
    index, slots = memory._index, memory._slots
    for block in blocks(len(slots), 8 * memory.targets.bits):  # so much is needed on the way
        memory.targets.read(index.labels, slots[block])
    limits = {"tasks": memory.tasks, "ids": memory.seen}
    largest = {name: int(index.arrays[name].read_integers(slots).view(np.uint64).max(initial=0)) for name in limits}
    wrong = [f"{name} of {limit} and above" for name, limit in limits.items() if largest[name] >= max(limit, 1)]
    if len(np.unique(index.ids.read_integers(slots))) != len(slots):
        wrong.append("an id twice")
    if wrong:
        raise ValueError(", ".join(wrong))
