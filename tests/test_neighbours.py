"""Pictures of bits in few bits, against the network written out pixel by pixel in whole numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect as rc
from recollect.memory.blocks import CodedBlocks
from recollect.memory.coded_index import CodedIndex
from recollect.memory.coder import Codes
from recollect.memory.neighbours import BYTES, CHANCES, Neighbours


def blots(n: int, height: int, width: int, channels: int = 1, seed: int = 0) -> Codes:
    """Rectangles: what is around a pixel says much of it."""
    rng = np.random.default_rng(seed)
    found = np.zeros((n * channels, height, width), np.uint8)
    for picture in found:
        top, left = rng.integers(height), rng.integers(width)
        picture[top : top + rng.integers(1, height + 1), left : left + rng.integers(1, width + 1)] = 1
    return found.reshape(n, -1)


def chance(coder: Neighbours, picture: Codes, row: int, column: int) -> float:
    """How likely a pixel is to be 1: the network in Python's whole numbers."""
    weights, (height, width) = np.frombuffer(coder.data, np.int8).tolist(), picture.shape
    seen = []
    for above, beside in [(a, b) for a in (2, 1, 0) for b in (-2, -1, 0, 1, 2) if a or b < 0]:
        there = row - above >= 0 and 0 <= column + beside < width
        seen.append(16 * int(picture[row - above, column + beside]) if there else 0)
    down, across = 16 * (2 * row - height + 1) // height, 16 * (2 * column - width + 1) // width
    seen += [down, across, down**2 // 16, across**2 // 16, 16]
    hidden = [max(sum(value * weights[16 * i + unit] for i, value in enumerate(seen)), 0) // 16 for unit in range(16)]
    logit = sum(h * w for h, w in zip(hidden, weights[-17:-1], strict=True)) + 32 * weights[-1]  # a thousandth, about
    level = min(max(logit // 64, -128), 128)
    return round(4096 / (1 + math.exp(-level / 16))) / 4096


def any_weights(seed: int) -> bytes:
    return np.random.default_rng(seed).integers(-128, 128, BYTES, np.int8).tobytes()


pictures = {"height": st.integers(1, 9), "width": st.integers(1, 9), "channels": st.integers(1, 3)}


@settings(max_examples=40)
@given(**pictures, seed=st.integers(0, 2**32))
def test_a_pixel_is_as_likely_as_the_network_written_out_says(height: int, width: int, channels: int, seed: int):
    coder = Neighbours(channels * height * width, (height, width), any_weights(seed))
    codes = blots(2, height, width, channels, seed)
    found = coder._chances(coder._pictures(codes)).T.reshape(-1, height, width)
    expected = [
        [[chance(coder, picture, row, column) for column in range(width)] for row in range(height)]
        for picture in codes.reshape(-1, height, width)
    ]
    assert found.tolist() == expected


@settings(max_examples=60)
@given(
    **pictures, counts=st.lists(st.integers(1, 40), min_size=1, max_size=4), weights=st.none() | st.integers(0, 2**32)
)
def test_what_is_coded_is_decoded_whatever_the_weights(
    height: int, width: int, channels: int, counts: list[int], weights: int | None
):
    data = b"" if weights is None else any_weights(weights)
    coder = Neighbours(channels * height * width, (height, width), data)
    blocks = [blots(count, height, width, channels, count) for count in counts]
    words = [coder.encode(codes) for codes in blocks]
    again = coder.holding(b"").holding(data)
    assert np.array_equal(again.decode(words, counts), np.concatenate(blocks))


def test_what_is_learned_is_near_the_best_that_can_be_known():
    """Each pixel is as the one to its left but for one in ten, and at random in the first column."""
    rng, flip = np.random.default_rng(0), 0.1
    codes = (np.cumsum(rng.random((600, 10, 10)) < [0.5] + 9 * [flip], 2) % 2).reshape(600, 100).astype(np.uint8)
    information = 10 + 90 * -(flip * math.log2(flip) + (1 - flip) * math.log2(1 - flip))
    learned = CodedBlocks.none(Neighbours(100, (10, 10))).with_more(codes).with_learned()
    assert 0.98 * information < 8 * learned.words.nbytes / 600 < 1.05 * information


def test_learning_on_gets_no_worse_and_learning_anew_forgets():
    first, second = blots(300, 8, 8, seed=1), blots(300, 8, 8, seed=2)
    coder = Neighbours(64, (8, 8)).learned([first])
    on, anew = coder.learned([second], anew=False), coder.learned([second], anew=True)
    assert anew.data == Neighbours(64, (8, 8)).learned([second]).data
    assert len(on.encode(second)) <= 1.01 * len(coder.encode(second))
    assert on.data not in {coder.data, anew.data}


def test_a_network_is_learned_only_where_it_pays():
    coder = Neighbours(64, (8, 8))
    noise = np.random.default_rng(0).integers(0, 2, (400, 64), np.uint8)
    assert not any(coder.learned(parts).data for parts in ([], [blots(20, 8, 8)], [noise]))
    assert len(coder.learned([blots(400, 8, 8)]).data) == BYTES


def test_chances_are_those_that_files_were_written_with():
    assert len(CHANCES) == 257
    assert (4096 * CHANCES).astype(int)[::32].tolist() == [1, 10, 74, 488, 2048, 3608, 4022, 4086, 4095]
    assert int((4096 * CHANCES).sum()) == 257 * 2048


def test_bytes_that_are_no_weights_are_refused():
    with pytest.raises(ValueError, match=f"7 bytes that are no weights: accepted are {BYTES}"):
        Neighbours(64, (8, 8), bytes(7))


def test_words_that_cannot_be_are_refused_or_give_pictures():
    rng, refused = np.random.default_rng(0), 0
    coder = Neighbours(64, (8, 8)).learned([blots(400, 8, 8)])
    for _ in range(200):
        words = rng.choice([0, 2**32 - 1, rng.integers(2**32)], rng.integers(0, 9)).astype(np.uint32)
        try:
            assert coder.decode([words], [30]).max() < 2
        except ValueError as error:
            assert "that no 30 pictures are coded in" in str(error)  # noqa: PT017
            refused += 1
    assert refused


def filled(codec: rc.Codec) -> rc.Memory:
    memory = rc.Memory(codec, code_bits=10_000, scheme="entropy", classes=10)
    x = torch.from_numpy(blots(400, 16, 16)).float().view(-1, 1, 16, 16)
    for rows in torch.arange(400).split(20):
        memory.write(x[rows], rows % 10)
    return memory


def test_a_memory_of_sketches_holds_more_than_one_of_the_same_pixels_by_their_frequencies():
    sketches = filled(rc.Sketch((1, 16, 16), size=(12, 12), threshold=0.5, filters=0))
    pixels = filled(rc.ResizedPixels((1, 16, 16), size=(12, 12), bits=1))
    assert len(sketches) > 1.5 * len(pixels)
    assert sketches.footprint().codes + sketches.footprint().tables <= 10_000


def test_weights_tell_nothing_of_what_was_forgotten():
    memory = filled(rc.Sketch((1, 16, 16), size=(12, 12), filters=0))
    memory.forget(label=3)
    assert isinstance(memory._index, CodedIndex)
    left = memory._index.codes.read(np.arange(len(memory)))
    fresh = CodedBlocks.none(Neighbours(144, (12, 12))).with_more(left).with_learned()
    assert memory._index.codes.coder.data == fresh.coder.data


def test_a_codec_that_says_otherwise_is_refused():
    class Grey(rc.ResizedPixels):
        picture = (4, 4)

    with pytest.raises(ValueError, match=r"codes of 16 variables with 4 values, .* picture is \(4, 4\): accepted .* 2"):
        rc.Memory(Grey((1, 8, 8), size=(4, 4), bits=2), code_bits=5000, scheme="entropy")


def test_it_learns_where_gradients_are_off():
    memory = rc.Memory(rc.Sketch((1, 28, 28), size=(12, 12), filters=0), code_bits=20_000, scheme="entropy")
    images = torch.from_numpy(blots(150, 28, 28)).view(-1, 1, 28, 28).float()
    with torch.inference_mode():
        memory.write(images, y=0)
    assert memory.seen == 150
    assert memory.footprint().tables > 8 * BYTES
