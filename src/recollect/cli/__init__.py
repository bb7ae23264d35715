"""The command line: each module of this package adds its commands to the one application."""

from recollect.cli import advising as advising
from recollect.cli import comparing as comparing
from recollect.cli import experiments as experiments
from recollect.cli import files as files
from recollect.cli import planning as planning
from recollect.cli.common import app as app
