"""What verifying logs finds, in words for people and as data for programs."""

from dataclasses import dataclass, field

from vflens.errors import ProtocolError, StorageError


@dataclass(frozen=True)
class Misfit:
    """One thing that does not fit.

    ``line`` counts from 1, 0 where no line is at fault; ``error`` is the class with which the command ends.
    """

    party: str
    file: str
    line: int
    problem: str
    remedy: str
    error: type[StorageError | ProtocolError]

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{self.party}: {where}: {self.problem}: {self.remedy}"


@dataclass
class Found:
    """Collects what the comparisons find. ``notes`` name what could not be checked, and why."""

    findings: list[Misfit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def damaged(self, party: str, file: str, problem: str, line: int = 0) -> None:
        """A log is not what its party wrote."""
        remedy = "bring back the folder as it was, or do not rely on it"
        self.findings.append(Misfit(party, file, line, problem, remedy=remedy, error=StorageError))

    def differs(self, party: str, file: str, problem: str, line: int = 0) -> None:
        """Two parties' logs disagree."""
        remedy = "one of the two folders was changed, or a message was on its way; compare with copies"
        self.findings.append(Misfit(party, file, line, problem, remedy=remedy, error=ProtocolError))
