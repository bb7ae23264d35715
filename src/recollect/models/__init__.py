"""Predictive models."""

from recollect.models.lenet import LeNet as LeNet
from recollect.models.mlp import MLP as MLP
from recollect.models.resnet import ResNet18 as ResNet18
