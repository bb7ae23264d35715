"""Streams of tasks to learn from."""

from recollect.streams.mnist import mnist_rotations as mnist_rotations
from recollect.streams.task import Examples as Examples
from recollect.streams.task import Task as Task
