"""The code shape for a storage constraint: `recollect plan`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import recollect as rc
from recollect.cli.common import AsJson, app, out, sizes


@app.command()
def plan(
    *,
    shape: Annotated[str, typer.Option(help="channels x height x width, such as 3x32x32")],
    storage: Annotated[float | None, typer.Option(help="storage in raw examples")] = None,
    items: Annotated[int | None, typer.Option(help="items to be kept")] = None,
    variables: Annotated[int | None, typer.Option(help="variables of a code, the paper's c")] = None,
    categories: Annotated[int | None, typer.Option(help="values of a variable, the paper's l")] = None,
    count_codec: Annotated[bool, typer.Option("--count-codec", help="the codec's parameters count, too")] = False,
    as_json_object: AsJson = False,
) -> None:
    """The code shape for a storage constraint: two of storage, items, and variables with categories."""
    try:
        found = rc.plan(
            shape=sizes(shape),
            storage_examples=storage,
            items=items,
            variables=variables,
            categories=categories,
            count_codec=count_codec,
        )
    except (OverflowError, ValueError) as error:
        raise typer.BadParameter(str(error).replace("storage_examples=", "--storage ")) from None
    code = {name: getattr(found, name) for name in ("variables", "categories", "bits_per_item", "items")}
    if as_json_object:
        print(json.dumps(code | {"parameters": found.parameter_count, "bits": found.bill.bits}))
        return
    out.print(
        f"{found.items:,} items of {found.variables} variables with {found.categories} values, "
        f"{found.bits_per_item} bits each; the codec has {found.parameter_count:,} parameters",
        highlight=False,
    )
    out.print(str(found.bill), highlight=False)
