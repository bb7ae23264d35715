"""Question 7 of the paper: does a codec that rehearses what it recollects itself keep from forgetting?

The codec learns Incremental CIFAR-100 as it comes, with N = 10 steps for each batch, and rehearses from its own
recollections, from real images in the same storage, or not at all. The paper shows the storage of 200 images. Codes,
items and, for the storage of 200, the learning rate are those of its appendix.
"""

from __future__ import annotations

from recollect.lab.codec_experiment import CodecExperiment, CodecProfile, CodecRow

ITEMS = 5000
REHEARSED = 10  # as many as a batch of the stream has


def rows(storage: int, variables: int, categories: int, learning_rate: float, seeds: int | None) -> list[CodecRow]:
    """The three ways to rehearse with one storage, in images, and the code that makes 5000 items of it."""
    block = f"Storage of {storage} images, {variables}x{categories}"
    code = {"variables": variables, "categories": categories}
    training = {"steps": 10, "learning_rate": learning_rate}
    shared = {"block": block, "code": code, "training": training, "seeds": seeds}
    return [
        CodecRow(
            name=f"{storage} images: recollections",
            buffer="recollections",
            items=ITEMS,
            rehearsed=REHEARSED,
            **shared,
        ),
        CodecRow(name=f"{storage} images: real", buffer="real", items=storage, rehearsed=REHEARSED, **shared),
        CodecRow(name=f"{storage} images: no buffer", **shared),
    ]


EXPERIMENT = CodecExperiment(
    name="self_stabilisation",
    title="Question 7: Incremental CIFAR-100, distortion of a codec that rehearses",
    answers="Do its own recollections keep a codec from forgetting as well as real images in the same storage?",
    rows=(*rows(200, 620, 3, 1e-4, seeds=1), *rows(20, 98, 2, 1e-3, seeds=None)),
    profiles={
        "quick": CodecProfile(
            name="quick", seeds=1, tasks=10, train_examples=200, test_examples=50, rows=("20 images",)
        ),
        "standard": CodecProfile(name="standard", seeds=3, train_examples=250, test_examples=100),
        "paper": CodecProfile(name="paper", seeds=1, stream_batch=1, rows=("200 images",)),
    },
    notes=(
        "Distortion is the mean absolute error of values in [0, 1] on the test images of all tasks so far, after the "
        "first task, half of them and all of them. Storage, in images, is that of codes; bits are those of an item.",
        'The paper shows curves without their numbers, and finds recollections "very similarly effective" to real '
        "storage.",
    ),
)
