"""Renders recorded runs into the README: ``make tables``. A test fails when the two differ."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def demo_table(runs: list[dict[str, Any]]) -> str:
    """The demonstration's rows over all its recorded seeds."""
    lines = ["| | storage, images | items | bits an item | retention, % | paper, % |", "|---|---:|---:|---:|---:|---:|"]
    by_row = [*zip(*(run["rows"] for run in runs), strict=True)]
    for rows in by_row:
        scores = [row["retention"] for row in rows]
        score = f"**{statistics.mean(scores):.1f}** ± {statistics.stdev(scores):.1f}"
        first = rows[0]
        cells = (f"{first['storage_examples']:.1f}", f"{first['items']:,}", f"{first['bits_per_item']:,}")
        lines.append(f"| {first['name']} | {' | '.join(cells)} | {score} | {first['paper'] or '-'} |")
    means = {rows[0]["name"]: statistics.mean(row["retention"] for row in rows) for rows in by_row}
    ahead = means["Replay, small pixels"] - means["Replay, recollections"]
    environment = runs[0]["environment"]
    codec = runs[0]["rows"][-1]["codec_examples"]
    seconds = max(run["seconds"] for run in runs)
    notes = (
        f"Storage is that of the codes, as in the paper; the learned codec takes as much as {codec:,.0f} images more.",
        "It is the paper's codec with a group norm, SiLU and no sampling noise, and learns online, without rehearsal.",
        "Small pixels are the control at equal bits: digits averaged down to 14x14 at 1 bit a pixel, nothing learned.",
        f"On this stream they keep {abs(ahead):.1f} points {'more' if ahead > 0 else 'less'} than recollections.",
        "Learning rate and batch size of each row were chosen on held-out training images.",
        f"{seconds:.0f} seconds a seed with {environment['threads']} threads on an {environment['cpu']}.",
    )
    return "\n".join([*lines, "", *notes])


def rendered(readme: str, results: Path) -> str:
    """The README with its table made anew from the recorded runs."""
    runs = [json.loads(path.read_text()) for path in sorted((results / "demo").glob("seed*.json"))]
    if len(runs) < 2:
        raise FileNotFoundError(f"{results / 'demo'}: a mean and its deviation need at least two recorded seeds")
    block = f"<!-- demo -->\n{demo_table(runs)}\n<!-- /demo -->"
    return re.sub("<!-- demo -->.*<!-- /demo -->", lambda _: block, readme, flags=re.DOTALL)


def main() -> None:
    """Rewrite the README."""
    readme = ROOT / "README.md"
    readme.write_text(rendered(readme.read_text(), ROOT / "results"))


if __name__ == "__main__":
    main()
