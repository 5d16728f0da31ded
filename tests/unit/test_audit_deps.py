"""What `make audit-deps` makes of pip-audit's answers: silence is never shown as "no vulnerability"."""

from __future__ import annotations

import json
from typing import Any

import pytest
from audit_deps import verdict

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
