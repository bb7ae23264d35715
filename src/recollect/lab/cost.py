"""About how long a run takes: for the time left, and for `recollect list`. Roughly right on a server CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import recollect as rc
from recollect.budget import filters_of

if TYPE_CHECKING:
    from recollect.lab.experiment import Profile, Row

# One core of a server CPU: products a second in the codec, and seconds for an image, a step, a projected step, the
# weights of a past task.
FLOPS, JPEG_IMAGE, STEP, GEM_STEP, EWC_TASK, TEST_EXAMPLE = 50e9, 1.7e-4, 1.2e-3, 5e-3, 3.5e-4, 7e-6


def core_seconds(row: Row, profile: Profile) -> float:
    """Seconds of one core."""
    batches = profile.tasks * profile.train_examples / profile.stream_batch
    settings, new = row.settings, profile.stream_batch
    per_batch = STEP * settings.get("steps", 1) * settings.get("epochs", 1)
    decoded = settings.get("batch_size", 0) * settings.get("steps", 1)
    if row.learner is rc.GEM:
        per_task = row.items / profile.tasks
        decoded = profile.tasks / 2 * min(settings.get("memory_batch") or per_task, per_task)
        per_batch += GEM_STEP
    if row.learner is rc.EWC:
        per_batch += EWC_TASK * profile.tasks / 2
    if row.codec is rc.JPEG:
        per_batch += JPEG_IMAGE * (decoded + new)
    if row.codec is rc.DiscreteAutoencoder:
        f = filters_of(row.code["variables"], row.code["categories"])
        half = 2 * (2500 * f + 500 * f**2) / FLOPS  # encoding or decoding an image of 28x28 pixels
        steps, rehearsed = row.training.get("steps", 1), 0
        if row.training.get("rehearse") != "none":
            rehearsed = row.training.get("most") or settings.get("batch_size", 25)
        per_batch += half * (6 * steps * (new + rehearsed) + steps * rehearsed + decoded + new)
    tests = TEST_EXAMPLE * profile.tasks * (profile.matrix_examples * (profile.tasks + 1) + profile.test_examples)
    return batches * per_batch + tests
