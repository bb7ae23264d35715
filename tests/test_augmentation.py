"""Augmentation against flips, rolls and a rotation made another way."""

from __future__ import annotations

import pytest
import torch

import recollect as rc
from recollect.learners.augmentation import Augmentation


def blob(height: int = 21, width: int = 31) -> torch.Tensor:
    """A smooth spot off the centre, n = 200 times."""
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    spot = torch.exp(-((rows - 7) ** 2 + (columns - 20) ** 2) / 8.0)
    return spot.expand(200, 1, -1, -1)


def centre(x: torch.Tensor) -> torch.Tensor:
    """The centre of mass, down and across, from the middle of the image."""
    height, width = x.shape[2:]
    weights = x[:, 0] / x.sum((1, 2, 3))[:, None, None]
    down = (weights.sum(2) * (torch.arange(height) - (height - 1) / 2)).sum(1)
    across = (weights.sum(1) * (torch.arange(width) - (width - 1) / 2)).sum(1)
    return torch.stack([down, across], 1)


def test_a_mirror_is_a_flip():
    x = torch.rand(4, 3, 6, 7)
    torch.testing.assert_close(Augmentation({"mirror": 1}, seed=0)(x), x.flip(3))
    torch.testing.assert_close(Augmentation({"shift": 0}, seed=0)(x), x)
    mirrored = (Augmentation({"mirror": 0.3}, seed=0)(blob()) - blob()).abs().amax((1, 2, 3)) > 0.1
    assert 0.15 < float(mirrored.float().mean()) < 0.45


def test_shifts_are_even_in_pixels():
    moved = centre(Augmentation({"shift": 2}, seed=1)(blob())) - centre(blob())
    assert float(moved.abs().max()) <= 2.01
    assert float(moved.abs().amax(0).min()) > 1.7
    torch.testing.assert_close(moved.mean(0), torch.zeros(2), atol=0.3, rtol=0)


def test_turns_keep_the_distance_from_the_middle_and_scales_change_it():
    start = centre(blob())
    turned = centre(Augmentation({"turn": 20}, seed=2)(blob()))
    torch.testing.assert_close(turned.norm(dim=1), start.norm(dim=1), atol=0.1, rtol=0)
    angles = torch.rad2deg(torch.atan2(turned[:, 0], turned[:, 1]) - torch.atan2(start[:, 0], start[:, 1]))
    assert 17 < float(angles.abs().max()) < 20.5
    scaled = centre(Augmentation({"scale": 0.2}, seed=2)(blob())).norm(dim=1) / start.norm(dim=1)
    assert 0.79 < float(scaled.min()) < 0.85
    assert 1.15 < float(scaled.max()) < 1.21


def test_only_the_model_sees_changed_images():
    seen: list[torch.Tensor] = []
    model = rc.models.MLP(inputs=64)
    model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    memory = rc.Memory(rc.RawPixels((1, 8, 8)), capacity=10)
    learner = rc.Replay(model, rc.RecollectionModule(memory), batch_size=4, augment={"mirror": 1})
    x = torch.randint(0, 256, (3, 1, 8, 8)) / 255
    learner.observe(x, [0, 1, 2], 0)
    torch.testing.assert_close(seen[-1], x.flip(3))
    held = memory.recollections()
    assert held is not None
    torch.testing.assert_close(held.x, x)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"crop": 1}, "augment has 'crop': accepted are 'shift'"),
        ({"mirror": 2}, "mirror=2: accepted"),
        ({"shift": -1}, "shift=-1"),
        ({"shift": "1"}, "shift='1': accepted is a number"),
        (["shift"], "augment is list: accepted is a mapping"),
    ],
)
def test_what_is_not_accepted(changes: dict[str, float], message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        Augmentation(changes, seed=0)
