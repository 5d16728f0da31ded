"""One self-contained ``report.html`` from run folders: it opens offline and loads nothing.

A panel stands in the report only when its numbers exist. Party names, reasons and configurations are
untrusted text: the template escapes them, plotly's pseudo-HTML gets them escaped, and a content security
policy lets only the report's own two scripts run.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from experiments import verdict as v
from experiments.compare import masked
from experiments.folders import Crossing, PartyRun, Run, read_runs
from vfl.defense import GATE_HOOKS
from vfl.errors import DataError, PluginError, StorageError
from vfl.registry import ATTACKS, DEFENSES
from vfl.types import Array, Phase, Role

_TEMPLATES = Path(__file__).parent / "templates"
# Okabe and Ito's palette without black and yellow: told apart by the colour-blind, visible on light and dark.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = ("solid", "dot", "dashdot")
_GREY = "#808080"
_SCALE = [[0, "#7f2704"], [0.25, "#d94801"], [0.5, "#fd8d3c"], [0.75, "#fdd0a2"], [1, "#eef2f6"]]
_HOOKS = {point.value: hook for point, hook in GATE_HOOKS.items()}
_SAMPLES = 8  # pictures per run
_PROGRESS = ("train_seconds", "steps", "steps_per_second", "bytes_received", "bytes_per_step", "predict_rows")


def write_report(folders: Sequence[Path], out: Path) -> Path:
    """Write the report on the runs in ``folders`` to ``out`` (or into it, if it is a folder), all or nothing.

    Raises:
        ConfigError: two folders hold the same party of the same run.
        DataError: a folder is missing, holds no run, or is damaged.
        StorageError: ``out`` cannot be written.
    """
    page = render(read_runs(folders))
    file = out / "report.html" if out.is_dir() else out
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, page)
    except OSError as error:
        raise StorageError(
            f"the report {file} cannot be written ({error.strerror}): choose another place"
        ) from error
    return file


def render(runs: Sequence[Run]) -> str:
    """The report as HTML."""
    environment = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters.update(figure=v.figure, quantity=_quantity, sha256=_sha256)
    names = dict(zip((r.name for r in runs), v.labels(runs), strict=True))
    panels = {
        "heat_maps": list(_heat_maps(runs)),
        "features": list(_features(runs, names)),
        "pixel_maps": list(_pixel_maps(runs, names)),
        "convergence": list(_convergence(runs, names)),
        "loss": list(_loss(runs, names)),
    }
    return environment.get_template("report.html.j2").render(
        runs=runs,
        names=names,
        verdict=v.verdict(runs),
        best={r.name: next(iter(v.final(r)), None) for r in runs},
        numbers=v.result_table(runs),
        attacker=v.attacker(runs[v.baseline(runs)]),
        attacked=[v.named(runs[v.baseline(runs)], target) for target in _targets(runs)],
        attacks=_attacks(runs, names),
        grants=_grants(runs, names),
        traffic={r.name: rows for r in runs if (rows := _traffic(r))},
        pictures=list(_pictures(runs, names)),
        utility=_table(runs, {r.name: v.utility(r) for r in runs}),
        progress=_table(
            runs, {r.name: {k: x for k in _PROGRESS if (x := r.value(k)) is not None} for r in runs}
        ),
        reruns=[(r, p, _command(p), tomli_w.dumps(masked(p.config))) for r in runs for p in r.parties],
        in_process=_flagged(runs, names, "in_process"),
        lab=_flagged(runs, names, "lab"),
        absent={
            r.name: gone for r in runs if (gone := sorted(r.infos().keys() - {p.name for p in r.parties}))
        },
        plotly=_plotly() if any(panels.values()) else "",
        **panels,
    )


def _replace(file: Path, page: str) -> None:
    """Write beside ``file``, then rename: a reader sees the old report or the new one, never half of it."""
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".report-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(page)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _plotly() -> Markup:
    from plotly.offline import get_plotlyjs

    # The browser hashes what it parsed: with bare newlines, and not cut short by a closing tag in a string.
    return Markup(get_plotlyjs().replace("\r\n", "\n").replace("</script", "<\\/script"))


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode()


def _quantity(value: float | None, metric: str = "") -> str:
    """A number with its unit, by the metric's name: bytes, seconds, shares and counts."""
    if value is None:
        return "–"
    if "bytes" in metric:
        power = min(3, int(math.log(max(value, 1), 1000)))
        return f"{value / 1000**power:,.{1 if power else 0}f} {('B', 'kB', 'MB', 'GB')[power]}"
    if metric in ("steps", "predict_rows"):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if "second" in metric else v.figure(value)


def _table(runs: Sequence[Run], values: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Metric by run, without metrics and runs that have no number."""
    metrics = list(dict.fromkeys(k for by in values.values() for k in by))
    return {"metrics": metrics, "rows": {r.name: values[r.name] for r in runs if values[r.name]}}


def _flagged(runs: Sequence[Run], names: Mapping[str, str], flag: str) -> list[str]:
    """The runs in which a party says so in ``federation.json``."""
    return [names[r.name] for r in runs if any(getattr(p.federation, flag) for p in r.parties)]


def _attacks(runs: Sequence[Run], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every configured or scored attack: what it is, needs and reads, and why it did not run."""
    configured = [str(t.get("name", "?")) for r in runs for p in r.parties for t in p.settings.attacks]
    scored = [s.attack for r in runs for s in v.final(r)]
    skipped: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for m in run.metrics("skipped"):
            skipped.setdefault(m.attack, {}).setdefault(m.column, []).append(names[run.name])
    everything = dict.fromkeys([*configured, *scored, *skipped])
    return [{"name": a, "skipped": skipped.get(a, {}), **_declared(a)} for a in everything]


def _declared(attack: str) -> dict[str, Any]:
    try:
        plugin: Any = ATTACKS.get(attack)
    except PluginError:
        return {"summary": "not installed here", "needs": [], "phases": []}
    needs = sorted(k.replace("_", " ") for k in plugin.needs)
    return {
        "summary": ATTACKS.summary(attack),
        "needs": needs,
        "phases": [p for p in Phase if p in plugin.phases],
    }


def _grants(runs: Sequence[Run], names: Mapping[str, str]) -> dict[tuple[str, ...], list[str]]:
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


def _traffic(run: Run) -> list[dict[str, Any]]:
    return [{**asdict(c), "defended": _defended(run, c)} for p in run.parties for c in p.crossings()]


def _defended(run: Run, crossing: Crossing) -> str:
    """The defences of the sender that act on this kind of payload at its gate."""
    sender = next((p for p in run.parties if p.name == crossing.sender), None)
    if sender is None:
        return "not known: the sender's folder was not given"
    hook = _HOOKS.get(crossing.point)
    return (
        ", ".join(v.describe(t) for t in sender.settings.defenses if hook in _hooks(str(t.get("name"))))
        or "–"
    )


def _hooks(defense: str) -> frozenset[str]:
    try:
        plugin: Any = DEFENSES.get(defense)
    except PluginError:
        return frozenset()
    hooks: frozenset[str] = plugin.hooks()
    return hooks


def _pictures(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Per run and target: a row of images per sample; attacks stand in one order in all runs."""
    order = _ranking(runs)
    for run in runs:
        for party in (p for p in run.parties if p.role == Role.PASSIVE):
            pixels, arrays = _pixels(run, party.name), party.pictures()
            if not len(pixels) or not arrays:
                continue
            if arrays["original"].shape[1] != len(pixels):
                raise DataError(
                    f"{party.folder}/pictures.npz does not hold the party's columns: copy it anew"
                )
            yield {
                "label": names[run.name],
                "target": party.name,
                **_block(run, party, pixels, arrays, order),
            }


def _ranking(runs: Sequence[Run]) -> dict[str, int]:
    """The rank of each attack over all runs, the most successful first."""
    everything = sorted((r for run in runs for r in v.final(run)), key=lambda r: r.relative)
    return {attack: rank for rank, attack in enumerate(dict.fromkeys(r.attack for r in everything))}


def _block(
    run: Run, party: PartyRun, pixels: Array, arrays: Mapping[str, Array], order: Mapping[str, int]
) -> dict[str, Any]:
    shown = {"original": arrays["original"], "half": np.full_like(arrays["original"], 0.5)}
    shown |= {n.removeprefix("estimate:"): a for n, a in arrays.items() if n.startswith("estimate:")}
    attacks = sorted(shown.keys() - {"original", "half"}, key=lambda a: (order.get(a, len(order)), a))
    columns = ["original", "half", *attacks]
    errors = {r.attack: r for r in v.final(run) if (r.target, r.scored_set) == (party.name, "predict")}
    samples = enumerate(arrays["rows"][:_SAMPLES])
    rows = [(int(row), [_png(shown[c][i], pixels) for c in columns]) for i, row in samples]
    return {"heads": [(c, errors.get(c)) for c in columns], "rows": rows}


def _pixels(run: Run, target: str) -> Array:
    """(d, 2) places of the target's columns in their bounding box; empty unless all are pixels."""
    columns = run.infos()[target].columns if target in run.infos() else ()
    found = [c.pixel for c in columns if c.pixel is not None]
    if not found or len(found) < len(columns):
        return np.zeros((0, 2), np.int64)
    places: Array = np.array(found) - np.min(found, axis=0)
    return places


def _png(values: Array, pixels: Array) -> str:
    """A sample as a data URI: a pixel per column, clipped to [0, 1]; transparent where there is no column."""
    from PIL import Image

    canvas = np.zeros((*(pixels.max(axis=0) + 1), 2), np.uint8)
    canvas[pixels[:, 0], pixels[:, 1], 0] = np.rint(255 * np.clip(np.nan_to_num(values), 0, 1))
    canvas[pixels[:, 0], pixels[:, 1], 1] = 255
    stream = io.BytesIO()
    Image.fromarray(canvas).save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def _command(party: PartyRun) -> str:
    config = shlex.quote(f"{party.folder.parent.name}/{party.folder.name}/config.toml")
    return f"vflens serve {party.role or 'ROLE'} --config {config}"


# Figures: plotly's JSON as plain dictionaries; the page's script adds the theme.


def _plot(title: str, data: list[dict[str, Any]], height: int, **layout: Any) -> dict[str, Any]:
    return {"title": title, "height": height, "spec": {"data": data, "layout": {"height": height, **layout}}}


def _style(i: int) -> dict[str, str]:
    """The i-th line style: colours first, then the same colours dotted and dash-dotted."""
    return {"color": _COLOURS[i % len(_COLOURS)], "dash": _DASHES[i // len(_COLOURS) % len(_DASHES)]}


def _percent(relative: float) -> str:
    return f"{100 * relative:.0f} %" if math.isfinite(relative) else "–"


def _clipped(relative: float) -> float | None:
    return min(relative, 1.0) if math.isfinite(relative) else None


def _heat_maps(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """One attack × run map per target and scored set, the most successful attack on top."""
    by_place: dict[tuple[str, str], dict[str, dict[int, v.Result]]] = {}
    for i, run in enumerate(runs):
        for r in v.final(run):
            by_place.setdefault((r.target, r.scored_set), {}).setdefault(r.attack, {})[i] = r
    columns = [escape(label) for label in v.labels(runs)]
    for (target, scored_set), rows in by_place.items():
        attacks = sorted(rows, key=lambda a: min(r.relative for r in rows[a].values()))
        cells = [[rows[a].get(i) for i in range(len(runs))] for a in attacks]
        heat = {
            "type": "heatmap",
            "x": columns,
            "y": [escape(a) for a in attacks],
            "z": [[_clipped(c.relative) if c else None for c in row] for row in cells],
            "text": [[_percent(c.relative) if c else "" for c in row] for row in cells],
            "customdata": [[_hover(c) if c else "not scored" for c in row] for row in cells],
            "texttemplate": "%{text}",
            "hovertemplate": "<b>%{y}</b> · %{x}<br>%{customdata}<extra></extra>",
            **_scaled(),
        }
        layout = {"yaxis": {"autorange": "reversed"}, "xaxis": {"side": "top"}}
        yield _plot(f"{target}, {scored_set} rows", [heat], 90 + 34 * len(attacks), **layout)


def _scaled() -> dict[str, Any]:
    title = {"text": "of blind error", "font": {"size": 12}}
    bar = {"title": title, "tickformat": ".0%", "thickness": 12, "outlinewidth": 0}
    return {"zmin": 0, "zmax": 1, "colorscale": _SCALE, "colorbar": bar, "xgap": 2, "ygap": 2}


def _hover(r: v.Result) -> str:
    interval = f" ± {v.figure(r.half_width)} (95 %)" if r.half_width is not None else ""
    unusable = f"<br>{100 * r.unusable:.1f} % of rows flagged unusable" if r.unusable else ""
    return (
        f"MSE {v.figure(r.mse)}{interval} on {r.rows:,} rows<br>"
        f"best blind guess {v.figure(r.blind)} ({escape(r.blind_guess)}){unusable}"
    )


def _targets(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(r.target for run in runs for r in v.final(run)))


def _best_columns(
    runs: Sequence[Run], target: str
) -> Iterator[tuple[Run, v.Result, tuple[v.ColumnError, ...]]]:
    """Of each run, the most successful attack on ``target`` whose columns were scored."""
    for run in runs:
        for r in (r for r in v.final(run) if r.target == target):
            if columns := v.column_errors(run, r):
                yield run, r, columns
                break


def _features(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Per target: error by column of each run's best attack as bars, the blind errors as marks."""
    for target in _targets(runs):
        best = list(_best_columns(runs, target))
        if not best:
            continue
        bars: list[dict[str, Any]] = [
            {
                "type": "bar",
                "name": escape(f"{r.attack}, {names[run.name]}"),
                "x": [escape(c.column) for c in columns],
                "y": [c.mse for c in columns],
                "customdata": [f"{v.figure(c.mse)}, blind {v.figure(c.blind)}" for c in columns],
                "hovertemplate": "%{x}: %{customdata}",
                "marker": {"color": _style(i)["color"]},
            }
            for i, (run, r, columns) in enumerate(best)
        ]
        blind = {
            "type": "scatter",
            "mode": "markers",
            "name": "best blind guess",
            "x": bars[0]["x"],
            "y": [c.blind for c in best[0][2]],
            "hoverinfo": "skip",
            "marker": {"symbol": "line-ew-open", "size": 12, "color": _GREY, "line": {"width": 2}},
        }
        axes = {
            "yaxis": {"title": {"text": "MSE"}, "rangemode": "tozero"},
            "xaxis": {"type": "category", "showgrid": False},
        }
        yield _plot(target, [*bars, blind], 360, **axes)


def _pixel_maps(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The same errors where the columns are pixels, as an image per run."""
    for target in _targets(runs):
        for run, r, columns in _best_columns(runs, target):
            places = {c.name: c.pixel for c in run.infos()[target].columns} if target in run.infos() else {}
            shown = [(c, place) for c in columns if (place := places.get(c.column))]
            if len(shown) == len(columns):
                yield _pixel_map(f"{r.attack} on {target}, {names[run.name]}", shown)


def _pixel_map(title: str, shown: Sequence[tuple[v.ColumnError, tuple[int, int]]]) -> dict[str, Any]:
    heat = {
        "type": "heatmap",
        "x": [place[1] for _, place in shown],
        "y": [place[0] for _, place in shown],
        "z": [_clipped(c.relative) for c, _ in shown],
        "customdata": [f"{escape(c.column)}: {v.figure(c.mse)}, blind {v.figure(c.blind)}" for c, _ in shown],
        "hovertemplate": "%{customdata}<extra></extra>",
        **_scaled(),
        "showscale": False,
    }
    axis = {"visible": False, "showgrid": False, "zeroline": False}
    return _plot(title, [heat], 260, xaxis=axis, yaxis={**axis, "autorange": "reversed", "scaleanchor": "x"})


def _convergence(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Per run, target and scored set with several milestones: error by number of rows."""
    ranking = _ranking(runs)
    for run in runs:
        groups: dict[tuple[str, str], list[v.Result]] = {}
        for r in sorted(v.results(run), key=lambda r: r.rows):
            groups.setdefault((r.target, r.scored_set), []).append(r)
        for (target, scored_set), group in groups.items():
            if len({r.rows for r in group}) > 1:
                yield _milestones(f"{names[run.name]} · {target}, {scored_set} rows", group, ranking)


def _milestones(title: str, group: Sequence[v.Result], ranking: Mapping[str, int]) -> dict[str, Any]:
    attacks = sorted({r.attack for r in group}, key=lambda a: ranking[a])
    lines = [_line(a, [r for r in group if r.attack == a], _style(ranking[a])) for a in attacks]
    blind = {r.rows: r.blind for r in group}
    dashed = {"color": _GREY, "dash": "dash", "width": 2}
    lines.append({"type": "scatter", "mode": "lines", "name": "best blind guess", "line": dashed})
    lines[-1] |= {"x": list(blind), "y": list(blind.values())}
    # An attack without bounds can err a hundred times worse than blind: such a line may leave the frame.
    top = max(2 * max(blind.values()), 1.2 * min(r.mse for r in group))
    rows = {"type": "log", "title": {"text": "rows"}, "tickvals": list(blind)}
    return _plot(title, lines, 340, xaxis=rows, yaxis={"title": {"text": "MSE"}, "range": [0, top]})


def _line(attack: str, points: Sequence[v.Result], style: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(attack),
        "x": [r.rows for r in points],
        "y": [r.mse for r in points],
        "error_y": {"type": "data", "array": [r.half_width or 0 for r in points], "thickness": 1},
        "line": style,
    }


def _loss(runs: Sequence[Run], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The training loss (nats) by epoch, a line per run."""
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": escape(names[run.name]),
            "x": [m.step for m in losses],
            "y": [m.value if math.isfinite(m.value) else None for m in losses],
            "line": _style(i),
        }
        for i, run in enumerate(runs)
        if (losses := list(run.metrics("train_loss")))
    ]
    if lines:
        axes = {"xaxis": {"title": {"text": "epoch"}}, "yaxis": {"title": {"text": "training loss, nats"}}}
        yield _plot("training loss", lines, 300, **axes)
