"""Shows the examples in docstrings as code: Markdown would take their ``>>>`` for a quotation in a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> (?:.*\n?)(?:\1\S.*\n?)*", flags=re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts a fence around every example, from its prompt to the next empty line."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of what was found in the source."""
        if (docstring := obj.docstring) is not None:
            docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", docstring.value)
