"""Compression: rows against the paper's tables, runs against sizes and errors computed by hand."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

import recollect as rc
from recollect.data import mnist
from recollect.lab import results, runner
from recollect.lab.compressing import CompressionProfile, CompressionRow, CompressionRun
from recollect.lab.compression import EXPERIMENT, ROWS
from recollect.lab.job import Job

TINY = CompressionProfile(name="tiny", seeds=1, images=100, trial_epochs=1, epochs=3)

# The paper's tables, as they are printed.
CATEGORICAL = """
6 & 20 & 209.067 & 0.06609
10 & 20 & 125.440 & 0.04965
6 & 16 & 261.333 & 0.07546
12 & 10 & 130.667 & 0.05497
10 & 14 & 156.800 & 0.05410
24 & 3 & 130.667 & 0.05988
38 & 2 & 165.053 & 0.05785
6 & 2 & 1045.333 & 0.13831
40 & 3 & 78.400 & 0.04158
20 & 2 & 313.600 & 0.08446
8 & 6 & 261.333 & 0.08423
12 & 6 & 174.222 & 0.06756
30 & 2 & 209.067 & 0.06958
24 & 6 & 87.111 & 0.04065
4 & 37 & 261.333 & 0.07795
8 & 15 & 196.000 & 0.06812
48 & 10 & 32.667 & 0.01649
209 & 8 & 10.003 & 0.01455
12 & 37 & 87.111 & 0.03996
313 & 4 & 10.019 & 0.01420
392 & 3 & 8.000 & 0.01348
50 & 18 & 25.088 & 0.01859
168 & 2 & 37.333 & 0.01955
108 & 3 & 29.037 & 0.01894
62 & 2 & 101.161 & 0.04073
208 & 2 & 30.154 & 0.01832
68 & 5 & 30.745 & 0.01849
"""
CONTINUOUS = """
1 & 49 & 0.135196
2 & 24.5 & 0.124725
3 & 16.33333333 & 0.0947032
5 & 9.8 & 0.0354035
7 & 7 & 0.031808
20 & 2.45 & 0.0149272
"""


def lines(table: str) -> list[list[float]]:
    return [[float(cell) for cell in line.split("&")] for line in table.strip().splitlines()]


def row_of(name: str) -> CompressionRow:
    return next(row for row in ROWS if row.name == name)


def execute(row: CompressionRow, profile: CompressionProfile = TINY) -> CompressionRun:
    return EXPERIMENT.execute(Job(experiment=EXPERIMENT, profile=profile, row=row, seed=0))


def test_the_rows_are_the_papers():
    expected = {f"Categorical {c:.0f}x{values:.0f}": (rate, lost) for c, values, rate, lost in lines(CATEGORICAL)}
    expected |= {f"Continuous {h:.0f}": (rate, lost) for h, rate, lost in lines(CONTINUOUS)}
    found = {row.name: (row.paper_compression, row.paper) for row in ROWS if row.paper is not None}
    assert found == expected
    assert all({1e-2, 1e-3, 1e-4, 1e-5} < {*row.learning_rates} for row in ROWS if row.paper is not None)


@pytest.mark.parametrize("row", [row for row in ROWS if row.paper is not None], ids=lambda row: row.name)
def test_bits_give_the_papers_compression(row: CompressionRow):
    codec = row.codec((1, 28, 28), **row.code)
    bits = rc.bits_per_item(variables=codec.variables, categories=codec.categories, scheme="binary")
    assert 6272 / bits == pytest.approx(row.paper_compression, abs=6e-4)


def test_standard_has_what_was_asked_for():
    names = {row.name for row in EXPERIMENT.chosen(EXPERIMENT.profiles["standard"])}
    shapes = ["6x2", "20x2", "38x2", "62x2", "168x2", "208x2", "6x20", "10x20", "48x10"]
    assert {f"Categorical {shape}" for shape in shapes} < names
    assert sum(name.startswith("Categorical") for name in names) >= 12
    assert {f"Continuous {h}" for h in (1, 2, 3, 5, 7, 20)} < names
    assert {f"JPEG {quality}" for quality in (1, 25, 50, 75, 100)} < names


def test_jpeg_is_what_pillow_writes_less_its_header():
    run = execute(row_of("JPEG 25"))
    images = mnist("train").images[:100, 0]
    sizes, error = [], 0.0
    for image in images:
        file = io.BytesIO()
        Image.fromarray(image.numpy()).save(file, "JPEG", quality=25)
        data = file.getvalue()
        start = data.index(b"\xff\xda")
        header = start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
        sizes.append(8 * (len(data) - header - 2))
        decoded = torch.tensor(list(Image.open(file).tobytes())).reshape(28, 28)
        error += float((decoded - image.int()).abs().float().mean()) / 255
    assert run.bits == pytest.approx(sum(sizes) / 100)
    assert run.compression == pytest.approx(6272 / run.bits)
    assert run.distortion == pytest.approx(error / 100, rel=1e-5)


def test_pixels_are_billed_by_their_number_and_depth():
    run = execute(row_of("Pixels 14x14, 2 bits"))
    assert (run.bits, run.compression, run.codec_bits, run.learning_rate) == (392, 16, 0, None)
    raw = replace(row_of("Pixels 14x14, 2 bits"), code={"size": (28, 28), "bits": 8})
    assert execute(raw).distortion == pytest.approx(0, abs=1e-6)


def test_what_is_coded_takes_little_more_than_its_entropy_and_a_sketch_less():
    profile = replace(TINY, images=3000)
    packed, coded, sketch = (
        execute(row_of(name), profile) for name in ("Pixels 14x14, 1 bit", "Pixels 14x14, coded", "Sketch 14x14")
    )
    small = torch.nn.functional.avg_pool2d(mnist("train").images[:3000].float() / 255, 2).flatten(1)
    share = (small >= 0.5).double().mean(0).clamp(1e-9, 1 - 1e-9)
    entropy = float(-(share * share.log2() + (1 - share) * (1 - share).log2()).sum())
    assert entropy < coded.bits < 1.1 * entropy + 16 * 196 / 3000
    assert sketch.bits < 0.8 * coded.bits
    assert packed.distortion == coded.distortion == pytest.approx(sketch.distortion, rel=1e-3)


def test_the_best_learning_rate_goes_on():
    told: list[tuple[int, str]] = []
    row = replace(row_of("Categorical 6x2"), learning_rates=(1e-2, 1e-5))
    job = Job(experiment=EXPERIMENT, profile=TINY, row=row, seed=0)
    run = EXPERIMENT.execute(job, lambda step, state: told.append((step, state)))
    assert [step for step, state in told if "distortion" in state] == [1, 2, 3]
    assert (2, "learning rate 0.01, epoch 3 of 3") in told
    assert set(run.tried) == {"0.01", "1e-05"}
    trial = run.tried["0.01"]
    assert trial is not None
    assert run.distortion is not None
    assert run.distortion < trial < (run.tried["1e-05"] or 0)
    assert run.learning_rate == 1e-2
    paper = 100 * 9 + 50 * 3 + 5 * 3 + 1
    assert run.codec_bits == 32 * (paper + 4 * 2 * 3)  # a group norm behind each hidden layer
    assert execute(row, replace(TINY, paper_codec=True)).codec_bits == 32 * paper
    assert execute(row, replace(TINY, trial_images=50)).tried != run.tried
    # With as many epochs for a trial as there are, the best trial is the run.
    whole = execute(row, replace(TINY, trial_epochs=3))
    assert whole.distortion == whole.tried["0.01"] == run.distortion


def test_a_learning_rate_that_diverges_is_not_the_best():
    row = replace(row_of("Continuous 1"), learning_rates=(1e30, 1e-3))
    run = execute(row)
    assert run.tried["1e+30"] is None
    assert run.learning_rate == 1e-3


def test_a_run_goes_on_with_the_rates_that_were_tried(tmp_path: Path):
    row = replace(row_of("Categorical 6x2"), learning_rates=(1e-2, 1e-5))
    chosen = replace(EXPERIMENT, rows=(row, row_of("JPEG 1")), profiles={"tiny": TINY})
    console = Console(file=io.StringIO(), width=200)
    (tmp_path / "shared").mkdir()
    for _ in range(2):
        jobs = runner.jobs_left(chosen, TINY, list(chosen.rows), None, tmp_path)
        runner.run(jobs, partial(results.write, tmp_path), workers=1, console=console)
    assert len([*(tmp_path / "shared").glob("codec-6x2-*.safetensors")]) == 3  # two trials and the run itself
    first = json.loads(results.path_of(tmp_path, "compression", "tiny", row.name, 0).read_text())
    results.path_of(tmp_path, "compression", "tiny", row.name, 0).unlink()
    (job,) = runner.jobs_left(chosen, TINY, list(chosen.rows), None, tmp_path)
    runner.run([job], partial(results.write, tmp_path), workers=1, console=console)
    assert json.loads(results.path_of(tmp_path, "compression", "tiny", row.name, 0).read_text()) == first
    found = results.summaries(tmp_path, chosen, TINY, list(chosen.rows))
    figure = chosen.figure(found)
    assert figure is not None
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["Categorical", "Categorical, the paper", "JPEG"]
    assert np.asarray(axes.lines[1].get_xydata()).tolist() == [[1045.333, 0.13831]]
    assert axes.get_xscale() == axes.get_yscale() == "log"
