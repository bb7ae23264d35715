"""What all learners share: a model F(x, t), stochastic gradient descent on it, and prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import nn
from torch.func import functional_call

from recollect.averaging import Average, named
from recollect.budget import Bill
from recollect.checks import check_averaging, check_images, check_integers, check_number
from recollect.learners.losses import loss_of
from recollect.learners.model import check_model, dtype_of, predicting, takes_task
from recollect.learners.saved import load, save
from recollect.memory.file import MemoryFileError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from recollect.checks import IntegerLike, Integers, TargetLike
    from recollect.codecs.interface import Codec
    from recollect.learners.losses import Loss, Named
    from recollect.memory.file import Home
    from recollect.memory.memory import Memory
    from recollect.rebuild import Plain


class Learner(ABC):
    """A predictive model that is trained by `observe`, batch by batch as the stream brings them.

    The model is called as ``model(x, task)`` if its forward has an argument of that name, else as ``model(x)``. In a
    stream without tasks none is given: `observe(x, y)` and `predict(x)`. A learner of your own can be saved if its
    class is marked with `recollect.rebuild.rebuildable`.
    """

    needs_tasks: ClassVar[str] = ""  # why, for a learner that has no use of a stream without them

    def __init__(
        self,
        model: nn.Module,
        learning_rate: float,
        loss: Named | Loss = "cross_entropy",
        averaging: float = 0.0,
    ) -> None:
        self.model = model
        self.learning_rate = check_number("learning_rate", learning_rate, above=0, or_equal=True)  # a schedule may end
        self.averaging = check_averaging(averaging)
        if averaging and isinstance(model, nn.DataParallel | torch.jit.ScriptModule):
            raise TypeError(
                f"averaging={averaging} of a {type(model).__name__}: accepted is a module whose weights can be "
                "replaced, neither parallel nor scripted"
            )
        self._average: Average | None = None  # from the first step on, when the model is where it is to be
        self._loss = loss_of(loss)
        self._loss_is_of_classes = loss == "cross_entropy"
        self._learnable: set[tuple[int, int]] = set()  # tasks and labels that the model is known to have
        self.progress: Plain = {}
        self._home: Home | None = None  # where it was last saved, for a learner without a memory
        self._tried: Home | None = None  # where it last was to be, though the commit may have been interrupted
        self._takes_task = takes_task(check_model(model))

    @property
    def memory(self) -> Memory | None:
        """The memory, for a learner that has one."""
        return None

    @property
    def _of_classes(self) -> bool:
        """Whether targets are classes: as the memory has it, and without one the loss."""
        return self._loss_is_of_classes if self.memory is None else self.memory.classes > 0

    @property
    def _trained(self) -> list[torch.Tensor]:
        """The parameters that are trained as things stand: layers may be frozen, let go or replaced on the way."""
        trained: list[torch.Tensor] = [weight for weight in self.model.parameters() if weight.requires_grad]
        if not trained:
            raise ValueError(f"every parameter of the model {type(self.model).__name__} is frozen, or there are none")
        return trained

    @abstractmethod
    def observe(self, x: torch.Tensor, y: IntegerLike, task: IntegerLike | None = None) -> None:
        """Learn from a batch of the stream."""

    def finish(self) -> None:  # noqa: B027
        """Do what waits for the end of the stream; most learners have nothing of the kind."""

    def footprint(self) -> Bill:
        """Every bit that is kept of the stream, by kind: the memory's, unless a learner says otherwise."""
        return Bill(codes=0, example=1) if self.memory is None else self.memory.footprint()

    def save(self, path: str | PathLike[str], progress: Plain | None = None) -> None:
        """Make all of the learner durable in one transaction: model, optimiser, random states, codec and memory.

        The file is one that `Memory.open` opens too, if there is a memory; as with `Memory.commit` only what changed is
        written, and a file has one writer.

        Args:
            path: a new file, or the one that the learner was last saved to or loaded from.
            progress: what you need to go on, such as the position in the stream, in plain values that JSON has; by
                default what was saved before.
        """
        save(self, Path(path), progress)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        model: nn.Module | None = None,
        codec: Codec | None = None,
        device: torch.device | str = "cpu",
    ) -> Self:
        """The learner as it was last saved, which goes on bit for bit as the one that was saved would have.

        What was given as ``progress`` is its attribute of this name. Random numbers that PyTorch draws without a
        generator, as in dropout, go on from where they were too.

        Args:
            path: the file.
            model: for a model of your own, one made as it was; its weights are taken from the file.
            codec: the same for a codec of your own.
            device: where the model and the codec are to be.
        """
        learner = load(Path(path), model, codec, torch.device(device))
        if not isinstance(learner, cls):
            raise MemoryFileError(f"{path} holds a {type(learner).__name__}: accepted is a {cls.__name__}")
        return learner

    def _state(self) -> tuple[Plain, dict[str, torch.Tensor]]:
        """What a learner knows beside its settings, its model and its memory: plain values and tensors."""
        return {}, {}

    def _of_items(self) -> dict[str, torch.Tensor]:
        """What is kept of single items of the memory, a row each, and their "ids": it goes when they are forgotten."""
        return {}

    def _restore(self, values: Plain, tensors: dict[str, torch.Tensor]) -> None:  # noqa: B027
        """Take over what `_state` gave."""

    def predict(self, x: torch.Tensor, task: IntegerLike | None = None) -> torch.Tensor:
        """The most probable class of each example; where targets are no classes, the model's outputs."""
        x = check_images(x)
        tasks = integers("task", self._for_model(task), len(x))
        with predicting(self.model):
            weights, inputs = self._weights(), self._inputs(x, tasks)
            outputs = self.model(*inputs) if weights is None else functional_call(self.model, weights, inputs)
        return outputs.argmax(-1) if self._of_classes else outputs

    @property
    def averaged(self) -> dict[str, torch.Tensor]:
        """A copy of what `predict` goes by, for ``load_state_dict``: averages, or without them the model's own.

        After other weights were put into the model, its average comes to them step by step, as to all that changes.
        """
        weights = self._weights() or {}
        by_id = {id(tensor): weights.get(name, tensor) for name, tensor in named(self.model).items()}
        state: dict[str, torch.Tensor] = self.model.state_dict(keep_vars=True)  # of tied weights it has every name
        return {name: by_id.get(id(tensor), tensor).detach().clone() for name, tensor in state.items()}

    def _weights(self) -> dict[str, torch.Tensor] | None:
        """What to predict by in the place of the model's own, if there is an average."""
        return None if self._average is None else self._average.tensors

    def _for_learner(self, task: IntegerLike | None) -> IntegerLike:
        """The task that was given, or 0 in a stream without tasks if learner and model can do without them."""
        if task is None and self.needs_tasks:
            raise ValueError(
                f"no task is given, and {type(self).__name__} {self.needs_tasks}: accepted is the number of the task; "
                f"Online, Replay and Offline can do without"
            )
        return self._for_model(task)

    def _for_model(self, task: IntegerLike | None) -> IntegerLike:
        if task is None and self._takes_task:
            raise ValueError(
                f"no task is given, and the model {type(self.model).__name__} takes one: accepted is the number of the "
                f"task, 0 where there is only one"
            )
        return 0 if task is None else task

    def _step(self, x: torch.Tensor, y: torch.Tensor, task: torch.Tensor) -> None:
        """One step of gradient descent on the loss."""
        trained = self._trained
        self._descend(trained, self._gradient(trained, x, y, task))

    def _gradient(
        self, trained: Sequence[torch.Tensor], x: torch.Tensor, y: torch.Tensor, task: torch.Tensor
    ) -> Sequence[torch.Tensor]:
        """The gradient of the loss with respect to these parameters."""
        self._set_training()
        loss = self._loss(self._logits(x, task), y.to(x.device))
        return torch.autograd.grad(loss, trained, materialize_grads=True)

    @torch.no_grad()
    def _descend(self, trained: list[torch.Tensor], gradient: Sequence[torch.Tensor]) -> None:
        """θ ← θ - α g, and on to the average if there is one."""
        # One call for all tensors; PyTorch documents it, under this name.
        torch._foreach_add_(trained, list(gradient), alpha=-self.learning_rate)  # pyright: ignore[reportPrivateImportUsage]
        if not self.averaging:
            self._average = None
            return
        if self._average is None:
            self._average = Average(self.model)
        self._average.update(self.averaging)

    def _check_outputs(self, x: torch.Tensor, y: torch.Tensor, task: torch.Tensor) -> None:
        """Refuse what the model cannot learn before a memory has it: it would come back in later steps."""
        if new := set(zip(task.tolist(), y.tolist(), strict=True)) - self._learnable:
            with predicting(self.model):  # what is only asked must not change running statistics
                self._loss(self._logits(x, task), y)
            self._learnable |= new

    def _set_training(self) -> None:
        """Where all of the model was put into evaluation; asking first costs less than to set every layer."""
        if not self.model.training:
            self.model.train()

    def _logits(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        return self.model(*self._inputs(x, task))

    def _inputs(self, x: torch.Tensor, task: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x.to(dtype_of(self.model))
        return (x, task.to(x.device)) if self._takes_task else (x,)


def integers(name: str, values: TargetLike, count: int) -> torch.Tensor:
    """Labels or tasks as a tensor, one for each of ``count`` examples."""
    return torch.from_numpy(check_integers(name, values, count, below=2**63 - 1))


def reals(name: str, values: TargetLike, count: int) -> torch.Tensor:
    """Targets that are no classes as a tensor of float32, one for each of ``count`` examples."""
    if values is None:
        raise TypeError(f"{name} is missing: accepted are numbers")
    tensor = torch.as_tensor(values, dtype=torch.float32)
    if tensor.ndim == 0 or len(tensor) != count:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: accepted is a target for each of {count} examples")
    if not bool(tensor.isfinite().all()):
        raise ValueError(f"{name} has values that are no finite numbers")
    return tensor


def one_task(tasks: torch.Tensor | Integers) -> int:
    """The task of a batch, for a learner that does something when a task ends."""
    values = sorted(set(tasks.tolist()))
    if len(values) > 1:
        raise ValueError(f"task has the values {values}: accepted is one task a batch")
    return values[0]
