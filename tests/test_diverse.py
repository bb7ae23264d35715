"""Choosing what is unlike: Algorithm 3 as it is written, and a determinantal point process set by set."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from recollect.distillation import DiverseSampling, Recollections, k_dpp, msss
from recollect.distillation.diverse import Selection

SELECTIONS: list[Selection] = [msss, k_dpp]


def algorithm_3(X: list[list[int]], m: int, gamma: float, rng: np.random.Generator) -> list[int]:
    """Line by line, with points by their numbers; whole numbers, so that nothing is rounded."""

    def sim(x: int, other: int) -> int:
        return sum(a * b for a, b in zip(X[x], X[other], strict=True))

    landmarks = [int(x) for x in rng.choice(len(X), min(m, 2), replace=False)]
    while len(landmarks) < m:
        T = [x for x in range(len(X)) if x not in landmarks]
        if gamma < 1:
            T = [int(x) for x in rng.choice(T, math.ceil(gamma * len(T)), replace=False)]
        landmarks.append(min(T, key=lambda x: sum(sim(x, landmark) ** 2 for landmark in landmarks)))
    return landmarks


@given(
    st.integers(1, 6).flatmap(lambda d: st.lists(st.lists(st.integers(0, 5), min_size=d, max_size=d), min_size=1)),
    st.data(),
    st.sampled_from([1.0, 0.5, 0.01]),
)
def test_msss_is_algorithm_3(X: list[list[int]], data: st.DataObject, gamma: float):
    m = data.draw(st.integers(1, len(X)))
    points = np.array(X, float)
    chosen = msss(points @ points.T, m, np.random.default_rng(0), gamma=gamma)
    assert chosen.tolist() == algorithm_3(X, m, gamma, np.random.default_rng(0))
    assert len({*chosen.tolist()}) == m


def assert_drawn_like_determinants(L: np.ndarray, k: int, draws: int) -> None:
    sets = [*itertools.combinations(range(len(L)), k)]
    volumes = np.array([np.linalg.det(L[np.ix_(points, points)]) for points in sets])
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(sets, 0)
    for _ in range(draws):
        counts[tuple(sorted(k_dpp(L, k, rng).tolist()))] += 1
    expected = volumes / volumes.sum() * draws
    assert chisquare([*counts.values()], expected).pvalue > 0.001


@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_set_is_drawn_as_often_as_its_determinant_says(k: int):
    X = np.random.default_rng(1).normal(size=(5, 6)) * [[3.0], [1.0], [1.0], [0.5], [2.0]]
    assert_drawn_like_determinants(X @ X.T, k, draws=1500)


def test_all_points_are_drawn_if_all_are_asked_for():
    X = np.random.default_rng(1).normal(size=(30, 40))
    assert sorted(k_dpp(X @ X.T, 30, np.random.default_rng(0)).tolist()) == [*range(30)]


def test_a_determinant_beyond_all_numbers_does_no_harm():
    X = 1e30 * np.random.default_rng(1).normal(size=(300, 20))
    assert len({*k_dpp(X @ X.T, 150, np.random.default_rng(0)).tolist()}) == 150


@pytest.mark.parametrize("select", SELECTIONS)
def test_points_that_are_alike_are_chosen_last(select: Selection):
    X = np.eye(4)[[0] * 20 + [1] * 20 + [2] * 20 + [3]]
    for seed in range(20):
        chosen = select(X @ X.T, 6, np.random.default_rng(seed))
        assert len({*chosen.tolist()}) == 6
        assert {*X[chosen].argmax(1).tolist()} == {0, 1, 2, 3}


@pytest.mark.parametrize("select", SELECTIONS)
def test_black_images_are_chosen_from_too(select: Selection):
    assert len({*select(np.zeros((8, 8)), 5, np.random.default_rng(0)).tolist()}) == 5


class Numbered:
    """Gives images that point to one of ten places, and says by their labels which were asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._generator = torch.Generator().manual_seed(0)

    def sample(self, size: int) -> Recollections:
        self.asked.append(size)
        task = torch.randint(0, 10, (size,), generator=self._generator)
        return Recollections(torch.eye(10)[task].reshape(size, 1, 2, 5), torch.arange(size), task)


@pytest.mark.parametrize("select", SELECTIONS)
def test_kn_are_filtered_to_k_group_by_group(select: Selection):
    candidates = Numbered()
    chosen = DiverseSampling(candidates, k=6, n=20, select=select).sample(15)
    assert candidates.asked == [360]  # of whole groups
    assert chosen.y is not None
    assert chosen.task is not None
    assert [*(chosen.y // 20 // 6)] == [0] * 6 + [1] * 6 + [2] * 3
    assert torch.equal(chosen.x.flatten(1).argmax(1), chosen.task)
    for group in chosen.task[:12].split(6):
        assert len(group.unique()) >= 5  # msss begins with two at random, which may be alike


class OneOdd:
    """Images that are all alike but for one."""

    def sample(self, size: int) -> Recollections:
        places = torch.zeros(size, dtype=torch.long)
        places[size // 2] = 1
        return Recollections(torch.eye(2)[places].reshape(size, 1, 1, 2))


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("size", [1, 2])
def test_a_few_are_of_a_group_that_is_diverse(select: Selection, size: int):
    sampler = DiverseSampling(OneOdd(), k=4, n=5, select=select)
    odd = sum(float(sampler.sample(size).x[:, 0, 0, 1].sum()) for _ in range(400))
    assert binomtest(round(odd), 400 * size, 1 / 4).pvalue > 0.001  # one of the four is always the odd one


@pytest.mark.parametrize("select", SELECTIONS)
def test_a_seed_fixes_the_choice(select: Selection):
    chosen = [DiverseSampling(Numbered(), select=select, seed=seed).sample(10).y for seed in (1, 1, 2)]
    assert chosen[0] is not None
    assert chosen[1] is not None
    assert chosen[2] is not None
    assert torch.equal(chosen[0], chosen[1])
    assert not torch.equal(chosen[0], chosen[2])


def test_it_refuses():
    S, rng = np.eye(3), np.random.default_rng(0)
    with pytest.raises(ValueError, match="m=4: accepted are 1 to 3"):
        msss(S, 4, rng)
    with pytest.raises(ValueError, match=r"gamma=0.0: accepted is a share above 0 and up to 1"):
        msss(S, 2, rng, gamma=0.0)
    with pytest.raises(ValueError, match="k=4: accepted are 1 to 3"):
        k_dpp(S, 4, rng)
    with pytest.raises(ValueError, match="n=0"):
        DiverseSampling(Numbered(), n=0)
    with pytest.raises(ValueError, match="size=0"):
        DiverseSampling(Numbered()).sample(0)
