"""Take each table of a folder through the check and the audit: ``judge.py FOLDER``.

Each has a process and at most a minute of a core. Results are kept as they come: another call goes on. It
ends with 1 where a command raised, refused what the check wrote, or took longer.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vflens.errors import VflensError
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import load_subject
from vflens.experiments.audit.words import sentences
from vflens.experiments.run.check import check
from vflens.experiments.run.own_tables import describe

_SECONDS = 60
_KNOWN = 20
#: What a table may be refused for: it is none, or holds too little for any audit.
_FAIR = re.compile(
    r"no column can be read|an audit needs at least|it holds no (rows|columns)|occurs twice|no table"
)


def judged(table: Path) -> dict[str, Any]:
    """What became of a ``table``: rows, columns, columns left out, what is to decide, the verdict."""
    with TemporaryDirectory() as folder:
        own = Path(folder) / "own.toml"
        found = describe(table, own)
        check(own, lambda checks: None)
        subject = load_subject(str(own), classes=None, columns=None, id_column="id")
        known = min(_KNOWN, len(subject.x) // 3)
        plan = Plan(models=1, known=known, rows=100, training="secure", slow_rows=10)
        verdict = sentences(audit(subject, plan, lambda *progress: None, lambda kept: None))
        asked = [words.split(":")[0] for words in found["decide"]]
        return {"rows": found["rows"], "columns": len(found["columns"]), "left_out": len(found["left_out"]),
                "decide": len(asked), "verdict": verdict[0]}  # fmt: skip


def _alone(table: Path, out: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 5))
    try:
        out.send({"state": "fine", **judged(table)})
    except VflensError as error:
        fair = _FAIR.search(str(error)) is not None
        out.send({"state": "no table" if fair else "refused", "words": str(error)})
    except BaseException as error:
        out.send({"state": "raised", "words": f"{error!r} {traceback.format_exc()[-1500:]}"})


def run(table: Path) -> dict[str, Any]:
    """:func:`judged` in a process of its own."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_alone, args=(table, there))
    process.start()
    there.close()
    try:
        found: dict[str, Any] = here.recv()
    except EOFError:
        found = {"state": "took longer", "words": f"more than {_SECONDS} s of a core"}
    process.join()
    return {"table": table.name, **found}


def report(found: list[dict[str, Any]]) -> str:
    """The counts, and a line for each table that did not pass."""
    states = Counter(one["state"] for one in found)
    fine = [one for one in found if one["state"] == "fine"]
    sums = {key: sum(one[key] for one in fine) for key in ("rows", "columns", "left_out", "decide")}
    lines = [
        f"{len(found)} tables of public packages: "
        + ", ".join(f"{n} {state}" for state, n in states.items()),
        f"of those that are fine: {sums['rows']:,} rows, {sums['columns']:,} columns used, "
        f"{sums['left_out']:,} left out, {sums['decide']:,} lines to decide",
        *(
            f"{one['table']}: {one['state']}: {one['words'].splitlines()[0]}"
            for one in found
            if one not in fine
        ),
    ]
    return "\n".join([*lines, ""])


def main() -> int:
    """Judge what was not judged yet."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--report", type=Path)
    given = arguments.parse_args()
    kept = given.folder.with_suffix(".jsonl")
    found = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {one["table"] for one in found}
    with kept.open("a", encoding="utf-8") as file:
        for table in sorted(given.folder.iterdir(), key=lambda file: file.stat().st_size):
            if table.name not in done:
                found.append(run(table))
                file.write(json.dumps(found[-1]) + "\n")
                file.flush()
    if given.report:
        given.report.write_text(report(found), encoding="utf-8")
    print(report(found))
    return int(any(one["state"] not in ("fine", "no table") for one in found))


if __name__ == "__main__":
    raise SystemExit(main())
