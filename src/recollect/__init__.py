"""recollect: a memory for neural networks that keep learning."""

from importlib.metadata import version as _version

from recollect import distillation as distillation
from recollect import models as models
from recollect import streams as streams
from recollect.advice.advice import Advice as Advice
from recollect.advice.best import best_memory as best_memory
from recollect.ageing import Aged as Aged
from recollect.ageing import Ageing as Ageing
from recollect.budget import Bill as Bill
from recollect.budget import BudgetError as BudgetError
from recollect.budget import Plan as Plan
from recollect.budget import plan as plan
from recollect.codecs.autoencoder import DiscreteAutoencoder as DiscreteAutoencoder
from recollect.codecs.continuous import ContinuousAutoencoder as ContinuousAutoencoder
from recollect.codecs.cosines import Cosines as Cosines
from recollect.codecs.interface import Codec as Codec
from recollect.codecs.interface import LearnedCodec as LearnedCodec
from recollect.codecs.interface import PictureCodec as PictureCodec
from recollect.codecs.jpeg import JPEG as JPEG
from recollect.codecs.pixels import RawPixels as RawPixels
from recollect.codecs.pixels import ResizedPixels as ResizedPixels
from recollect.codecs.sketch import Sketch as Sketch
from recollect.learners.ewc import EWC as EWC
from recollect.learners.gem import GEM as GEM
from recollect.learners.icarl import ICaRL as ICaRL
from recollect.learners.learner import Learner as Learner
from recollect.learners.lwf import LwF as LwF
from recollect.learners.offline import Offline as Offline
from recollect.learners.online import Online as Online
from recollect.learners.replay import Replay as Replay
from recollect.memory.batch import Batch as Batch
from recollect.memory.file import MemoryFileError as MemoryFileError
from recollect.memory.memory import Memory as Memory
from recollect.memory.targets import NoTargets as NoTargets
from recollect.memory.targets import RealTargets as RealTargets
from recollect.module import RecollectionModule as RecollectionModule
from recollect.packing import bits_per_item as bits_per_item
from recollect.packing import pack as pack
from recollect.packing import unpack as unpack

__version__ = _version("recollect")
