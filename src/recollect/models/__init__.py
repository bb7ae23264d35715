"""Predictive models."""

from recollect.models.mlp import MLP as MLP
from recollect.models.resnet import ResNet18 as ResNet18
