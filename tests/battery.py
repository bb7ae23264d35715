"""Every learner with every codec and memory, small, for the checks that all of them must pass."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

import recollect as rc
from recollect.memory.rules import Rule

SHAPE = (1, 12, 12)
CODECS: dict[str, Callable[[], rc.Codec]] = {
    "raw": lambda: rc.RawPixels(SHAPE),
    "resized": lambda: rc.ResizedPixels(SHAPE, size=(4, 4), bits=2),
    "jpeg": lambda: rc.JPEG(SHAPE, bits=400),
    "autoencoder": lambda: rc.DiscreteAutoencoder(SHAPE, 8, 3),
    "continuous": lambda: rc.ContinuousAutoencoder(SHAPE, 8),
    "sketch": lambda: rc.Sketch(SHAPE, size=(4, 4), filters=4),
    "cosines": lambda: rc.Cosines(SHAPE, size=(3, 4), step=0.5, filters=4),
}
RULES: tuple[Rule, ...] = ("reservoir", "ring", "balanced", "chosen")


def mlp() -> nn.Module:
    return rc.models.MLP(inputs=144, hidden=(16,), classes=10)


def replay(codec: rc.Codec, rule: Rule, model: nn.Module | None = None) -> rc.Replay:
    memory = rc.Memory(codec, capacity=12, admission=rule, classes=10, tasks=4)
    module = rc.RecollectionModule(memory, steps=2)
    return rc.Replay(model or mlp(), module, learning_rate=0.1, batch_size=5)


def entropy(rule: Rule) -> rc.Replay:
    """In so few bits that it holds no more items than the others do."""
    codec = CODECS["resized"]()
    memory = rc.Memory(codec, code_bits=300, admission=rule, classes=10, tasks=4, scheme="entropy")
    return rc.Replay(mlp(), rc.RecollectionModule(memory), learning_rate=0.1, batch_size=5)


def gem(codec: rc.Codec, rule: Rule) -> rc.GEM:
    memory = rc.Memory(codec, capacity=12, admission=rule, classes=10, tasks=4)
    return rc.GEM(mlp(), rc.RecollectionModule(memory, steps=2), memory_batch=2, batch_size=5)


def resnet() -> nn.Module:
    """A model that takes the task and has running statistics."""
    return rc.models.ResNet18([range(10)] * 4, classes=10, channels=1)


def icarl(codec: rc.Codec, model: nn.Module) -> rc.ICaRL:
    memory = rc.Memory(codec, capacity=12, admission="chosen", classes=10, tasks=4)
    module = rc.RecollectionModule(memory, steps=2)
    return rc.ICaRL(model, module, learning_rate=0.1, exemplars=10, memory_batch=2, batch_size=5)


LEARNERS: dict[str, Callable[[], rc.Learner]] = {
    "online": lambda: rc.Online(mlp(), learning_rate=0.1),
    "ewc": lambda: rc.EWC(mlp(), learning_rate=0.1, items=4),
    "lwf": lambda: rc.LwF(mlp(), learning_rate=0.1),
    "lwf-resnet": lambda: rc.LwF(resnet(), learning_rate=0.1),
    "icarl-resnet": lambda: icarl(rc.RawPixels(SHAPE), resnet()),
    "replay-entropy-reservoir": lambda: entropy("reservoir"),
    "replay-entropy-balanced": lambda: entropy("balanced"),
    "offline": lambda: rc.Offline(mlp(), rc.Memory(rc.RawPixels(SHAPE), capacity=12, classes=10, tasks=4)),
}
LEARNERS["replay-averaged"] = lambda: rc.Replay(
    mlp(), replay(rc.RawPixels(SHAPE), "reservoir").module, batch_size=5, averaging=0.9
)
LEARNERS["gem-averaged"] = lambda: rc.GEM(
    mlp(), gem(rc.RawPixels(SHAPE), "ring").module, memory_batch=2, batch_size=5, averaging=0.9
)
LEARNERS["gem-together"] = lambda: rc.GEM(
    resnet(), gem(rc.RawPixels(SHAPE), "ring").module, memory_batch=2, batch_size=5, together=True
)
LEARNERS["icarl-averaged"] = lambda: rc.ICaRL(
    resnet(), icarl(rc.RawPixels(SHAPE), mlp()).module, exemplars=10, memory_batch=2, batch_size=5, averaging=0.9
)
LEARNERS["replay-augmented"] = lambda: rc.Replay(
    mlp(),
    replay(rc.RawPixels(SHAPE), "reservoir").module,
    augment={"shift": 2, "turn": 20, "scale": 0.2, "mirror": 0.5},
)
for codec_name, make_codec in CODECS.items():
    LEARNERS[f"icarl-{codec_name}"] = lambda c=make_codec: icarl(c(), mlp())
    for rule_name in RULES:
        LEARNERS[f"replay-{codec_name}-{rule_name}"] = lambda c=make_codec, r=rule_name: replay(c(), r)
        LEARNERS[f"gem-{codec_name}-{rule_name}"] = lambda c=make_codec, r=rule_name: gem(c(), r)
WITH_MEMORY = [name for name in LEARNERS if name not in {"online", "ewc", "lwf", "lwf-resnet"}]


def batches(count: int = 8) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.rand(3, *SHAPE, generator=generator), torch.randint(0, 10, (3,), generator=generator), number // 2)
        for number in range(count)
    ]


def parameters(learner: rc.Learner) -> torch.Tensor:
    codec = learner.memory.codec if learner.memory is not None else None
    trained = [*learner.model.parameters(), *(codec.parameters() if isinstance(codec, nn.Module) else [])]
    return torch.cat([parameter.detach().flatten() for parameter in trained])
