"""An audit in plain words, as a table for the terminal, and as one self-contained page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from vflens.experiments.audit import charts
from vflens.experiments.audit.advice import decision, findings, measure, protection, recommendation, wanted
from vflens.experiments.audit.charts import KINDS, named
from vflens.experiments.audit.defenses import reached
from vflens.experiments.outcome.words import counted_columns, in_own_unit, number, rows_of
from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.results.results import BLIND_GUESSES
from vflens.numerics.measures.rarity import RARE
from vflens.plugins.attack import installed_attack
from vflens.registry import ATTACKS
from vflens.storage.files import write_whole
from vflens.types import Facts, Knowledge, Phase
from vflens.words import counted

_TOLD = 6  # columns in a sentence


def sentences(found: Facts) -> list[str]:
    """The verdict: whether to join, how training is protected, which columns are found, the strongest attack;
    then equations, bounds and what they cover, and how well a number is predicted.
    """
    first = [decision(found), protection(found), columns_found(found), _strongest(found)]
    return [*first, _equations(found), _bounds(found), *predicted(found)]


def predicted(found: Facts) -> list[str]:
    """How well the planned models predict a known numeric label, in its unit, and what was assumed of it."""
    if not (found["label"] and found["real_labels"]):
        return []
    worth = {name: (figure["mean"], figure["half"]) for name, figure in found["utility"].items()}
    r2, alone = ("{} ± {}".format(*map(number, worth[name])) for name in ("r2", "r2_alone"))
    beside = f" ({alone} by the other party alone)" if found["real_others"] else ""
    return [
        f"On rows that did not train them the planned models predict {found['label']['name']} with an R² of "
        f"{r2}{beside}: to within ± {in_own_unit(worth['rmse'][0])} (root mean squared error, in its unit).",
        *filter(None, [found["label"]["assumed"]]),
    ]


def worst_cases(found: Facts) -> list[str]:
    """A sentence for each worst case, and one on what counts as found."""
    if not found["worst_cases"]:
        return []
    widths = [f"{name} {in_own_unit(width)}" for name, width in found["tolerance"].items()]
    more = ", …" if len(widths) > _TOLD else ""
    said = [_worst_case(case) for case in found["worst_cases"]]
    return [
        *said,
        f"An answer counts as found where it is off by at most: {', '.join(widths[:_TOLD])}{more}.",
    ]


def _worst_case(case: Facts) -> str:
    rows, exposed = f"{case['rows']:,} {rows_of(case['scored_set'])}", number(case["exposed_mse"])
    return (
        f"Worst case of {rows}: {case['words']}. The most exposed 1 % of them: mean squared error {exposed}."
    )


def left_out(found: Facts) -> list[str]:
    """A sentence for each defence that could not be loaded."""
    return [f"Defence {name} is left out: {reason}." for name, reason in found["left_out"].items()]


def failed(found: Facts) -> list[str]:
    """A sentence for each attack that failed."""
    return [f"Attack {name} failed: {reason}." for name, reason in found["failed"].items()]


def table(found: Facts) -> list[tuple[str, ...]]:
    """Attack, models, error, range over models (of one model: over rows), closed form of unclipped answers,
    share of the blind error; the strongest first.
    """
    rows = sorted(found["attacks"], key=lambda a: a["mse"])
    blind = found["blind"][found["blind_guess"]]
    body = [
        (
            a["attack"],
            _against(a, found["attacked_rows"]),
            number(a["mse"]),
            f"{number(a['low'])} … {number(a['high'])}",
            number(a["closed"]),
            _share(a["mse"], blind),
        )
        for a in rows
    ]
    return [("attack", "against", "MSE", "range", "closed form, unclipped", "of blind"), *body]


def explained(found: Facts) -> dict[str, str]:
    """Attack → what it does, and what it knows besides the model; the strongest first."""
    names = dict.fromkeys(a["attack"] for a in sorted(found["attacks"], key=lambda a: a["mse"]))
    return {name: " ".join(_explained(name, found["known_rows"])) for name in names}


def _explained(attack: str, rows: int) -> Iterator[str]:
    yield ATTACKS.summary(attack)
    if knows := _knows(attack, rows):
        yield f"It knows {knows}."


def exposed_file(out: Path) -> Path:
    """Where the most exposed rows stand, beside the page ``out``: for the party alone."""
    return out.with_suffix(".exposed.json")


def write_exposed(exposed: Facts, out: Path) -> None:
    """Write the ids of the most ``exposed`` rows beside the page ``out``, for its owner alone.

    Raises:
        StorageError: they cannot be written.
    """
    write_whole(exposed_file(out), json.dumps(exposed).encode(), 0o600)


def write_audit(found: Facts, out: Path) -> None:
    """Write the page to ``out``.

    Raises:
        StorageError: it cannot be written.
    """
    page = (
        templates(number=number)
        .get_template("audit.html.j2")
        .render(
            found=found,
            sentences=sentences(found),
            recommendation=recommendation(found),
            table=table(found),
            bounds_table=bounds_table(found),
            columns_table=columns_table(found),
            explained=explained(found),
            measure=measure(found),
            wanted=wanted(found),
            may_join=bool(found["fitting"])
            or reached(found["wanted"], found["strongest"]["mse"], found["leak"]),
            alarms=alarms(found),
            worst_cases=worst_cases(found),
            exposed_file=exposed_file(out).name,
            left_out=[*left_out(found), *failed(found)],
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
    d, m = len(found["columns"]), found["equations"]
    of = "a number" if found["label"] else counted(found["classes"], "class")
    raw = ", audited by the outputs as they leave, without a softmax," if found.get("raw_outputs") else ""
    what = "one-hot and other column" if found["categories"] else "column"
    given = (
        f"A model of {of}{raw} gives whoever knows its parameters {counted(m, 'equation')} about "
        f"your {counted(d, what)} "
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
        ls, half_star = (number(trained[name]["mse"]) for name in ("ls", "half_star"))
        said = f"Against your trained model the answers of least squares err by {ls} and those of half* by "
        said += half_star
    else:
        ls, half_star = (number(found["bounds"][name]["lower"]) for name in ("ls", "half_star"))
        said = (
            f"For every model of full rank, the answers of least squares err by at least {ls} and those of "
        )
        said += f"half* by at least {half_star}"
    return (
        f"{said} before they are clipped to the range of each column (mean squared error per column, columns "
        "scaled to [0, 1]). This bounds these two attacks and nothing stronger."
    )


def _strongest(found: Facts) -> str:
    best, guess = found["strongest"], found["blind_guess"]
    blind = found["blind"][guess]
    over = f"{best['models']} {KINDS[best['kind']]}" if best["models"] > 1 else "rows"
    spread = f"{number(best['low'])} to {number(best['high'])} over {over}"
    knows = _knows(best["attack"], found["known_rows"])
    beside = f"{_share(best['mse'], blind)} of" if blind else "beside"
    who = best["attack"] + (f", which knows {knows}" if knows else "")
    return (
        f"The strongest attack here, {who}: its mean squared error over all columns is {number(best['mse'])} "
        f"({spread}), {beside} that of the best blind guess ({BLIND_GUESSES[guess]}, {number(blind)})."
    )


def columns_found(found: Facts) -> str:
    """How many columns are found and which not, and how many of the table's rows were read."""
    if not any(found["column_blind"]):
        return f"All columns are constant: there is nothing to protect. {rows_read(found)}"
    return f"{counted_columns(findings(found))}. {rows_read(found)}"


def rows_read(found: Facts) -> str:
    """How many of the table's rows the figures are from."""
    read, there = found["rows"], found["table_rows"]
    if read == there:
        return f"Read: all {counted(there, 'row', ',')}."
    whole = counted(there, "row", ",")
    return f"Read: {read:,} of {whole}, drawn at random, with up to {RARE} of each rare value."


def _against(reached: Facts, rows: int) -> str:
    kind = reached["kind"]
    models = KINDS[kind] if kind == "given" else counted(reached["models"], f"{kind} model")
    training = "training " if reached["phase"] == Phase.TRAIN else ""
    each = " each" if reached["models"] > 1 else ""
    few = f", {reached['rows']} {training}rows{each}" if reached["rows"] < rows else ""
    return f"{models}{few}"


def _knows(attack: str, rows: int) -> str:
    """What ``attack`` knows besides the model, ``rows`` of the party's among it; "" of nothing."""
    plugin = installed_attack(attack)
    if plugin is None:
        return ""
    known = ["the messages of training"] if Knowledge.EMBEDDINGS in plugin.needs else []
    known += ["as many of your rows as fix an affine map"] if plugin.up_to_affine else []
    granted = plugin.needs & {Knowledge.MOMENTS, Knowledge.AUXILIARY}
    known += [f"{rows} of your rows"] if granted and rows else []
    known += ["the values your columns can take"] if Knowledge.METADATA in plugin.needs else []
    return " and ".join(known)


def _share(mse: float, blind: float) -> str:
    return f"{100 * mse / blind:.0f} %" if blind else "–"


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
                *(number(b[bound]) for bound in ("lower", "upper", "any_center")),
                number(after[name]["mse"] if after else None),
            )
            for name, b in found["bounds"].items()
        ),
    ]


def columns_table(found: Facts) -> list[tuple[str, ...]]:
    """Each column under the attack that takes most of it, in its own unit beside a blind guess, the most
    exposed first; after training with closed forms, with alphabets with entropies of the strongest attack.
    """
    told, strongest = found["after_training"], found["strongest"]
    figures = {f"{name}, closed form": t["columns"] for name, t in told.items()}
    if any(bits is not None for bits in found["column_entropy"]):
        figures["H(X | X̂), bits"] = strongest["conditional_entropies"]
        figures["H(X), bits"] = found["column_entropy"]
    rows = [
        (
            *(own[key] for key in ("column", "found", "guessed")),
            f"{100 * own['share']:.0f} %",
            own["attack"] if own["share"] else "–",
            *(number(figure_of(own, values, found)) for values in figures.values()),
        )
        for own in found["own_units"]
    ]
    return [("column", "found", "blind guess", "taken", "attack", *figures), *rows]


def figure_of(own: Facts, values: Sequence[float | None], found: Facts) -> float | None:
    """That of a whole column among ``values`` by column; None of one-hot columns, of which each has one."""
    name = own["column"]
    return None if name in found["categories"] else values[found["columns"].index(name)]


def in_short(found: Facts) -> list[str]:
    """What the terminal says first: whether to join and why, what failed, and what helps."""
    verdict = sentences(found)
    return [*alarms(found), *verdict[:3], *predicted(found), *failed(found), "", recommendation(found)]


def in_detail(found: Facts) -> list[str]:
    """What each attack is, the strongest one, bounds, worst cases, and the defences left out."""
    attacks = [f"{name}: {words}" for name, words in explained(found).items()]
    return [*attacks, "", *sentences(found)[3:6], *worst_cases(found), *left_out(found)]
