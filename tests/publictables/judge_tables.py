"""Take each table of a folder through the check and the audit: ``judge.py FOLDER``.

Each has a process and at most a minute of a core. Their order is drawn from a seed, so that a part stands for
all. Results are kept as they come: another call goes on; ``--most`` tables end one. It
ends with 1 where a command raised, refused what the check wrote, or took longer.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import resource
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vflens.errors import VflensError
from vflens.experiments.audit.bench import Plan, broken
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import check_rows, load_subject
from vflens.experiments.audit.words import sentences
from vflens.experiments.run.check import check
from vflens.experiments.run.own_tables import describe
from vflens.registry import ATTACKS

_SECONDS = 60
_KNOWN = 20
_SEED = 0
#: What a table may be refused for: it is none, or holds too little for any audit.
_FAIR = re.compile(
    r"no column can be read|an audit needs at least|it holds no (rows|columns)|occurs twice|no table"
    r"|cells?, the header|its header is one column"
)


def judged(table: Path, *, audited: bool) -> dict[str, Any]:
    """What became of a ``table``: rows, columns, columns left out, what is to decide, the verdict; without
    this unless ``audited``.
    """
    with TemporaryDirectory() as folder:
        own = Path(folder) / "own.toml"
        found = describe(table, own)
        check(own, lambda checks: None)
        subject = load_subject(str(own), classes=None, columns=None, id_column="id")
        known = min(_KNOWN, len(subject.x) // 3)
        plan = Plan(models=1, known=known, rows=100, training="secure", slow_rows=10)
        facts = {"rows": found["rows"], "columns": len(found["columns"]),
                 "left_out": len(found["left_out"]), "decide": len(found["decide"])}  # fmt: skip
        if not audited:
            check_rows(str(table), min(plan.rows, len(subject.x)), known)
            return {"state": "described", **facts}
        verdict = sentences(audit(subject, plan, lambda *progress: None, lambda kept: None))
        return {"state": "fine", **facts, "verdict": verdict[0]}


def _alone(table: Path, out: Any, audited: bool) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 5))
    try:
        out.send(judged(table, audited=audited))
    except VflensError as error:
        fair = _FAIR.search(str(error)) is not None
        out.send({"state": "no table" if fair else "refused", "words": str(error)})
    except BaseException as error:
        out.send({"state": "raised", "words": f"{error!r} {traceback.format_exc()[-1500:]}"})


def run(table: Path, *, audited: bool) -> dict[str, Any]:
    """:func:`judged` in a process of its own."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_alone, args=(table, there, audited))
    process.start()
    there.close()
    try:
        found: dict[str, Any] = here.recv()
    except EOFError:
        found = {"state": "took longer", "words": f"more than {_SECONDS} s of a core"}
    process.join()
    if "words" in found:  # the report is committed: it names no folder of the machine that judged
        found["words"] = found["words"].replace(str(table), table.name)
    return {"table": table.name, **found}


def report(found: list[dict[str, Any]], of: int) -> str:
    """The counts, and a line for each table that did not pass."""
    states = Counter(one["state"] for one in found)
    fine = [one for one in found if one["state"] in ("fine", "described")]
    sums = {key: sum(one[key] for one in fine) for key in ("rows", "columns", "left_out", "decide")}
    lines = [
        f"{len(found)} of {of} tables of public packages, in an order drawn at random: "
        + ", ".join(f"{n} {state}" for state, n in states.items()),
        "fine: its description was written, checked and audited; described: written and checked, not audited",
        f"of both: {sums['rows']:,} rows, {sums['columns']:,} columns used, "
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
    arguments.add_argument("--most", type=int, help="end after so many of the order")
    arguments.add_argument("--no-audit", dest="audit", action="store_false", help="write and check alone")
    given = arguments.parse_args()
    kept = given.folder.with_suffix(".jsonl")
    lines = kept.read_text().splitlines() if kept.exists() else []
    found = {one["table"]: one for one in map(json.loads, lines)}
    order = sorted(given.folder.iterdir())
    random.Random(_SEED).shuffle(order)
    broken(ATTACKS)  # imports them once, before the processes part
    with kept.open("a", encoding="utf-8") as file:
        for table in order[: given.most]:
            state = found.get(table.name, {}).get("state")
            if state is None or (given.audit and state == "described"):
                found[table.name] = run(table, audited=given.audit)
                file.write(json.dumps(found[table.name]) + "\n")
                file.flush()
    words = report(list(found.values()), len(order))
    if given.report:
        given.report.write_text(words, encoding="utf-8")
    print(words)
    return int(any(one["state"] not in ("fine", "described", "no table") for one in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
