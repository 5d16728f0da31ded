"""Outcomes of thresholds as JUnit XML, which servers of builds show as tests."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from vflens.errors import printable
from vflens.experiments.evidence.thresholds import Outcome
from vflens.experiments.outcome.decide import State
from vflens.storage.files import write_whole

#: A broken threshold is a failure; one that is not decided an error: the test could not be made.
_ELEMENTS = {State.FOUND: "failure", State.UNDECIDED: "error"}


def write_junit(file: Path, outcomes: Sequence[Outcome]) -> None:
    """Write ``outcomes`` to ``file``: a suite, with a case for each federation and threshold.

    Raises:
        StorageError: it cannot be written.
    """
    count = {kind: sum(_ELEMENTS.get(o.state) == kind for o in outcomes) for kind in _ELEMENTS.values()}
    numbers = {"tests": str(len(outcomes)), "failures": str(count["failure"]), "errors": str(count["error"])}
    suite = ElementTree.Element("testsuite", {"name": "vflens", **numbers})
    for o in outcomes:
        named = {"classname": printable(o.where), "name": printable(o.threshold)}
        case = ElementTree.SubElement(suite, "testcase", named)
        if kind := _ELEMENTS.get(o.state):
            ElementTree.SubElement(case, kind, {"message": printable(o.sentence), "type": o.judged})
    suites = ElementTree.Element("testsuites", numbers)
    suites.append(suite)
    text = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    write_whole(file, text, remedy="another --junit")
