"""``python -m recollect`` is the command ``recollect``."""

from recollect.cli import app

app(prog_name="recollect")
