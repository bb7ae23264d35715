"""The public names and what they promise, as a user would type them."""

from __future__ import annotations

import subprocess
import sys

import torch

import recollect as rc


def test_the_library_in_one_piece():
    codec = rc.DiscreteAutoencoder(shape=(3, 32, 32), variables=76, categories=2)
    assert codec.parameter_count == 150_293
    x = torch.rand(20, 3, 32, 32)
    codes = codec.encode(x)
    assert codes.shape == (20, 76)
    assert codec.decode(codes).shape == x.shape

    packed = rc.pack(codes, categories=2, scheme="radix")
    assert torch.equal(rc.unpack(packed, variables=76, categories=2, scheme="radix"), codes)
    assert rc.bits_per_item(variables=620, categories=3, scheme="radix") == 983

    plan = rc.plan(shape=(3, 32, 32), storage_examples=200, items=5000, count_codec=False)
    assert (plan.variables, plan.categories, plan.bits_per_item, plan.items) == (620, 3, 983, 5000)

    memory = rc.Memory(codec, capacity=3000, admission="reservoir", seed=0)
    memory.write(x, torch.arange(20), 0)
    batch = memory.sample(64)
    assert batch.x.shape == (64, 3, 32, 32)
    assert batch.y.shape == batch.task.shape == batch.ids.shape == (64,)
    bill = memory.footprint()
    assert bill.total == bill.codes + bill.labels + bill.tasks + bill.ids + bill.free + bill.codec

    module = rc.RecollectionModule(memory, steps=1, learning_rate=1e-3)
    model = rc.models.MLP(inputs=3 * 32 * 32, classes=100)
    learner = rc.Replay(model, module, learning_rate=0.01, batch_size=25)
    learner.observe(x, torch.arange(20), 1)
    assert learner.predict(x, 1).shape == (20,)


def test_every_codec_keeps_the_interface():
    shape = (1, 28, 28)
    learned = [
        rc.DiscreteAutoencoder(shape, 8, 2),
        rc.ContinuousAutoencoder(shape, 8),
        rc.Sketch(shape, size=(8, 8)),
        rc.Cosines(shape, size=(8, 8), step=1.0),
    ]
    fixed = [rc.RawPixels(shape), rc.ResizedPixels(shape, size=(7, 7), bits=2), rc.JPEG(shape, bits=400)]
    x = torch.rand(3, *shape)
    for codec in [*learned, *fixed]:
        assert isinstance(codec, rc.Codec)
        codes = codec.encode(x)
        assert codes.shape == (3, codec.variables)
        assert codes.dtype == torch.int64
        assert int(codes.max()) < codec.categories
        decoded = codec.decode(codes)
        assert decoded.shape == x.shape
        assert decoded.dtype == torch.float32
        assert 0 <= float(decoded.min()) <= float(decoded.max()) <= 1
    assert all(isinstance(codec, rc.LearnedCodec) for codec in learned)
    assert not any(isinstance(codec, rc.LearnedCodec) for codec in fixed)


def test_to_import_the_library_loads_nothing_that_only_its_commands_and_downloads_need():
    slow = {"rich", "typer", "matplotlib"}
    asked = f"import sys, recollect; print(sorted({slow} & {{name.partition('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
