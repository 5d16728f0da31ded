"""Whether a locked package has a known vulnerability: ``make audit-deps`` runs it beside pip-audit.

It fails if one has. Where the vulnerability service does not answer, it says so and passes: pip-audit itself
calls packages free of vulnerabilities that its service does not know.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / "requirements" / "extras.txt"  # it holds the core too

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
    code, sentence = verdict(done.stdout, done.stderr)
    print(sentence, flush=True)
    sys.exit(code)


def verdict(answer: str, errors: str) -> tuple[int, str]:
    """Exit code and sentence for what pip-audit printed: its JSON, "" if it failed, and its errors."""
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
    ]
    unknown = [p["skip_reason"] for p in packages if "skip_reason" in p]
    if found:
        return 1, "\n".join([*found, "FAILED: raise the versions in constraints.txt, then run `make lock`"])
    if unknown or not packages:
        count = f"{len(unknown)} of {len(packages)} locked packages"
        return 0, f"NOT audited: the vulnerability service does not know {count} ({(unknown or ['-'])[0]})"
    return 0, f"audited: no known vulnerability in {len(packages)} locked packages"


if __name__ == "__main__":
    main()
