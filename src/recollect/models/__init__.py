"""Predictive models."""

from recollect.models.lenet import LeNet as LeNet
from recollect.models.mlp import MLP as MLP
