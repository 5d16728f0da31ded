"""The facts of the panels of one run; {} for a panel without any."""

from collections.abc import Iterator
from dataclasses import fields

from pydantic import ValidationError

from vflens.experiments.outcome.finding import Quantity
from vflens.experiments.outcome.words import number, subject
from vflens.experiments.pages.ledger import ledger
from vflens.experiments.pages.pictures import pictures
from vflens.experiments.pages.report_charts import percent
from vflens.experiments.results import verdict
from vflens.experiments.results.clear_training import explained_number
from vflens.experiments.results.ledger import absent, sampled, shown
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import defenses, describe
from vflens.experiments.results.utility import UTILITY
from vflens.experiments.watch import charts
from vflens.experiments.watch.events import sentence
from vflens.plugins.defense import installed_defense
from vflens.registry import ATTACKS
from vflens.types import Claim, Document, Facts

_NEAR = 0.8  # share of a budget of ε from which on it is an alarm


def summary(run: RecordedRun) -> Document:
    """The verdict, and what a reader must know of the run."""
    defended = ", ".join(sentence(d) for d in defenses(run))
    headline = sentence(verdict.verdict([run]).headline)
    return {
        "headline": headline,
        "banners": list(_banners(run)),
        "run": shown(run.name),
        "defenses": defended,
    }


def _banners(run: RecordedRun) -> Iterator[tuple[str, str]]:
    if any(p.federation.lab for p in run.parties):
        yield "lab", "One owner holds all parties, and errors went back to the adversary."
    if any(p.federation.in_process for p in run.parties):
        yield "in-process", "Isolation between the parties is a convention, not security."
    yield from (("malicious", f"{sentence(broken)}.") for broken in run.malicious)
    for party in run.parties:
        if party.settings.insecure:
            yield "insecure", f"{shown(party.name)} allows addresses of other machines without TLS."
    for name, every in sampled(run).items():
        yield "sampled", f"{shown(name)} records the training messages of one epoch in {every}."
    if missing := absent(run):
        names = ", ".join(map(shown, missing))
        yield "not all folders", f"Those of {names} were not given: what only they know is not here."


def alarms(run: RecordedRun) -> Iterator[str]:
    """Where theory and measurement disagree, which attacks failed, and whose budget of ε is nearly spent."""
    yield from map(sentence, verdict.alarms([run]))
    for spent in run.privacy:
        budget, epsilon = spent.budget, spent.epsilon
        if budget and epsilon is not None and epsilon >= _NEAR * budget:
            yield (
                f"BUDGET: {shown(spent.party)} has spent ε = {number(epsilon)} of "
                f"{number(budget)} on {spent.unit}"
            )


def errors(run: RecordedRun) -> Document:
    """Errors of attacks on columns, what others find, and what each of these attacks does."""
    rows = [{**vars(r), "share": percent(r.relative)} for r in run.results]
    others = [
        (f, f"{subject(f)}, {'AUC' if f.quantity is Quantity.MEMBERS else 'named rightly'}")
        for f in run.findings.only(Quantity.LABELS, Quantity.MEMBERS, Quantity.SITES)
    ]
    affine = [
        (target, attack, explained_number(r2), percent(1 - r2))
        for (attack, target), r2 in run.explained.items()
    ]
    found = {"rows": rows, "explained": affine, "others": others}
    if not any(found.values()):
        return {}
    names = [r.attack for r in run.results] + [attack for attack, _ in run.explained]
    attacks = dict.fromkeys([*names, *(f.attack for f, _ in others)])
    summaries = {name: ATTACKS.summary(name) for name in attacks}
    return {"plots": list(charts.errors(run)), **found, "attacks": summaries}


def utility(run: RecordedRun) -> Document:
    """Figures of utility, the claims of defences, and the ε that was spent."""
    figures = [(UTILITY[name], number(value)) for name, value in run.utility.items()]
    found = {"figures": figures, "claims": list(_claims(run)), "spent": run.privacy}
    return found if any(found.values()) else {}


def originals(run: RecordedRun) -> Document:
    """The target's pictures beside reconstructions."""
    found = list(pictures([run], {run.name: run.name}))
    return {"blocks": found} if found else {}


def traffic(run: RecordedRun) -> Document:
    """The ledger; ``behind``: a long log is not read to its end yet."""
    return {**ledger(run), "behind": any(p.logs.behind for p in run.parties)}


def _claims(run: RecordedRun) -> Iterator[tuple[str, str, str]]:
    """Each configured defence: its party, its table in words and what it claims in words."""
    for party in run.parties:
        for table in party.settings.defenses:
            yield shown(party.name), sentence(describe(table)), _claimed(table)


def _claimed(table: Facts) -> str:
    plugin = installed_defense(str(table.get("name")))
    if plugin is None:
        return "not installed here"
    try:
        claim = plugin(**{k: v for k, v in table.items() if k != "name"}).claim({})
    except (ValidationError, KeyError):
        return "not known: its table does not fit"
    return ", ".join(_parts(claim)) or "nothing"


def _parts(claim: Claim) -> Iterator[str]:
    """What ``claim`` says, in words."""
    for field in fields(claim):
        value, name = getattr(claim, field.name), field.name.replace("_", " ")
        if value is True:
            yield name
        elif value is not None and value is not False:
            yield f"{name} {number(float(value))}"
