"""Experiments of compression: codecs on the training images of MNIST, how many bits they take and what they lose."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import recollect as rc
from recollect.budget import filters_of
from recollect.data import mnist
from recollect.lab.codec_training import distortion, eager, tuned
from recollect.lab.experiment import Experiment, Profile, Row, Run, Settings, silent

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.experiment import Report
    from recollect.lab.job import Job
    from recollect.lab.results import Summary
    from recollect.memory.memory import Coding

SHAPE = (1, 28, 28)
IMAGE_BITS = 28 * 28 * 8
JPEG_IMAGES = 10_000  # the first, as in the paper
WRITTEN = 1000  # images that are encoded at once
# One core: seconds to train on an image by filters, and to take a JPEG or a resized image there and back.
IMAGE, FILTER, FILTER_PAIR, JPEG_IMAGE, PIXELS_IMAGE, CODED_IMAGE = 6e-5, 6e-7, 1.2e-7, 4e-4, 2e-5, 4e-4
MEASURED, EAGER = 1 / 3, 1.3  # what measuring takes of a training on an image, and how much longer normalising takes


@dataclass(frozen=True, kw_only=True)
class CompressionRow(Row):
    """A codec with the arguments behind its shape; for JPEG the quality alone.

    A learned one is trained with each of the learning rates, and the best is kept.
    """

    codec: type[Any]
    code: Settings
    learning_rates: tuple[float, ...] = ()
    paper: float | None = None  # distortion in the paper
    paper_compression: float | None = None
    scheme: Coding = "binary"  # "entropy": in as many bits as a memory of all images takes, with what it learns of them

    @property
    def described(self) -> Settings:
        """All that decides what a run of this row does, for the record."""
        coded = {} if self.scheme == "binary" else {"scheme": self.scheme}
        return {"codec": self.codec.__name__, "code": self.code, "learning_rates": list(self.learning_rates), **coded}


@dataclass(frozen=True, kw_only=True)
class CompressionProfile(Profile):
    """How long learned codecs are trained, on how many images.

    Each learning rate is tried for so many ``trial_epochs`` on ``trial_images``; with the best a codec is trained anew
    on all images for ``epochs``, unless that is no more.
    """

    images: int = 60_000
    trial_images: int = 60_000
    trial_epochs: int
    epochs: int
    paper_codec: bool = False  # to the parameter, which wants hundreds of epochs


@dataclass(frozen=True, kw_only=True)
class CompressionRun(Run):
    """What is recorded of a codec."""

    distortion: float | None  # mean absolute error on the training images, pixels in [0, 1]
    bits: float  # of an item; the mean for JPEG
    codec_bits: int
    compression: float  # bits of an image for a bit of a code
    learning_rate: float | None  # of the least distortion
    tried: dict[str, float | None] = field(default_factory=dict)  # distortions of the trials by learning rate

    @property
    def headline(self) -> str:
        """Bits and loss."""
        return f"{self.compression:.0f}x, distortion {self.distortion or float('nan'):.4f}"


@dataclass(frozen=True, kw_only=True)
class Compression(Experiment[CompressionRow, CompressionProfile, CompressionRun]):
    """Codecs, beside each other."""

    kind = CompressionRun

    @property
    def columns(self) -> tuple[str, ...]:
        """Bits and loss."""
        return ("bits", "compression", "distortion", "paper", "difference", "rate")

    def execute(
        self,
        job: Job[CompressionRow, CompressionProfile],
        report: Report = silent,
        checkpoint: Checkpoint | None = None,
    ) -> CompressionRun:
        """Train a codec, if it learns, and measure it on what it was trained on."""
        profile, row, seed = job.profile, job.row, job.seed
        images = mnist("train").images[: profile.images]
        if row.learning_rates:
            more = {} if profile.paper_codec else eager(row.codec)
            codec, known = tuned(
                lambda: row.codec(SHAPE, **row.code, **more, seed=seed).to(job.device),
                images,
                "MNIST",
                learning_rates=row.learning_rates,
                trial_images=profile.trial_images,
                trial_epochs=profile.trial_epochs,
                epochs=profile.epochs,
                seed=seed,
                shelf=job.shelf,
                report=report,
            )
            known |= {"bits": bits_of(codec), "codec_bits": codec.storage_bits}
        else:
            known = {"learning_rate": None, **_static(row, images)}
            report(1, f"distortion {known['distortion']:.4f}")
        return CompressionRun(
            **job.recorded,
            compression=IMAGE_BITS / known["bits"],
            **known,
        )

    def steps(self, profile: CompressionProfile, row: CompressionRow) -> int:
        """The learning rates, and the training that counts."""
        return len(row.learning_rates) + 1

    def cost(self, profile: CompressionProfile, row: CompressionRow) -> float:
        """About how many seconds of one core a run takes."""
        if row.codec is rc.JPEG:
            return JPEG_IMAGE * min(JPEG_IMAGES, profile.images)
        if not row.learning_rates:
            return (PIXELS_IMAGE if row.scheme == "binary" else CODED_IMAGE) * profile.images
        f = row.code["latents"] // 4 if "latents" in row.code else filters_of(**row.code)
        trial = min(profile.trial_images, profile.images)
        longer = (trial, profile.trial_epochs) != (profile.images, profile.epochs)
        passed = len(row.learning_rates) * trial * (profile.trial_epochs + MEASURED)
        passed += longer * profile.images * (profile.epochs + MEASURED)
        return passed * (1 if profile.paper_codec else EAGER) * (IMAGE + FILTER * f + FILTER_PAIR * f**2)

    def amount(self, profile: CompressionProfile) -> str:
        """The training in words."""
        return (
            f"{profile.images:,} images, each learning rate tried for {profile.trial_epochs} "
            f"epoch{'s' * (profile.trial_epochs > 1)} of {min(profile.trial_images, profile.images):,}, the best for "
            f"{profile.epochs}"
        )

    def cells(self, row: CompressionRow, runs: list[CompressionRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        lost = mean_distortion(runs)
        rates = sorted({run.learning_rate for run in runs if run.learning_rate is not None})
        return (
            f"{runs[0].bits:,.0f}",
            f"{runs[0].compression:.1f}x",
            f"{lost:.4f}" if lost is not None else "-",
            f"{row.paper:.4f}" if row.paper is not None else "-",
            f"{lost - row.paper:+.4f}" if row.paper is not None and lost is not None else "-",
            ", ".join(f"{rate:g}" for rate in rates) or "-",
        )

    def as_json(self, row: CompressionRow, runs: list[CompressionRun]) -> dict[str, Any]:
        """The row as `--json` prints it."""
        return {
            "name": row.name,
            "block": row.block,
            "bits_per_item": runs[0].bits,
            "codec_bits": runs[0].codec_bits,
            "compression": runs[0].compression,
            "distortion": {"mean": mean_distortion(runs), "each": [run.distortion for run in runs]},
            "learning_rates": [run.learning_rate for run in runs],
            "tried": [run.tried for run in runs],
            "paper": row.paper,
            "seeds": [run.seed for run in runs],
            "seconds": statistics.fmean(run.seconds for run in runs),
        }

    def figure(self, found: list[Summary[CompressionRow, CompressionRun]]) -> Figure | None:
        """Loss against compression, a colour for each family, the paper's points beside."""
        from recollect.lab.figures import rate_distortion  # noqa: PLC0415 - matplotlib takes its time to load

        return rate_distortion(found)


def mean_distortion(runs: list[CompressionRun]) -> float | None:
    """Over the seeds; None if all of them diverged."""
    known = [run.distortion for run in runs if run.distortion is not None]
    return statistics.fmean(known) if known else None


def bits_of(codec: rc.Codec) -> int:
    """Bits of a code as the paper counts them, a whole number for each variable."""
    return rc.bits_per_item(variables=codec.variables, categories=codec.categories, scheme="binary")


def coded_bits(codec: rc.Codec, images: torch.Tensor) -> float:
    """Bits of an item in a memory that holds all images, entropy-coded; what it knows of them is counted."""
    memory = rc.Memory(codec, code_bits=len(images) * bits_of(codec), scheme="entropy", classes=1, tasks=1)
    for part in images.split(WRITTEN):
        memory.write(part.float() / 255, 0)
    bill = memory.footprint()
    return (bill.codes + bill.tables) / len(memory)


def _static(row: CompressionRow, images: torch.Tensor) -> dict[str, Any]:
    """A codec that does not learn."""
    started = time.perf_counter()
    if row.codec is rc.JPEG:
        images = images[:JPEG_IMAGES]
        codec = rc.JPEG.at_quality(images.float() / 255, **row.code)
        bits = float(codec.data_bits(images.float() / 255).double().mean())
    else:
        codec = row.codec(SHAPE, **row.code)
        bits = bits_of(codec) if row.scheme == "binary" else coded_bits(codec, images)
    lost = distortion(codec, images)
    seconds = time.perf_counter() - started
    return {"distortion": lost, "bits": bits, "codec_bits": codec.storage_bits, "seconds": seconds}
