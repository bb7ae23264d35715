"""Streams of tasks to learn from."""

from recollect.streams.arrays import from_arrays as from_arrays
from recollect.streams.cifar import cifar10 as cifar10
from recollect.streams.cifar import incremental_cifar100 as incremental_cifar100
from recollect.streams.dataset import from_dataset as from_dataset
from recollect.streams.folder import class_names as class_names
from recollect.streams.folder import from_folder as from_folder
from recollect.streams.mnist import mnist_rotations as mnist_rotations
from recollect.streams.omniglot import omniglot as omniglot
from recollect.streams.task import Examples as Examples
from recollect.streams.task import Task as Task
