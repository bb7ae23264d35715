"""iCaRL (Rebuffi et al., 2017) in one pass over a stream of tasks: exemplars by herding, the nearest mean of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from recollect.checks import check_at_least, check_images, check_number
from recollect.learners.herding import herd
from recollect.learners.last_layer import linear_layers, look
from recollect.learners.learner import Learner, integers, one_task
from recollect.learners.losses import cross_entropy
from recollect.learners.model import predicting
from recollect.module import check_module
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from torch import nn

    from recollect.budget import Bill
    from recollect.checks import IntegerLike, Integers
    from recollect.memory.batch import Batch
    from recollect.memory.memory import Memory
    from recollect.module import RecollectionModule
    from recollect.rebuild import Plain

CHUNK = 250  # images whose features are taken at once
NONE = -1e9  # an output that is not there


@rebuildable
class ICaRL(Learner):
    """Learns features from new examples and from exemplars of earlier tasks; an example's class is the nearest mean.

    Features are the input of the model's last linear layer, scaled to length 1. The mean of a class is that of the
    features of its exemplars as the model sees them now.

    When a task ends, exemplars of its classes are chosen by herding, and each class seen so far has an equal share: of
    earlier classes the first that were chosen stay. What the model then says of each exemplar, the probabilities of the
    classes of its task, is kept, and later steps hold the model to it. Until a task ends the memory holds candidates,
    equally many of each class and drawn evenly from its examples. A class that comes again in another task is herded
    anew from its exemplars and candidates. A task ends when an example of another comes, or with `finish`.

    With the codec `RawPixels` in the memory this is iCaRL with real storage. With another, exemplars and candidates are
    recollections.

    Args:
        model: the predictive model F, whose outputs must come from a linear layer.
        module: codec and memory, which must have the admission "chosen" and be written by this learner alone.
        learning_rate: of gradient descent on the model.
        strength: how much distillation counts: with 1, as in GEM's code, each earlier task as much as the new examples.
        exemplars: K, the slots of the memory for exemplars; the others are for candidates. Half of them by default.
        memory_batch: exemplars of each earlier task in a step, drawn anew for every step; GEM's code takes one of each
            of 5 classes.
        batch_size: recollections that join the new examples when the codec rehearses.
        averaging: `predict` by a moving average of the model over its steps, of which so much stays in each; 0 for the
            model as it is, which exemplars are chosen by in any case. Not in the paper.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.RawPixels((1, 28, 28)), capacity=60, admission="chosen")
    >>> learner = rc.ICaRL(rc.models.MLP(), rc.RecollectionModule(memory), exemplars=20)
    >>> learner.observe(torch.rand(50, 1, 28, 28), torch.arange(50) % 5, task=0)
    >>> learner.observe(torch.rand(50, 1, 28, 28), torch.arange(50) % 5 + 5, task=1)
    >>> learner.finish()
    >>> memory.recollections().y.bincount().tolist()
    [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """

    needs_tasks = "acts when a task ends"

    def __init__(
        self,
        model: nn.Module,
        module: RecollectionModule,
        *,
        learning_rate: float = 0.01,
        strength: float = 1.0,
        exemplars: int | None = None,
        memory_batch: int = 5,
        batch_size: int = 25,
        averaging: float = 0.0,
    ) -> None:
        super().__init__(model, learning_rate, averaging=averaging)
        linear_layers(model)  # without one there are no features: better said now than when the first task ends
        self.module = check_module(module)
        if self.memory.admission != "chosen":
            raise ValueError(f"a memory with admission={self.memory.admission!r}: accepted is 'chosen'")
        self.strength = check_number("strength", strength, above=0, or_equal=True)
        slots = self.memory.capacity
        self.exemplars = check_at_least("exemplars", slots // 2 if exemplars is None else exemplars, 1)
        if self.exemplars >= slots:
            raise ValueError(f"exemplars={exemplars} in a memory of {slots}: accepted are 1 to {slots - 1}")
        self.memory_batch = check_at_least("memory_batch", memory_batch, 1)
        self.batch_size = check_at_least("batch_size", batch_size, 1)
        self._task: int | None = None
        self._classes: dict[int, list[int]] = {}  # of each task seen
        self._distilled: dict[int, list[int]] = {}  # for each task the classes whose probabilities are kept
        self._ids = torch.empty(0, dtype=torch.int64)  # of exemplars, in order
        self._probabilities = torch.empty(0, 0)
        self.memory.watchers.add(self)

    @property
    def memory(self) -> Memory:
        """The memory of the module."""
        return self.module.memory

    def observe(self, x: torch.Tensor, y: IntegerLike, task: IntegerLike | None = None) -> None:
        """Learn from a batch of the stream, all of one task. Examples that cannot be taken change nothing."""
        memory = self.memory
        x, labels, tasks = memory.check(x, y, self._for_learner(task))
        current = one_task(tasks)
        self._check_room(labels)
        y, t = (torch.from_numpy(numbers).to(x.device) for numbers in (labels, tasks))
        self._check_outputs(x, y, t)
        if self._task not in {None, current}:
            self.finish()
        past = self._drawn(current, x.device)

        # Scalable Recollection Module training.
        self.module.rehearse_checked(x, self.batch_size if self.module.rehearses else 0)

        # The cross entropy of the new examples, and distillation of what was said of exemplars.
        X, T = (x, t) if past is None else (torch.cat([x, past.x]), torch.cat([t, past.task]))
        self._set_training()
        outputs = self._logits(X, T)
        loss = cross_entropy(outputs[: len(x)], y)
        if past is not None:
            loss = loss + self.strength * self._distillation(outputs[len(x) :], past)
        trained = self._trained
        self._descend(trained, torch.autograd.grad(loss, trained, materialize_grads=True))

        # The new examples are candidates.
        memory.write_checked(x, labels, tasks)
        self._task = current
        self._classes[current] = [*dict.fromkeys([*self._classes.get(current, []), *labels.tolist()])]

    def _all_classes(self) -> list[int]:
        """All classes, in the order of their tasks."""
        return [*dict.fromkeys(label for classes in self._classes.values() for label in classes)]

    def _check_room(self, labels: Integers) -> None:
        if (count := len({*self._all_classes(), *labels.tolist()})) > self.exemplars:
            raise ValueError(f"{count} classes and exemplars={self.exemplars}: accepted is an exemplar for each class")

    def _drawn(self, current: int, device: torch.device) -> Batch | None:
        """Exemplars of each earlier task, task after task."""
        past = self.memory.sample_tasks(self.memory_batch, but={current})
        if past is None:
            return None
        past = past.to(device)
        if not bool(torch.isin(past.ids, self._ids).all()):
            raise ValueError("the memory holds what this learner did not write: accepted is a memory of its own")
        return past

    def _distillation(self, outputs: torch.Tensor, past: Batch) -> torch.Tensor:
        """The cross entropy with the probabilities that were kept, averaged for each task and then summed."""
        said = self._probabilities[torch.searchsorted(self._ids, past.ids)]
        losses = F.cross_entropy(self._of_own_classes(outputs, past.task), said, reduction="none")
        each = past.task.unique_consecutive(return_counts=True)[1]
        return (losses / each.repeat_interleave(each)).sum()

    def _of_own_classes(self, outputs: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        """For each example only the outputs that are distilled, side by side; tasks with few classes are filled up."""
        width = max(map(len, self._distilled.values()))
        columns = [[*self._distilled[t], *[-1] * (width - len(self._distilled[t]))] for t in task.tolist()]
        taken = torch.tensor(columns, device=outputs.device)
        return outputs.gather(1, taken.clamp(min=0)).masked_fill(taken < 0, NONE)

    def finish(self) -> None:
        """End the current task: choose its exemplars, and keep what the model says of all of them."""
        held = self.memory.recollections()
        if self._task is not None and held is not None:
            held = held.to(next(self.model.parameters()).device)
            features, outputs = self._features(held.x, held.task)
            share, chosen = self.exemplars // len(self._all_classes()), []
            for label in held.y.unique():
                own = (held.y == label).nonzero()[:, 0]
                new = bool((held.task[own] == self._task).any())
                chosen.append(own[herd(features[own], share)] if new else own[:share])
            rows = torch.cat(chosen)
            self.memory.keep(held.ids[rows])
            rows = rows[held.ids[rows].argsort()]
            # A model that does not take the task tells all classes apart, one that does those of a task.
            self._distilled = {
                task: own if self._takes_task else self._all_classes() for task, own in self._classes.items()
            }
            self._ids, task = held.ids[rows], held.task[rows]
            self._probabilities = self._of_own_classes(outputs[rows], task).softmax(1)
        self._task = None

    def _features(
        self, x: torch.Tensor, task: torch.Tensor, weights: dict[str, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The features of images, scaled to length 1, and the model's outputs; by its own weights or others."""
        parts = zip(x.split(CHUNK), task.split(CHUNK), strict=True)
        with predicting(self.model):
            seen = [look(self.model, self._inputs(*part), weights) for part in parts]
        features, outputs = (torch.cat(tensors) for tensors in ([s.features for s in seen], [s.outputs for s in seen]))
        return F.normalize(features.to(torch.promote_types(features.dtype, torch.float32))), outputs

    @torch.no_grad()
    def predict(self, x: torch.Tensor, task: IntegerLike | None = None) -> torch.Tensor:
        """The class of each example whose mean is the nearest, of the classes of its task if that is given.

        Candidates count for classes of the current task. Where nothing is held of any class of the task, the model's
        outputs decide. A model that takes the task is called with task 0 if none is given.
        """
        x = check_images(x)
        tasks = integers("task", 0 if task is None else task, len(x)).to(x.device)
        held = self.memory.recollections()
        if held is None:
            return super().predict(x, tasks)
        held = held.to(x.device)
        labels, place = held.y.unique(return_inverse=True)
        features, _ = self._features(held.x, held.task, self._weights())
        means = F.normalize(features.new_zeros(len(labels), features.shape[1]).index_add(0, place, features))
        mine, _ = self._features(x, tasks, self._weights())
        distances = torch.cdist(mine, means, compute_mode="donot_use_mm_for_euclid_dist")
        if task is not None:
            for number in tasks.unique().tolist():
                other = torch.isin(labels, labels.new_tensor(self._classes.get(number, [])), invert=True)
                distances[(tasks == number)[:, None] & other] = torch.inf
        found = labels[distances.argmin(1)]
        unknown = distances.isinf().all(1)
        if bool(unknown.any()):
            found[unknown] = super().predict(x[unknown], tasks[unknown])
        return found

    def refresh(self) -> None:
        """Drop what was said of exemplars that are not held any more. The memory has this done when it forgets."""
        held = torch.isin(self._ids, self.memory.ids.to(self._ids.device))
        self._ids, self._probabilities = self._ids[held], self._probabilities[held]

    def _state(self) -> tuple[Plain, dict[str, torch.Tensor]]:
        return {"task": self._task, "classes": [*self._classes.items()], "distilled": [*self._distilled.items()]}, {}

    def _of_items(self) -> dict[str, torch.Tensor]:
        return {"ids": self._ids, "probabilities": self._probabilities}

    def _restore(self, values: Plain, tensors: dict[str, torch.Tensor]) -> None:
        self._task, self._classes, self._distilled = values["task"], dict(values["classes"]), dict(values["distilled"])
        self._ids, self._probabilities = tensors["ids"], tensors["probabilities"]
        self.refresh()

    def footprint(self) -> Bill:
        """The memory's bill, and what was said of exemplars, with their ids, as parameters."""
        return replace(self.memory.footprint(), parameters=8 * (self._ids.nbytes + self._probabilities.nbytes))
