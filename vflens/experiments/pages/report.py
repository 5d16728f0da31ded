"""One self-contained ``report.html`` from run folders: it opens offline and loads nothing.

A panel appears only if its numbers exist. Party names, reasons and configurations are untrusted text: the
template escapes them, also for plotly's pseudo-HTML, and a content security policy allows only the report's
own two scripts.
"""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from vflens.config.writing import toml_text
from vflens.errors import PluginError
from vflens.experiments.outcome.words import error, guessed, number
from vflens.experiments.pages import report_charts
from vflens.experiments.pages.adversary import adversary
from vflens.experiments.pages.ledger import ledger
from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.pages.pictures import pictures
from vflens.experiments.pages.plots import Plot
from vflens.experiments.results import verdict as v
from vflens.experiments.results.clear_training import explained_number, protected, untried
from vflens.experiments.results.compare import masked
from vflens.experiments.results.files import FederationFile
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.ledger import absent, in_bytes, sampled
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.results import NotRun
from vflens.experiments.results.titles import labels, targets
from vflens.experiments.results.utility import UTILITY
from vflens.models.family import (
    HORIZONTAL_IN_THE_CLEAR,
    IN_THE_CLEAR,
    SPLIT_IN_THE_CLEAR,
    SUMMED,
    checked_model,
)
from vflens.plugins.attack import installed_attack, up_to_renaming
from vflens.protocol.roles import SETTINGS
from vflens.registry import ATTACKS
from vflens.storage.metrics import Name
from vflens.types import Document, Phase, Setting

_PROGRESS = (
    *(Name.TRAIN_SECONDS, Name.STEPS, Name.STEPS_PER_SECOND),
    *(Name.BYTES_RECEIVED, Name.PREDICT_ROWS),
)


def write_report(folders: Sequence[Path], out: Path, runs: Sequence[RecordedRun] | None = None) -> Path:
    """Write the report on the runs in ``folders`` to ``out`` (or into it, if it is a folder), all or nothing.

    ``runs``: they, where they were read already.

    Raises:
        ConfigError: two folders hold the same party of the same run.
        DataError: a folder is missing, holds no run, or is damaged.
        StorageError: ``out`` cannot be written.
    """
    page = render(read_runs(folders) if runs is None else runs)
    file = out / "report.html" if out.is_dir() else out
    write_page(file, page)
    return file


def render(runs: Sequence[RecordedRun]) -> str:
    """The report as HTML."""
    template = templates(number=number, quantity=_quantity, error=error, guessed=guessed).get_template(
        "report.html.j2"
    )
    names = dict(zip((r.name for r in runs), labels(runs), strict=True))
    traffic = {r.name: found for r in runs if (found := ledger(r))["lines"]}
    panels = charts(runs)
    return template.render(
        runs=runs,
        names=names,
        **_headlines(runs, names),
        **_of_every_run(runs, names),
        **_states(runs, names),
        pictures=list(pictures(runs, names)),
        traffic=traffic,
        plotly=plotly() if any([*panels.values(), *(found["flows"] for found in traffic.values())]) else "",
        **panels,
    )


def charts(runs: Sequence[RecordedRun]) -> dict[str, list[Plot]]:
    """The page's charts but for those of the ledger, by panel."""
    names = dict(zip((r.name for r in runs), labels(runs), strict=True))
    return {
        "heat_maps": list(report_charts.heat_maps(runs)),
        "features": list(report_charts.features(runs, names)),
        "pixel_maps": list(report_charts.pixel_maps(runs, names)),
        "convergence": list(report_charts.convergence(runs, names)),
        "loss": list(report_charts.loss(runs, names)),
    }


def _headlines(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> Document:
    """The top of the page: the verdict; setting and threat model of the undefended run."""
    undefended = runs[v.baseline(runs)]
    return {
        "verdict": v.verdict(runs),
        "untried": untried(runs),
        "broken": [sentence for r in runs for sentence in v.broken(r, names[r.name])],
        "largest": {r.name: next(iter(r.largest), None) for r in runs},
        "explained_number": explained_number,
        "leaks": any(leak.taken > 0 for run in runs for leak in run.largest)
        or any(run.leaking_columns(target) for run in runs for target in targets([run])),
        "numbers": v.result_table(runs),
        "adversary": adversary(runs),
        "attacked": targets(runs),
        "attacks": _attacks(runs, names),
        "grants": _grants(runs, names),
        "in_the_clear": _in_the_clear(undefended),
        "protected": protected(undefended),
        "setting": SETTINGS[undefended.setting],
    }


def _of_every_run(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> Document:
    """Tables with a line for each run, or for each finding of a run."""
    columns = [(r, target) for r in runs for target in targets([r])]
    return {
        "clients": [(names[r.name], *found) for r in runs for found in r.clients],
        "utility_words": UTILITY,
        "utility": _table(runs, {r.name: r.utility for r in runs}),
        "progress": _table(runs, {r.name: _progress(r) for r in runs}),
        "worst_cases": [(names[r.name], case) for r in runs for case in r.worst_cases],
        "means": [(names[r.name], facts) for r in runs for facts in r.best_means],
        "own_units": [(names[r.name], error) for r in runs for error in r.best_own_units],
        "bits": [(names[r.name], target, bits) for r, target in columns for bits in r.column_bits(target)],
        "privacy": [(names[r.name], p) for r in runs for p in r.privacy],
        "releases": [(names[r.name], table) for r in runs for table in r.releases],
        "theory": [(names[r.name], c) for r in runs for c in r.theory],
        "fedadob": [(names[r.name], found) for r in runs for found in r.fedadob],
        "disorders": [(names[r.name], d) for r in runs for d in r.disorders],
        "labels": [(names[r.name], found) for r in runs for found in r.labels],
        "membership": [(names[r.name], found) for r in runs for found in r.membership],
        "clusterings": sorted(
            {found.attack for r in runs for found in r.labels if up_to_renaming(found.attack)}
        ),
    }


def _states(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> Document:
    """The runs' settings, and the files missing from their folders."""
    parties = [(r, p) for r in runs for p in r.parties]
    return {
        "reruns": [(r, p, _command(p), toml_text(p.config, masked)) for r, p in parties],
        "in_process": _flagged(runs, names, "in_process"),
        "lab": _flagged(runs, names, "lab"),
        "sampled": [(names[r.name], *found) for r in runs for found in sampled(r).items()],
        "absent": {r.name: missing for r in runs if (missing := absent(r))},
    }


def _quantity(value: float | None, metric: str = "") -> str:
    """A number with its unit, by the metric's name: bytes, seconds, shares and counts."""
    if value is None or not math.isfinite(value):
        return number(value)
    if "bytes" in metric:
        return in_bytes(value)
    if metric in (Name.STEPS, Name.PREDICT_ROWS):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if "second" in metric else number(value)


def _table(runs: Sequence[RecordedRun], values: Mapping[str, Mapping[str, float]]) -> Document:
    """Metric by run, without metrics and runs that have no number."""
    metrics = list(dict.fromkeys(k for by in values.values() for k in by))
    return {"metrics": metrics, "rows": {r.name: values[r.name] for r in runs if values[r.name]}}


def _progress(run: RecordedRun) -> dict[str, float]:
    """Steps and speed of training; bytes per step count all received bytes, also those of predictions."""
    found: dict[str, float | None] = {name: run.value(name) for name in _PROGRESS}
    received, steps = found[Name.BYTES_RECEIVED], found[Name.STEPS]
    found["bytes_per_step"] = received / steps if received is not None and steps else None
    return {name: value for name, value in found.items() if value is not None}


def _flagged(runs: Sequence[RecordedRun], names: Mapping[str, str], flag: str) -> list[str]:
    """The runs in which a party's ``federation.json`` has this flag."""
    return [names[r.name] for r in runs if any(getattr(p.federation, flag) for p in r.parties)]


def _attacks(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> list[Document]:
    """Every configured or scored attack: its description, needs and reads, and why it did not run."""
    configured = [str(t.get("name", "?")) for r in runs for p in r.parties for t in p.settings.attacks]
    scored = [s.attack for r in runs for s in r.results]
    absent = _reasons(runs, names, lambda r: r.skipped), _reasons(runs, names, lambda r: r.failed)
    everything = dict.fromkeys([*configured, *scored, *absent[0], *absent[1]])
    return [
        {"name": a, "skipped": absent[0].get(a, {}), "failed": absent[1].get(a, {}), **_declared(a)}
        for a in everything
    ]


def _reasons(
    runs: Sequence[RecordedRun], names: Mapping[str, str], kind: Callable[[RecordedRun], Sequence[NotRun]]
) -> dict[str, dict[str, list[str]]]:
    """Attack → reason → the runs in which it gave no estimate for it."""
    found: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for m in kind(run):
            found.setdefault(m.attack, {}).setdefault(m.reason, []).append(names[run.name])
    return found


def _declared(attack: str) -> Document:
    plugin = installed_attack(attack)
    if plugin is None:
        return {"summary": "not installed here", "needs": [], "phases": []}
    needs = sorted(k.replace("_", " ") for k in plugin.needs)
    return {
        "summary": ATTACKS.summary(attack),
        "needs": needs,
        "phases": [p for p in Phase if p in plugin.phases],
    }


def _grants(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> dict[tuple[str, ...], list[str]]:
    """(from, to, what, rows) of every configured disclosure, with the runs that have it."""
    grants: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        for party in run.parties:
            for d in party.settings.disclose:
                key = tuple(
                    str(x) for x in (party.name, d.get("to", "?"), d.get("what", "?"), d.get("rows") or "–")
                )
                grants.setdefault(key, []).append(names[run.name])
    return grants


def _in_the_clear(run: RecordedRun) -> str:
    """What training revealed in ``run`` by its messages: to the coordinator, the active and the passive
    parties.
    """
    known = next((p.federation for p in run.parties if p.federation.parties), None)
    return CLEAR[run.setting](known)


def _rounds_in_the_clear(known: FederationFile | None) -> str:
    settings = {} if known is None else known.horizontal
    if settings.get("method") == "splitfed":
        return SPLIT_IN_THE_CLEAR
    return SUMMED if settings.get("secure_aggregation") else HORIZONTAL_IN_THE_CLEAR


def _steps_in_the_clear(known: FederationFile | None) -> str:
    if known is None or known.model is None:
        return IN_THE_CLEAR
    try:
        return checked_model(known.model).in_the_clear(direct=known.aggregator == "active")
    except (PluginError, ValidationError):  # its package is not installed here
        return IN_THE_CLEAR


#: What training in each setting gives away, in words, as one party's ``federation.json`` tells.
CLEAR: Mapping[Setting, Callable[[FederationFile | None], str]] = {
    Setting.VERTICAL: _steps_in_the_clear,
    Setting.HORIZONTAL: _rounds_in_the_clear,
}


def _command(party: PartyRun) -> str:
    config = shlex.quote(f"{party.folder.parent.name}/{party.folder.name}/config.toml")
    return f"vflens serve {party.role or 'ROLE'} --config {config}"
