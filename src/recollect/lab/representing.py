"""Experiments of sampling: how near to real examples what is drawn lies, and how well a student learns from it."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from recollect.distillation import BufferSampling, CodeSampling, nearest_neighbour_distortion
from recollect.lab.classroom import Classroom, DistillationRun
from recollect.lab.codec_training import distortion
from recollect.lab.distilling import EXAMPLES, DistillationProfile, DistillationRow, Distilling, at_mark
from recollect.lab.experiment import silent

if TYPE_CHECKING:
    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.classroom import Prepared
    from recollect.lab.experiment import Report
    from recollect.lab.job import Job

DRAWN = 500  # samples that are decoded at once
NEIGHBOUR = 4e-7  # seconds of one core to look for a nearest neighbour, for each of the training images


@dataclass(frozen=True, kw_only=True)
class SamplingRow(DistillationRow):
    """What is drawn, with the distortions that the paper gives."""

    paper_reconstruction: float
    paper_neighbour: float


@dataclass(frozen=True, kw_only=True)
class SamplingProfile(DistillationProfile):
    """How many samples are compared with the training images."""

    samples: int = 10_000


@dataclass(frozen=True, kw_only=True)
class SamplingRun(DistillationRun):
    """What is recorded of a way to sample, beside what its students learn."""

    reconstruction: float  # mean absolute error of the codec on test images
    neighbour: float  # mean absolute error between a sample and the training image nearest to it

    @property
    def headline(self) -> str:
        """How near samples are to real examples."""
        return f"nearest neighbour {self.neighbour:.4f}, {super().headline}"


@dataclass(frozen=True, kw_only=True)
class Sampling(Distilling[SamplingRow, SamplingProfile, SamplingRun]):
    """Ways to sample, beside each other."""

    kind = SamplingRun

    @property
    def columns(self) -> tuple[str, ...]:
        """Distortions with the paper's in brackets, and the student at the end."""
        return ("reconstruction (paper)", "nearest neighbour (paper)", "compression", "student, %")

    def execute(
        self, job: Job[SamplingRow, SamplingProfile], report: Report = silent, checkpoint: Checkpoint | None = None
    ) -> SamplingRun:
        """Measure what is drawn, and train students on it."""
        room = Classroom(self.lesson, job)
        prepared = room.prepared(report)
        run = room.recorded(prepared, report)
        drawn = samples(prepared, job.profile.samples, job.seed)
        reconstruction = distortion(prepared.codec, room.material.test.images)
        assert reconstruction is not None
        return SamplingRun(
            **asdict(run),
            reconstruction=reconstruction,
            neighbour=nearest_neighbour_distortion(drawn, room.material.train.x.to(drawn.device)),
        )

    def cost(self, profile: SamplingProfile, row: SamplingRow) -> float:
        """About how many seconds of one core a run takes."""
        examples = EXAMPLES[self.lesson.name] if profile.train_examples is None else profile.train_examples
        return super().cost(profile, row) + NEIGHBOUR * profile.samples * examples

    def cells(self, row: SamplingRow, runs: list[SamplingRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        reconstruction = statistics.fmean(run.reconstruction for run in runs)
        neighbour = statistics.fmean(run.neighbour for run in runs)
        last = at_mark(runs, runs[0].episodes[-1])
        return (
            f"{reconstruction:.3f} ({row.paper_reconstruction:.3f})",
            f"{neighbour:.3f} ({row.paper_neighbour:.3f})",
            f"{runs[0].compression:.1f}x",
            f"{statistics.fmean(last):.1f}" + (f" ± {statistics.stdev(last):.1f}" if len(last) > 1 else ""),
        )

    def as_json(self, row: SamplingRow, runs: list[SamplingRun]) -> dict[str, Any]:
        """The row as `--json` prints it."""
        return super().as_json(row, runs) | {
            "reconstruction": [run.reconstruction for run in runs],
            "neighbour": [run.neighbour for run in runs],
            "paper_reconstruction": row.paper_reconstruction,
            "paper_neighbour": row.paper_neighbour,
        }


def samples(prepared: Prepared, count: int, seed: int) -> torch.Tensor:
    """So many images as the row draws them."""
    memory = prepared.memory
    sampler = CodeSampling(prepared.codec, seed=seed) if memory is None else BufferSampling(memory)
    sizes = [min(DRAWN, count - start) for start in range(0, count, DRAWN)]
    return torch.cat([sampler.sample(size).x for size in sizes])
