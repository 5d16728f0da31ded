"""Whether a locked package has a known vulnerability: ``make audit-deps`` runs it beside pip-audit.

It fails if one has that ``requirements/accepted_advisories.toml`` does not accept for today. Where the
vulnerability service does not answer, it says so and passes: pip-audit itself calls packages free of
vulnerabilities that its service does not know.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
LOCK = REQUIREMENTS / "extras.txt"  # it holds the core too
ACCEPTED = REQUIREMENTS / "accepted_advisories.toml"
_LONGEST = timedelta(days=90)

#: How pip-audit ends where nobody answers it: by its own advice, or by one of these errors.
NO_ANSWER = (
    "your network may be blocking",
    "ConnectionError",
    "ConnectTimeout",
    "ReadTimeout",
    "ServiceError",
)


def main() -> None:
    """Ask, print one sentence, end with the code of :func:`verdict`."""
    ask = ["--disable-pip", "--requirement", str(LOCK), "--format", "json", "--progress-spinner", "off"]
    command = [str(Path(sys.executable).with_name("pip-audit")), *ask]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        accepted = accepted_today(ACCEPTED.read_text(encoding="utf-8"), datetime.now(UTC).date())
        code, sentence = verdict(done.stdout, done.stderr, accepted)
    except ValueError as error:
        code, sentence = 1, f"FAILED: {ACCEPTED.name}: {error}"
    print(sentence, flush=True)
    sys.exit(code)


def accepted_today(text: str, today: date) -> dict[str, str]:
    """Advisory → the package in which it is accepted ``today``, from the TOML ``text``.

    Raises:
        ValueError: an entry lacks a key, has ended, or ends later than 90 days from now.
    """
    entries = tomllib.loads(text)
    for advisory, entry in entries.items():
        _check_entry(advisory, entry, today)
    return {advisory: entry["package"] for advisory, entry in entries.items()}


def _check_entry(advisory: str, entry: Any, today: date) -> None:
    if not isinstance(entry, dict) or set(entry) != {"package", "reason", "until"}:
        raise ValueError(f"{advisory} needs exactly package, reason and until")
    if not str(entry["package"]).strip() or len(str(entry["reason"]).split()) < 4:
        raise ValueError(f"{advisory}: name the package, and give the reason in a sentence")
    until = entry["until"]
    if type(until) is not date or until > today + _LONGEST:
        raise ValueError(f"{advisory}: until must be a date within {_LONGEST.days} days, such as 2026-02-01")
    if until < today:
        raise ValueError(f"{advisory} was accepted until {until}: look whether a version mends it by now")


def verdict(answer: str, errors: str, accepted: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and sentence for what pip-audit printed: its JSON, "" if it failed, and its errors.

    ``accepted`` is that of :func:`accepted_today`.
    """
    accepted = accepted or {}
    if not answer.strip():
        last = (errors.strip().splitlines() or ["it printed nothing"])[-1]
        if any(sign in last for sign in NO_ANSWER):
            return 0, f"NOT audited: the vulnerability service does not answer ({last})"
        return 1, f"FAILED: pip-audit: {errors.strip()}"
    packages = json.loads(answer)["dependencies"]
    found = [
        f"{p['name']} {p['version']} has {v['id']}, mended in {', '.join(v['fix_versions']) or 'no version'}"
        for p in packages
        for v in p.get("vulns", ())
        if p["name"] not in {accepted.get(name) for name in (v["id"], *v.get("aliases", ()))}
    ]
    unknown = [p["skip_reason"] for p in packages if "skip_reason" in p]
    if found:
        remedy = "raise the versions in constraints.txt, then run `make lock`"
        if any(" no version" in line for line in found):
            remedy += f"; accept for a while what no version mends, in requirements/{ACCEPTED.name}"
        return 1, "\n".join([*found, f"FAILED: {remedy}"])
    if unknown or not packages:
        count = f"{len(unknown)} of {len(packages)} locked packages"
        return 0, f"NOT audited: the vulnerability service does not know {count} ({(unknown or ['-'])[0]})"
    other = f" but those accepted for now: {', '.join(accepted)}" if accepted else ""
    return 0, f"audited: no known vulnerability in {len(packages)} locked packages{other}"


if __name__ == "__main__":
    main()
