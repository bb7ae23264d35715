"""From a teacher to a student, by recollections alone."""

from recollect.distillation.active import ActiveSampling as ActiveSampling
from recollect.distillation.decoded import DecodedSampling as DecodedSampling
from recollect.distillation.distil import distil as distil
from recollect.distillation.distortion import nearest_neighbour_distortion as nearest_neighbour_distortion
from recollect.distillation.distortion import reconstruction_distortion as reconstruction_distortion
from recollect.distillation.diverse import DiverseSampling as DiverseSampling
from recollect.distillation.dpp import k_dpp as k_dpp
from recollect.distillation.msss import msss as msss
from recollect.distillation.sampling import BufferSampling as BufferSampling
from recollect.distillation.sampling import CodeSampling as CodeSampling
from recollect.distillation.sampling import Recollections as Recollections
from recollect.distillation.sampling import Sampler as Sampler
