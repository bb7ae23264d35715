"""The candidates against each other: the same sample, the same replay, and for each seed the same examples held out."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.advice.advice import Tried
from recollect.advice.progress import Progress
from recollect.advice.trial import classes_of, divided, shortened, trial, trial_without_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from recollect.advice.candidates import Candidate
    from recollect.advice.trial import Trial
    from recollect.streams.task import Task

FINALISTS = 2  # of each kind that are tried on the whole sample
FIRST = 0.25  # of the sample and of the storage, for the first trials of a kind that has more


@dataclass(frozen=True, eq=False)
class Contest:
    """How the candidates are tried."""

    stream: Sequence[Task]
    model: Callable[[int], nn.Module]
    replay: dict[str, Any]  # settings of Replay
    seeds: int

    def results(self, candidates: Sequence[Candidate]) -> tuple[list[Tried], list[Tried], list[float]]:
        """Trials on the whole sample, first trials of kinds that had more, and what is kept without a memory."""
        kinds = [[*group] for _, group in itertools.groupby(candidates, key=lambda candidate: candidate.kind)]
        many = [candidate for kind in kinds if len(kind) > FINALISTS for candidate in kind]
        finals = self.seeds * (1 + sum(min(len(kind), FINALISTS) for kind in kinds))
        # The first trials have a seed of their own, so that what chooses finalists does not judge them.
        short = shortened(divided(self.stream, self.seeds), FIRST)
        progress = Progress(len(many) + finals)

        first = {each.name: self._trial(each, short, self.seeds, progress, FIRST) for each in many}
        finalists: list[Candidate] = []
        for kind in kinds:
            few = len(kind) <= FINALISTS
            finalists += kind if few else sorted(kind, key=lambda each: -first[each.name].retention)[:FINALISTS]
        trials: dict[str, list[Trial]] = {each.name: [] for each in finalists}
        without: list[float] = []
        for seed in range(self.seeds):
            part = divided(self.stream, seed)
            progress.begin("no memory", _examples(part))
            model = self.model(seed)
            without.append(trial_without_memory(part, model, replay=self.replay, observed=progress.observed))
            for each in finalists:
                trials[each.name].append(self._trial(each, part, seed, progress))
        return (
            [self._tried(each, trials[each.name]) for each in finalists],
            [self._tried(each, [first[each.name]]) for each in many],
            without,
        )

    def _trial(
        self, candidate: Candidate, part: Sequence[Task], seed: int, progress: Progress, share: float = 1
    ) -> Trial:
        progress.begin(candidate.name, _examples(part))
        return trial(
            candidate,
            part,
            self.model(seed),
            replay=self.replay,
            seed=seed,
            items=max(1, int(share * candidate.items)),
            observed=progress.observed,
        )

    def _tried(self, candidate: Candidate, trials: Sequence[Trial]) -> Tried:
        bill = candidate.bill(classes=classes_of(self.stream), tasks=len(self.stream))
        return Tried(candidate=candidate, bill=bill, trials=tuple(trials))


def _examples(stream: Sequence[Task]) -> int:
    return sum(len(task.train) for task in stream)
