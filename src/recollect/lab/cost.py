"""About how long a run takes: for the time left, and for `recollect list`. Roughly right on a server CPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import recollect as rc
from recollect.budget import filters_of

if TYPE_CHECKING:
    from recollect.lab.continual import ContinualProfile, ContinualRow
    from recollect.lab.course import Course
    from recollect.lab.experiment import Settings

# One core of a server CPU: products a second in the codec, and seconds to encode or decode a JPEG image.
FLOPS, JPEG_IMAGE = 100e9, 1.7e-4
# To paint a value of an image; to draw from a memory with the scheme "entropy", and a pixel of a picture in it.
PAINTED_VALUE, CODED, CODED_PIXEL = 1e-7, 4e-3, 5e-8
PICTURE, BLOCK = 0.3, 32  # bits of a pixel of such a picture, and pictures that are decoded to draw one of them
FORWARD = 1 / 3  # of the time of a training step


# A training step of the codec takes so long beside its products: for itself, for each image and for each parameter.
CODEC_STEP, CODEC_IMAGE, CODEC_PARAMETER = 3e-3, 4e-4, 4e-9


def coding_seconds(shape: tuple[int, int, int], code: Settings) -> float:
    """Seconds to encode or to decode an image, on maps of 10x10 and less."""
    f = filters_of(code["variables"], code["categories"])
    return 2 * 25 * (100 * shape[0] * f + 20 * f**2) / FLOPS


def codec_step_seconds(shape: tuple[int, int, int], code: Settings, images: int) -> float:
    """Seconds of a training step of the codec."""
    parameters = 100 * filters_of(code["variables"], code["categories"]) ** 2
    per_image = CODEC_IMAGE + 6 * coding_seconds(shape, code)
    return CODEC_STEP + CODEC_PARAMETER * parameters + images * per_image


def core_seconds(row: ContinualRow, profile: ContinualProfile, course: Course) -> float:
    """Seconds of one core."""
    batches = profile.tasks * min(profile.train_examples, course.examples) / profile.stream_batch
    settings, new = row.settings, profile.stream_batch
    passes = settings.get("steps", 1) * settings.get("epochs", 1)
    decoded = settings.get("batch_size", 0) * settings.get("steps", 1)
    trained = decoded + new * passes
    if row.learner is rc.GEM:
        per_task = row.items / profile.tasks
        decoded = profile.tasks / 2 * min(settings.get("memory_batch") or per_task, per_task)
        passes, trained = profile.tasks / 4, decoded + new
        if settings.get("together"):  # one pass forward and two back
            trained *= 1.5
    if row.learner is rc.EWC:
        passes += profile.tasks / 5  # the pull of each past task
    per_batch = course.step * passes + course.image * trained
    if row.codec is rc.JPEG:
        per_batch += JPEG_IMAGE * (decoded + new)
    if row.codec is rc.DiscreteAutoencoder:
        half = coding_seconds(course.shape, row.code)
        steps, rehearsed = row.training.get("steps", 1), 0
        examples, first = row.training.get("warm_up", (0, 1))
        steps += max(first - steps, 0) * min(examples / new, batches) / batches  # on average over the stream
        if row.training.get("rehearse") != "none":
            rehearsed = row.training.get("most") or settings.get("batch_size", 25)
        per_batch += steps * codec_step_seconds(course.shape, row.code, new + rehearsed)
        per_batch += half * (steps * rehearsed + decoded + new)
    if row.codec in {rc.Sketch, rc.Cosines} and row.code.get("filters") != 0:
        per_batch += PAINTED_VALUE * math.prod(course.shape) * (decoded + 3 * new * row.training.get("steps", 1))
    if row.scheme == "entropy":
        draws = min(settings.get("steps", 1), 2)  # what further steps need is drawn at once
        per_batch += CODED * draws
        if row.codec is rc.Sketch:
            pixels = course.shape[0] * math.prod(row.code["size"])
            pictures = min(BLOCK * decoded, draws * (row.code_bits or 0) / (PICTURE * pixels))
            per_batch += CODED_PIXEL * pixels * pictures
    before = 0.0
    if row.start is not None:  # once for all seeds
        passes, batch = row.start.passes * row.start.examples / profile.seeds, row.start.batch
        before = passes * codec_step_seconds(course.shape, row.code, batch) / batch
    tested = profile.tasks * (profile.matrix_examples * (profile.tasks + 1) + profile.test_examples)
    return before + batches * per_batch + FORWARD * course.image * tested
