"""An audit in plain words, as a table for the terminal, and as one self-contained page."""

from __future__ import annotations

from pathlib import Path

from vflens.experiments.audit import charts
from vflens.experiments.audit.charts import KINDS, named
from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.results.results import BLIND_GUESSES
from vflens.experiments.results.verdict import figure
from vflens.plugins.attack import installed_attack
from vflens.types import Facts, Knowledge

#: Below these shares of the blind error: what the strongest attack's error means.
_MEANING = (
    (0.05, "your columns are given away almost exactly"),
    (0.5, "most of what your columns hold leaks"),
    (0.9, "a part of what your columns hold leaks"),
)
_LITTLE = "hardly more than a blind guess has"


def sentences(found: Facts) -> list[str]:
    """The verdict: equations, bounds and what they cover, the strongest attack, the most exposed column."""
    return [_equations(found), _bounds(found), _strongest(found), _column(found)]


def recommendation(found: Facts) -> str:
    """The recommendation, from the measurements."""
    wanted, strongest = found["wanted"], found["strongest"]["mse"]
    aim = f"an error of at least {figure(wanted['least_error'])}"
    cost = f"an accuracy loss of at most {figure(wanted['most_loss'])}"
    if strongest >= wanted["least_error"]:
        return (
            f"No defence is needed for {aim} against the attacks above: "
            f"the strongest errs by {figure(strongest)}."
        )
    if not found["fitting"]:
        return (
            f"No installed defence reaches {aim} at {cost}: share fewer columns, ask for less, or stay out."
        )
    first, *others = found["fitting"]
    caution = (
        ""
        if first["attack"]
        else " No attack implemented here gets past it, which proves nothing about others."
    )
    more = f" So do, at more cost: {', '.join(map(named, others))}." if others else ""
    return (
        f"The cheapest installed defence with {aim} at {cost} is {named(first)}, switched on by "
        f"{first['at']}: "
        f"error {figure(first['mse'])}, {_loss(first['accuracy_loss'])}.{caution}{more}"
    )


def left_out(found: Facts) -> list[str]:
    """A sentence for each defence that could not be loaded, and each attack that failed."""
    absent = [f"Defence {name} is left out: {reason}." for name, reason in found["left_out"].items()]
    return absent + [f"Attack {name} failed: {reason}." for name, reason in found["failed"].items()]


def table(found: Facts) -> list[tuple[str, ...]]:
    """Attack, models, error, range over models (of one model: over rows), closed form, share of the blind
    error, what it knows; the strongest first.
    """
    rows = sorted(found["attacks"], key=lambda a: a["mse"])
    blind = found["blind"][found["blind_guess"]]
    body = [
        (
            a["attack"],
            _against(a, found["attacked_rows"]),
            figure(a["mse"]),
            f"{figure(a['low'])} … {figure(a['high'])}",
            figure(a["closed"]),
            _share(a["mse"], blind),
            _knows(a["attack"], found["known_rows"]),
        )
        for a in rows
    ]
    return [
        ("attack", "against", "MSE", "range", "closed form", "of blind", "knows besides the model"),
        *body,
    ]


def write_audit(found: Facts, out: Path) -> None:
    """Write the page to ``out``.

    Raises:
        StorageError: it cannot be written.
    """
    page = (
        templates(figure=figure)
        .get_template("audit.html.j2")
        .render(
            found=found,
            sentences=sentences(found),
            recommendation=recommendation(found),
            table=table(found),
            bounds_table=bounds_table(found),
            columns_table=columns_table(found),
            alarms=alarms(found),
            left_out=left_out(found),
            blind_words=BLIND_GUESSES,
            attacks_plot=charts.attacks_plot(found),
            columns_plot=charts.columns_plot(found),
            defenses_plot=charts.defenses_plot(found),
            named=named,
            plotly=plotly(),
        )
    )
    write_page(out, page)


def _equations(found: Facts) -> str:
    k, d, m = found["classes"], len(found["columns"]), found["equations"]
    given = (
        f"A model of {k} classes gives whoever knows its parameters {_count(m, 'equation')} about your "
        f"{_count(d, 'column')} "
        "with every prediction, even if training is secure"
    )
    if d <= m:
        return (
            f"{given}: enough to solve for all of them. Unless some repeat each other, or a defence acts, "
            "everything is recovered exactly."
        )
    return f"{given}."


def _bounds(found: Facts) -> str:
    trained = found["after_training"]
    if trained:
        said = (
            f"Against your trained model least squares errs by {figure(trained['ls']['mse'])} and half* by "
            f"{figure(trained['half_star']['mse'])}"
        )
    else:
        low = {name: figure(b["lower"]) for name, b in found["bounds"].items()}
        said = (
            f"For every model of full rank, least squares errs by at least {low['ls']} and half* by at least "
            f"{low['half_star']}"
        )
    return (
        f"{said} (mean squared error per column, columns scaled to [0, 1]). "
        "This bounds these two attacks and nothing stronger."
    )


def _strongest(found: Facts) -> str:
    best, guess = found["strongest"], found["blind_guess"]
    blind = found["blind"][guess]
    over = f"{best['models']} {KINDS[best['kind']]}" if best["models"] > 1 else "rows"
    spread = f" ({figure(best['low'])} to {figure(best['high'])} over {over})"
    share = best["mse"] / blind if blind else 1.0
    meaning = next((words for limit, words in _MEANING if share < limit), _LITTLE)
    knows = _knows(best["attack"], found["known_rows"])
    who = best["attack"] + (f", which knows {knows}" if knows != "–" else "")
    return (
        f"The strongest attack here, {who}, errs by {figure(best['mse'])}{spread}: "
        f"{_share(best['mse'], blind)} of the best "
        f"blind guess ({BLIND_GUESSES[guess]}, {figure(blind)}). In words: {meaning}."
    )


def _column(found: Facts) -> str:
    pairs = [
        (e / b, name, e, b)
        for name, e, b in zip(
            found["columns"], found["strongest"]["columns"], found["column_blind"], strict=True
        )
        if b > 0
    ]
    if not pairs:
        return "All columns are constant: there is nothing to protect."
    _, name, error, blind = min(pairs)
    return f"The most exposed column is {name}: error {figure(error)}, blind {figure(blind)}."


def _against(reached: Facts, rows: int) -> str:
    models = f"{reached['models']} " if reached["kind"] != "given" else ""
    few = f", {reached['rows']} rows each" if reached["rows"] < rows else ""
    return f"{models}{KINDS[reached['kind']]}{few}"


def _knows(attack: str, rows: int) -> str:
    plugin = installed_attack(attack)
    if plugin is None:
        return "–"
    known = [f"{rows} of your rows"] if Knowledge.MOMENTS in plugin.needs and rows else []
    known += ["the values your columns can take"] if Knowledge.METADATA in plugin.needs else []
    return " and ".join(known) or "–"


def _share(mse: float, blind: float) -> str:
    return f"{100 * mse / blind:.0f} %" if blind else "–"


def _loss(loss: float) -> str:
    return "accuracy unchanged" if abs(loss) < 0.0005 else f"accuracy loss {figure(loss)}"


def alarms(found: Facts) -> list[str]:
    """Sentences shown first: where theory and measurement disagree."""
    return [f"THEORY AND MEASUREMENT DISAGREE: {sentence}" for sentence in found["theory_disagreements"]]


def bounds_table(found: Facts) -> list[tuple[str, ...]]:
    """Theorem 2 on the attacked rows: errors of least squares and half* only."""
    header = ("covers only", "any model ≥", "any model ≤", "around any point ≥", "your trained model")
    after = found["after_training"]
    return [
        header,
        *(
            (
                f"{name}, unclipped",
                *(figure(b[bound]) for bound in ("lower", "upper", "any_center")),
                figure(after[name]["mse"] if after else None),
            )
            for name, b in found["bounds"].items()
        ),
    ]


def columns_table(found: Facts) -> list[tuple[str, ...]]:
    """Each column's error by the strongest attack and by the best blind guess; after training closed forms
    before them, with
    alphabets conditional entropy and entropy after them. [] where there is neither."""
    told, strongest = found["after_training"], found["strongest"]
    figures = {f"{name}, closed form": t["columns"] for name, t in told.items()}
    figures |= {strongest["attack"]: strongest["columns"], "blind": found["column_blind"]}
    if any(bits is not None for bits in found["column_entropy"]):
        figures |= {
            "H(X | X̂), bits": strongest["conditional_entropies"],
            "H(X), bits": found["column_entropy"],
        }
    elif not told:
        return []
    rows = zip(found["columns"], *figures.values(), strict=True)
    return [("column", *figures), *((name, *map(figure, values)) for name, *values in rows)]


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" + ("" if n == 1 else "s")
