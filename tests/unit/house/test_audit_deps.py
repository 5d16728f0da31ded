"""What `make audit-deps` makes of pip-audit's answers: silence is never shown as "no vulnerability"."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import pytest
from audit_deps import ACCEPTED, accepted_today, verdict

CLEAN = {"name": "numpy", "version": "2.4.6", "vulns": []}
BAD = {"name": "jinja2", "version": "3.1.5", "vulns": [{"id": "CVE-2025-27516", "fix_versions": ["3.1.6"]}]}
UNKNOWN = {"name": "rich", "skip_reason": "Dependency not found: rich (15.0.0)"}


def answer(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


def test_a_clean_lock_passes() -> None:
    assert verdict(answer(CLEAN), "") == (0, "audited: no known vulnerability in 1 locked packages")


def test_a_vulnerability_fails_and_is_named_even_beside_unknown_packages() -> None:
    code, sentence = verdict(answer(CLEAN, UNKNOWN, BAD), "Found 1 known vulnerability in 1 package")
    assert code == 1
    assert "jinja2 3.1.5 has CVE-2025-27516, mended in 3.1.6" in sentence
    assert "raise the versions in constraints.txt" in sentence


@pytest.mark.parametrize("packages", [(UNKNOWN,), (CLEAN, UNKNOWN), ()])
def test_packages_that_the_service_does_not_know_are_not_called_clean(packages: tuple[Any, ...]) -> None:
    """pip-audit prints "No known vulnerabilities found" for them."""
    code, sentence = verdict(answer(*packages), "No known vulnerabilities found")
    assert code == 0
    assert sentence.startswith("NOT audited: the vulnerability service does not know ")


@pytest.mark.parametrize(
    "last",
    [
        "requests.exceptions.ConnectionError: Failed to resolve the name",
        "ERROR:pip_audit._cli:Tip: your network may be blocking this service. Try another service",
        "pip_audit._service.interface.ServiceError",
    ],
)
def test_a_service_that_does_not_answer_is_named(last: str) -> None:
    code, sentence = verdict("", f"Traceback (most recent call last):\n  ...\n{last}\n")
    assert code == 0
    assert sentence == f"NOT audited: the vulnerability service does not answer ({last})"


@pytest.mark.parametrize("errors", ["invalid requirements input: extras.txt", ""])
def test_any_other_failure_fails(errors: str) -> None:
    assert verdict("", errors) == (1, f"FAILED: pip-audit: {errors}")


# --- advisories that are accepted for a while

TODAY = date(2026, 1, 1)
ENTRY = """
[CVE-2025-27516]
package = "jinja2"
reason = "only templates of VFLens are rendered"
until = 2026-01-01
"""
UNMENDED = {"id": "GHSA-x", "aliases": ["CVE-2025-27516"], "fix_versions": []}


def test_an_accepted_advisory_passes_by_its_id_and_by_an_alias() -> None:
    accepted = accepted_today(ENTRY, TODAY)
    for packages in ((CLEAN, BAD), ({**BAD, "vulns": [UNMENDED]},)):
        code, sentence = verdict(answer(*packages), "", accepted)
        assert code == 0
        assert sentence.endswith("but those accepted for now: CVE-2025-27516")


def test_an_accepted_advisory_excuses_no_other_and_no_other_package() -> None:
    accepted = accepted_today(ENTRY, TODAY)
    other = {**BAD, "vulns": [*BAD["vulns"], {"id": "CVE-2", "fix_versions": []}]}
    code, sentence = verdict(answer(other), "", accepted)
    assert (code, "CVE-2025-27516" in sentence) == (1, False)
    assert "jinja2 3.1.5 has CVE-2, mended in no version" in sentence
    assert "accept for a while what no version mends, in requirements/accepted_advisories.toml" in sentence
    assert verdict(answer({**BAD, "name": "rich"}), "", accepted)[0] == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("until = 2026-01-01", "until = 2025-12-31", "was accepted until 2025-12-31: look whether"),
        ("until = 2026-01-01", "until = 2026-04-02", "until must be a date within 90 days"),
        ("until = 2026-01-01", 'until = "2026-01-01"', "until must be a date"),
        ("until = 2026-01-01", "until = 2026-01-01T10:00:00", "until must be a date"),
        ("until = 2026-01-01\n", "", "needs exactly package, reason and until"),
        ('reason = "only templates of VFLens are rendered"\n', "", "needs exactly package, reason"),
        ("only templates of VFLens are rendered", "later", "give the reason in a sentence"),
        ('"jinja2"', '""', "name the package"),
        ("[CVE-2025-27516]", "CVE = 1\n[CVE-2025-27516]", "CVE needs exactly"),
        ("[CVE-2025-27516]", "[CVE", "Expected"),
    ],
)
def test_an_entry_needs_a_reason_and_an_end_that_has_not_come(old: str, new: str, words: str) -> None:
    assert old in ENTRY
    with pytest.raises(ValueError, match=words):
        accepted_today(ENTRY.replace(old, new), TODAY)


def test_the_example_in_the_file_is_an_entry() -> None:
    lines = ACCEPTED.read_text(encoding="utf-8").splitlines()
    example = "\n".join(line[2:] for line in lines if re.match(r"# (\[|\w+ = )", line))
    assert accepted_today(example, TODAY) == {"CVE-2025-27516": "jinja2"}
