"""The record of a run: what its folders hold and what follows from them, with types.

Report, live page, sweeps, comparison, ledger and scoreboard read a run as this record: what they do, a
notebook can do.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from vflens.errors import ConfigError
from vflens.experiments.outcome.finding import Finding, Findings
from vflens.experiments.results.fedadob import TheoremCheck, beside
from vflens.experiments.results.findings import (
    ColumnBits,
    WorstCase,
    best_own_errors,
    column_bits,
    of_result,
    of_run,
    own_errors,
    worst_cases,
)
from vflens.experiments.results.folders import PartyRun, PartyRuns, party_folders, read_party
from vflens.experiments.results.labels_membership import (
    LabelResult,
    MembershipResult,
    asked_means,
    best_means,
    column_means,
    label_results,
    largest_leaks,
    membership_results,
    sites,
)
from vflens.experiments.results.protection import (
    OnGrantsOnly,
    SpentPrivacy,
    TableRelease,
    hijacked,
    malicious,
    on_grants_only,
    privacy,
    protects_grants_alone,
    reads_grants,
    releases,
)
from vflens.experiments.results.results import (
    ColumnError,
    NotRun,
    Result,
    column_errors,
    explained,
    failed,
    final,
    leaking_columns,
    results,
    skipped,
)
from vflens.experiments.results.theory import Comparison, Disorder, alarms, comparisons, disorders, milestones
from vflens.experiments.results.utility import ClientAccuracy, clients, utility
from vflens.protocol.roles import ROLES
from vflens.words import counted


class RecordedRun(PartyRuns):
    """One run, of the folders that are given: an owner's own alone, or those of all parties.

    Attributes:
        name: the run's.
        parties: the folders, those of targets first: :class:`vflens.experiments.results.folders.PartyRun`
            with the configuration, the federation, the state and all rows of ``metrics.parquet``.

    Example:
        >>> run = vl.read_run("runs/demo/undefended")
        >>> for r in run.results:
        ...     print(r.attack, r.target, r.mse, r.blind)
        >>> [column.mse for column in run.columns(run.results[0])]
        >>> run.utility["accuracy"], run.labels, run.membership, run.skipped, run.privacy
    """

    @cached_property
    def findings(self) -> Findings:
        """What its attacks found, beside what a blind guess reaches: columns, labels, members, people."""
        return of_run(self)

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Errors of attacks on columns beside those of blind guesses, each attack's last milestone, the most
        successful first.
        """
        return final(self)

    @property
    def milestones(self) -> tuple[Result, ...]:
        """The same of every number of rows that was scored."""
        return results(self)

    @cached_property
    def labels(self) -> tuple[LabelResult, ...]:
        """Attacks on labels, the most successful first."""
        return label_results(self)

    @cached_property
    def membership(self) -> tuple[MembershipResult, ...]:
        """Attacks that tell training rows from others, the most successful first."""
        return tuple(membership_results(self))

    @cached_property
    def sites(self) -> tuple[Finding, ...]:
        """Attacks that name the client whose training row it is, then the same of other rows."""
        return sites(self)

    @cached_property
    def explained(self) -> Mapping[tuple[str, str], float]:
        """(attack, target) → R² on training rows, of attacks whose values are the columns up to an affine
        map.
        """
        return explained(self)

    @cached_property
    def largest(self) -> tuple[Finding, ...]:
        """The largest leak of each target's columns, from training or from predictions, the largest first."""
        return largest_leaks(self)

    @cached_property
    def skipped(self) -> tuple[NotRun, ...]:
        """The attacks that lacked knowledge, and which."""
        return tuple(skipped(self))

    @cached_property
    def failed(self) -> tuple[NotRun, ...]:
        """The attacks that raised an error or gave no estimate, and why."""
        return tuple(failed(self))

    @cached_property
    def utility(self) -> Mapping[str, float]:
        """Accuracy and AUC, alone, gained, of a protected run's clear twin, mean KL in nats, share of kept
        arg-max; means over clients.
        """
        return utility(self)

    @cached_property
    def clients(self) -> tuple[ClientAccuracy, ...]:
        """Each client's accuracy on its own prediction rows."""
        return tuple(clients(self))

    @cached_property
    def privacy(self) -> tuple[SpentPrivacy, ...]:
        """The releases and the ε of each party whose noise counts."""
        return tuple(privacy(self))

    @cached_property
    def releases(self) -> tuple[TableRelease, ...]:
        """The released tables: what their noise claims, beside the errors of attacks."""
        return tuple(releases(self))

    @cached_property
    def on_grants_only(self) -> tuple[OnGrantsOnly, ...]:
        """The defences that acted on what is granted only: of what crosses the wire they hide nothing."""
        return tuple(on_grants_only(self))

    @cached_property
    def malicious(self) -> tuple[str, ...]:
        """A sentence for each party that was configured to break the protocol."""
        return tuple(malicious(self))

    @cached_property
    def hijacked(self) -> tuple[str, ...]:
        """A sentence for each detector of hijacked gradients that raised an alarm."""
        return tuple(hijacked(self))

    @cached_property
    def theory(self) -> tuple[Comparison, ...]:
        """Closed forms and bounds beside the errors, at each attack's last milestone."""
        return comparisons(self)

    @cached_property
    def theory_milestones(self) -> tuple[Comparison, ...]:
        """The same at every milestone."""
        return milestones(self)

    @cached_property
    def disorders(self) -> tuple[Disorder, ...]:
        """Rows on which an attack breaks Theorem 1."""
        return disorders(self)

    @cached_property
    def alarms(self) -> tuple[str, ...]:
        """A sentence for each disagreement between theory and measurement."""
        return tuple(alarms(self))

    @cached_property
    def fedadob(self) -> tuple[TheoremCheck, ...]:
        """FedAdOb's theorems beside the errors that they are about."""
        return beside(self)

    @property
    def protects_grants_alone(self) -> bool:
        """Whether all its defences, one at least, act on what is granted only."""
        return protects_grants_alone(self)

    def reads_grants(self, attack: str, target: str) -> bool:
        """Whether ``attack`` on ``target`` reads what is granted and a defence may change."""
        return reads_grants(self, attack, target)

    def columns(self, result: Result) -> tuple[ColumnError, ...]:
        """The errors of one of :attr:`results` column by column, in the target's order."""
        return column_errors(self, result)

    def finding_of(self, result: Result) -> Finding:
        """``result``, an error over all columns, beside the blind guess."""
        return of_result(self, result)

    def own_units(self, result: Result) -> tuple[Finding, ...]:
        """The columns of ``result`` that it finds best, in their own units; at most 12."""
        return own_errors(self, result)

    @cached_property
    def best_own_units(self) -> tuple[Finding, ...]:
        """The same of the most successful attack on each target."""
        return best_own_errors(self)

    @cached_property
    def worst_cases(self) -> tuple[WorstCase, ...]:
        """Cells, rows and unique rows that the most successful attack on each target finds."""
        return worst_cases(self)

    @cached_property
    def column_means(self) -> tuple[Finding, ...]:
        """By attack and column, how far the mean of its answers lies from the column's own."""
        return column_means(self)

    @property
    def asked_means(self) -> tuple[Finding, ...]:
        """Column means from attacks on nothing else, and from the guess that starts from granted means."""
        return asked_means(self)

    @property
    def best_means(self) -> tuple[str, ...]:
        """A sentence on each target: the column means by the attack that errs least, beside a guess."""
        return tuple(best_means(self))

    def leaking_columns(self, target: str, scored_set: str = "") -> tuple[ColumnError, ...]:
        """The columns of ``target`` with less than half the error of a blind guess, worst first; of the rows
        of ``scored_set``, or of any.
        """
        return leaking_columns(self, target, scored_set)

    def column_bits(self, target: str) -> tuple[ColumnBits, ...]:
        """The entropy that the best attack leaves of each column of ``target`` with an alphabet."""
        return column_bits(self, target)


def read_run(folder: Path | str) -> RecordedRun:
    """The record of the one run in ``folder``: that of a run, of a scenario, or of one party.

    An owner's own folder gives what the owner knows. Nothing in the folder changes. A run that goes on is
    read as far as it has come.

    Raises:
        ConfigError: the folder holds several runs, such as those of several scenarios.
        DataError: it is missing or holds no run, or a file in it is damaged.
    """
    runs = read_runs([Path(folder)])
    if len(runs) != 1:
        names = ", ".join(run.name for run in runs)
        raise ConfigError(f"{folder} holds {counted(len(runs), 'run')} ({names}): give one run's folder")
    return runs[0]


def read_runs(folders: Sequence[Path]) -> tuple[RecordedRun, ...]:
    """The runs of the given folders: runs without defences first, else in order of appearance.

    Any other folder means the party folders inside it, at most two levels down.

    Raises:
        ConfigError: two folders claim to be the same party of the same run.
        DataError: a folder is missing or holds no run, or a file is damaged.
    """
    return joined(map(read_party, party_folders(folders)))


def joined(parties: Iterable[PartyRun]) -> tuple[RecordedRun, ...]:
    """The runs of ``parties``, in the order of :func:`read_runs`.

    Raises:
        ConfigError: two are the same party of the same run.
    """
    found: dict[str, dict[str, PartyRun]] = {}
    for party in parties:
        run = found.setdefault(party.federation.run or party.folder.parent.name, {})
        if party.name in run:
            raise ConfigError(
                f"{run[party.name].folder} and {party.folder} hold the same party of the same run: give one "
                "of them"
            )
        run[party.name] = party
    runs = (RecordedRun(name, _targets_first(parties.values())) for name, parties in found.items())
    return tuple(sorted(runs, key=lambda run: any(p.settings.defenses for p in run.parties)))


def _targets_first(parties: Iterable[PartyRun]) -> tuple[PartyRun, ...]:
    order = list(ROLES)
    return tuple(sorted(parties, key=lambda p: (order.index(p.role) if p.role else len(order), p.name)))
