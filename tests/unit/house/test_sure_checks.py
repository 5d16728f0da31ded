"""No test passes because a loop met nothing, or an ``if`` did not hold."""

from __future__ import annotations

import pytest
from surely import ROOT, TESTS, unsure


def test_every_test_checks_something_whatever_it_meets() -> None:
    """Mend one by parameters, by one assertion on whole arrays, or by ``nonempty`` of what it loops over."""
    found = [
        f"{file.relative_to(ROOT)}:{line} {name}"
        for file in TESTS.values()
        for line, name in unsure(file.read_text(encoding="utf-8"))
    ]
    assert len(TESTS) > 300
    assert not found, f"they may check nothing, in a loop or under a condition: {found}"


HELPERS = """
SOME, NONE = (1, 2), ()

def assert_good(x) -> None:
    assert x

def lets_all_pass(xs) -> None:
    for x in xs:
        assert x
"""


@pytest.mark.parametrize(
    "body",
    [
        "for x in f(): assert x",
        "for x in (): assert x",
        "for x in NONE: assert x",
        "for x in range(0): assert x",
        "for x in given: assert_good(x)",
        "for x in [y for y in SOME if y]: assert x",
        "for x in SOME:\n  for y in f(x): assert y",
        "for x in f(): np.testing.assert_allclose(x, 0)",
        "for x in f():\n  with pytest.raises(E): g(x)",
        "found = f()\nfor x in found: assert x",
        "SOME = f()\nfor x in SOME: assert x",
        "assert all(f(x) for x in given)",
        "assert not any(f(x) for x in given)",
        "assert [x for x in given if f(x)] == []",
        "[assert_good(x) for x in given]",
        "if given: assert f()",
        "if given: assert f()\nelse: g()",
        "while f(): assert g()",
        "try: f()\nexcept E: assert True",
        "def inner(): assert f()\ng(inner)",
        "lets_all_pass(f()); assert all(x for x in f())",
    ],
)
def test_a_test_that_may_check_nothing_is_found(body: str) -> None:
    assert unsure(_test(body)) == [(11, "test_it")]


@pytest.mark.parametrize(
    "body",
    [
        "assert f()",
        "for x in (1, *f()): assert x",
        "for x in SOME: assert x",
        "for i, x in enumerate(sorted(SOME)): assert x",
        "for k, v in {1: 2}.items(): assert v",
        "for x, y in zip(SOME, f(), strict=True): assert x",
        "for x in range(1, 3): assert x",
        "for x in nonempty(f()): assert x",
        "found = nonempty(f())\nfor x in found: assert x",
        "for x in f(): assert x\nassert_good(1)",
        "assert all(f(x) for x in SOME)",
        "assert given and all(f(x) for x in given)",
        "if given: assert f()\nelse: assert g()",
        "with f():\n  assert g()",
        "with pytest.raises(E): f()",
        "try: assert f()\nfinally: g()",
    ],
)
def test_a_test_that_checks_for_sure_is_none(body: str) -> None:
    assert unsure(_test(body)) == []


def _test(body: str) -> str:
    indented = body.replace("\n", "\n    ")
    return f"{HELPERS}\ndef test_it(given) -> None:\n    {indented}\n"
