"""Question 8 of the paper: is a codec that knows other images better from the start?

Online learns Incremental CIFAR-100 as it comes, with no buffer. Transfer Online does so too, after a training on
CIFAR-10. Offline has all images of all tasks from the start and passes over them as often as the other over CIFAR-10.
Learning rates are those that the paper's appendix gives for codecs with this code, with and without transfer.
"""

from __future__ import annotations

from recollect.lab.codec_experiment import CodecExperiment, CodecProfile, CodecRow

CODE = {"variables": 76, "categories": 2}
WITHOUT, WITH = 1e-3, 3e-4  # transfer

EXPERIMENT = CodecExperiment(
    name="codec_transfer",
    title="Question 8: Incremental CIFAR-100, distortion of a 76x2 codec",
    answers="Does a codec that was trained on other images need neither a buffer nor all tasks at once?",
    rows=(
        CodecRow(name="Online", code=CODE, training={"learning_rate": WITHOUT}),
        CodecRow(name="Offline", code=CODE, training={"learning_rate": WITHOUT}, offline=True),
        CodecRow(name="Transfer Online", code=CODE, training={"learning_rate": WITH}, pretraining_rate=WITHOUT),
    ),
    profiles={
        "quick": CodecProfile(
            name="quick", seeds=1, train_examples=250, test_examples=50, passes=5, pretraining_examples=10_000
        ),
        "standard": CodecProfile(name="standard", seeds=3, passes=20),
        "paper": CodecProfile(name="paper", seeds=3, stream_batch=1),
    },
    notes=(
        "Distortion is the mean absolute error of values in [0, 1] on the test images of all tasks so far, after the "
        "first task, half of them and all of them. Offline is one codec, trained on all tasks before any is tested.",
        "The paper shows curves without their numbers: Transfer Online is like Offline, and better on the first tasks.",
    ),
)
