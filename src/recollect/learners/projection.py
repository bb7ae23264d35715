"""GEM's projection: the gradient nearest to the new one that no past task is hurt by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import quadprog

Floats = npt.NDArray[np.float64]


def multipliers(gram: Floats, along: Floats, strength: float) -> Floats:
    """How much of each past gradient g_k to add to the new gradient g: the v of g~ = g + Σ v_k g_k.

    They solve the dual of GEM's quadratic programme: minimise ½ vᵀ P v + pᵀ v with all v_k at least ``strength``. Then
    <g~, g_k> = P v + p is at least 0 for every k, whatever the strength.

    Args:
        gram: P, the inner products <g_j, g_k> of the past gradients.
        along: p, the inner products <g, g_k>.
        strength: GEM's memory strength γ; 0 gives the projection itself, more pulls towards the past tasks.

    >>> multipliers(np.array([[4.0]]), np.array([-2.0]), strength=0.0).round(3).tolist()
    [0.5]
    """
    # The solver wants a positive definite matrix of moderate numbers, so that gradients are taken at length 1: tasks
    # that are known by heart have very short ones. Past gradients may be alike, and what rounding then makes negative
    # is lifted to just above zero.
    norms = np.sqrt(np.diag(gram).clip(min=np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh((gram + gram.T) / (2 * norms * norms[:, None]))
    definite = (vectors * values.clip(min=1e-9)) @ vectors.T
    return quadprog.solve_qp(definite, -along / norms, np.eye(len(gram)), strength * norms)[0] / norms
