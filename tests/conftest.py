"""Settings for all tests: the same examples every time, and no time limit a busy machine could break."""

from hypothesis import settings

settings.register_profile("recollect", deadline=None, derandomize=True)
settings.load_profile("recollect")
