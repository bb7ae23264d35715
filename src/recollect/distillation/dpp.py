"""A determinantal point process of fixed size, sampled exactly (Kulesza and Taskar, 2012, section 5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.checks import check_at_least

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.checks import Integers

    Floats = npt.NDArray[np.float64]

LEAST = 1e-9  # eigenvalue, as a share of their mean


def k_dpp(L: Floats, k: int, rng: np.random.Generator) -> Integers:
    """``k`` of the points, by their numbers: a set Y is drawn with a probability proportional to det(L_Y).

    Points may be alike; a set of them that has no volume is hardly ever drawn, unless there is no other.

    Args:
        L: similarities of all points to each other, such as their dot products.
        k: points to choose.
        rng: draws them.

    >>> x = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> 0 in k_dpp(x @ x.T, 2, np.random.default_rng(0))  # the others have no area between them
    True
    """
    if check_at_least("k", k, 1) > len(L):
        raise ValueError(f"k={k}: accepted are 1 to {len(L)}, as many as there are points")
    values, vectors = np.linalg.eigh(L)
    logarithms = np.log(values.clip(min=max(LEAST * values.mean(), np.finfo(np.float64).tiny)))
    return _elementary(vectors[:, _eigenvectors(logarithms, k, rng)], rng)


def _eigenvectors(logarithms: Floats, k: int, rng: np.random.Generator) -> list[int]:
    """A set J of k eigenvectors, drawn with a probability proportional to the product of their eigenvalues.

    From the last to the first: the n-th is in J with probability λ_n e_{k-1}(λ_1..λ_{n-1}) / e_k(λ_1..λ_n), where e_k
    is the k-th elementary symmetric polynomial. In logarithms, for products of many eigenvalues have no bounds.
    """
    N = len(logarithms)
    e = np.full((N + 1, k + 1), -np.inf)
    e[:, 0] = 0
    for n in range(1, N + 1):
        e[n, 1:] = np.logaddexp(e[n - 1, 1:], logarithms[n - 1] + e[n - 1, :-1])
    J = []
    for n in range(N, 0, -1):
        if k and (n == k or rng.random() < np.exp(logarithms[n - 1] + e[n - 1, k - 1] - e[n, k])):
            J.append(n - 1)
            k -= 1
    return J


def _elementary(V: Floats, rng: np.random.Generator) -> Integers:
    """As many points as V has columns, from the process whose kernel is the projection V Vᵀ.

    A point is drawn with a probability proportional to the square of what its row has that the rows of the points
    drawn before do not span; ``spanned`` holds what each row has along each of these, made orthogonal.
    """
    left = (V**2).sum(1)
    spanned = np.zeros_like(V)
    chosen = []
    for step in range(V.shape[1]):
        probabilities = left.clip(min=0)
        probabilities[chosen] = 0
        point = int(rng.choice(len(V), p=probabilities / probabilities.sum()))
        along = (V @ V[point] - spanned[:, :step] @ spanned[point, :step]) / np.sqrt(left[point])
        spanned[:, step] = along
        left = left - along**2
        chosen.append(point)
    return np.array(chosen, np.int64)
