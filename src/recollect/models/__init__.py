"""Predictive models."""

from recollect.models.mlp import MLP as MLP
