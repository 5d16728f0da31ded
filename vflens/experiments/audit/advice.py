"""Whether to join, and with what: an audit's first sentence and its advice, by all attacks that ran."""

from __future__ import annotations

from collections.abc import Sequence

from vflens.errors import ConfigError
from vflens.experiments.audit.bench import MOST_COLUMNS, Plan
from vflens.experiments.audit.charts import named
from vflens.experiments.audit.defenses import reached
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding
from vflens.experiments.outcome.words import number, percent, title
from vflens.models.settings import ON_SHARES
from vflens.score.service import MIN_ROWS
from vflens.types import Facts, Phase
from vflens.words import counted

#: Seconds of a core, measured on 10 models and 1,000 rows: of all, of each model, of a column of a model.
_BASE, _MODEL, _COLUMN = 10.0, 1.0, 0.05
_SHARES = 1.5  # of the work that training in the clear adds
_BYTES, _LOADED = 24, 200  # of a cell while it is read; MiB of the program
_MOST_MADE = 3  # columns of the file
_SECURE = "These figures hold only if nobody sees the messages of training."
_NAMED = 3  # defences in a sentence


def decision(found: Facts) -> str:
    """The first sentences: who reads what, how exactly, beside a guess; then whether to join: as planned,
    with a defence, or not as planned, against what is wanted.
    """
    clear = found["training"] == "clear"
    if clear and not _of_training(found):
        return "No advice yet: training is in the clear, and what it gives away was not measured."
    condition = "" if clear else ", if nobody sees the messages of training"
    if doubt := doubts(found):
        return f"No advice yet: {doubt}."
    if reached(found["wanted"], found["strongest"]["mse"], found["leak"]):
        return f"{headline(found)}Join as planned{condition}: {takes(found, found['worst_model'])}."
    if found["fitting"]:
        first = found["fitting"][0]
        return (
            f"{headline(found)}Join with {named(first)}{condition}: {takes(found, first)} then; "
            f"{first['price']}."
        )
    return (
        f"{headline(found)}Do not join as planned: {takes(found, found['worst_model'])}, and no defence here "
        "stops an attack made for it at a cost that you allow."
    )


def doubts(found: Facts) -> str:
    """Why the rows read decide nothing; "" where they do, or leak too much whatever is added."""
    if not reached(found["wanted"], found["strongest"]["mse"], found["leak"]):
        return ""
    columns = findings(found)
    if columns[0].rows < MIN_ROWS:
        return f"{counted(columns[0].rows, 'row')} attacked decide nothing, at least {MIN_ROWS} do"
    unread = [f for f in columns if not f.varies and f.deciding]
    if not unread:
        return ""
    names = ", ".join(f.subject for f in unread[:_NAMED]) + (", …" if len(unread) > _NAMED else "")
    hardly = f"hardly var{'y' if len(unread) > 1 else 'ies'} in the {counted(found['rows'], 'row', ',')} read"
    needed = max(f.rows_needed for f in unread)
    return f"{names} {hardly} of {found['table_rows']:,}, --rows {needed} would decide"


def findings(found: Facts) -> list[Finding]:
    """What is found of each column, the most exposed first."""
    return [Finding.of_json(own["finding"]) for own in found["own_units"]]


def headline(found: Facts) -> str:
    """Who reads the most exposed column, how exactly, beside a guess; with a space behind it."""
    best = findings(found)[0]
    if best.state is State.FOUND:
        return f"{title(best)} "
    if best.state is State.UNDECIDED:
        return "Whether an attack that ran beats a guess is not decided. "
    return "No attack that ran finds a column better than a guess. "


def takes(found: Facts, measured: Facts) -> str:
    """How much of its worst column a model gives away, or the error as ``measured``, beside what is wanted.

    Of several models the 95 % quantile, which holds in 19 of 20.
    """
    least, most = found["wanted"]["least_error"], found["wanted"]["most_leak"]
    if least is not None:
        error = number(measured["mse"])
        return f"the strongest attack that ran errs by {error} (you ask for {number(least)})"
    leak, models = measured["leak"], measured.get("models", 2)
    alone = leak and measured["alike"] == 1.0
    which = f"the worst column, {measured['column']}," if alone else "the worst column"
    where = "in 19 of 20 simulated models " if models > 1 else ""
    much = _beside(leak, most)
    return f"{where}{which} gives away {much} of what a guess leaves open (you allow {percent(most)})"


def protection(found: Facts) -> str:
    """How training is protected, and what it gives away where it is not."""
    if found["training"] == "secure":
        return (
            f"{_SECURE} A federation of VFLens trains that way with training.protection = 'shares', "
            f"{ON_SHARES} only."
        )
    if not _of_training(found):
        return (
            "Training is in the clear, and what it gives away was not measured: expect every training row of "
            "yours to be found."
        )
    columns = findings(found)
    count = sum(f.state is State.FOUND and f.scored_set == Phase.TRAIN for f in columns)
    return (
        f"Training is in the clear: whoever reads its messages finds {count} of "
        f"{counted(len(columns), 'column')} better than a guess."
    )


def recommendation(found: Facts) -> str:
    """What helps and what it costs, from the measurements of all attacks that ran, those of training too."""
    clear, read = found["training"] == "clear", _of_training(found)
    if clear and not read:
        return (
            "Nothing can be recommended while it was not measured what training in the clear gives away: "
            f"name at most {MOST_COLUMNS} columns, or give --training secure if nobody sees its messages."
        )
    if doubts(found):
        said = "Nothing can be recommended before more rows were read."
    elif reached(found["wanted"], found["strongest"]["mse"], found["leak"]):
        said = f"No defence is needed against the attacks above, for {_aim(found)}."
    elif found["fitting"]:
        said = _cheapest(found)
    else:
        said = _none(found, in_training=any(_leaks(found, a) for a in read))
    return said if clear else f"{_SECURE} {said}"


def _leaks(found: Facts, attack: Facts) -> bool:
    """Whether one attack alone takes more than is wanted."""
    return not reached(found["wanted"], attack["mse"], attack["leak"])


def _none(found: Facts, *, in_training: bool) -> str:
    """Nothing fits: why, and what is left to do."""
    what = f"reaches {_aim(found)} at {_cost(found)}"
    if in_training:
        said = (
            f"While training is in the clear no installed defence {what}: protect training "
            "(training.protection = 'shares'), share fewer columns, or stay out. What helps once training is "
            "protected: --training secure."
        )
    else:
        said = f"No installed defence {what}: share fewer columns, ask for less, or stay out."
    hiding = [d for d in found["defenses"] if d["mse"] is not None and not _leaks(found, d)]
    return said + _unpaid([d for d in hiding if not d["untested"]]) + untested(found)


def _unpaid(hiding: Sequence[Facts]) -> str:
    """The defences that hide enough and cost too much, or of which the cost is open."""
    if not hiding:
        return ""
    each = "; ".join(f"{named(d)}: {d['price']}" for d in hiding[:_NAMED])
    return f" Enough is hidden by {each}."


def untested(found: Facts) -> str:
    """The defences of which nobody can say what they hide, since no attack that knows them ran."""
    names = dict.fromkeys(d["defense"] for d in found["defenses"] if d["untested"] and not _leaks(found, d))
    if not names:
        return ""
    return f" Not tested, since no attack made for them ran: {', '.join(names)}."


def _cheapest(found: Facts) -> str:
    first, *others = found["fitting"]
    more = f" So do, at no less cost: {', '.join(map(named, others))}." if others else ""
    return (
        f"The cheapest installed defence with {_aim(found)} at {_cost(found)} is {named(first)}, switched on "
        f"by {first['at']}: error {number(first['mse'])}, {first['price']}; the federation still gains "
        f"{first['gain']} over the other party alone.{_unbeaten(first)}{more}"
    )


def _unbeaten(defended: Facts) -> str:
    """Which attacks ran against a defence that none of them beats."""
    if defended["attack"]:
        return ""
    ran = f"Against it ran {', '.join(defended['tried'])}, none better than a blind guess"
    return f" {ran}. Other attacks may do better."


def _of_training(found: Facts) -> list[Facts]:
    """The attacks on training in the clear."""
    return [a for a in found["attacks"] if a["phase"] == Phase.TRAIN]


def _aim(found: Facts) -> str:
    wanted = found["wanted"]
    if wanted["least_error"] is not None:
        return f"an error of at least {number(wanted['least_error'])}"
    return f"a leak of at most {percent(wanted['most_leak'])} of a column"


def _cost(found: Facts) -> str:
    return f"a cost of at most {number(found['wanted']['most_loss'])} {measure(found)}"


def measure(found: Facts) -> str:
    """What a defence's cost is measured in."""
    return next((d["cost"]["measure"] for d in found["defenses"] if d["cost"]), "accuracy")


def wanted(found: Facts) -> str:
    """What the party asks for, in words."""
    return f"{_aim(found)}, at {_cost(found)}"


def _beside(share: float, allowed: float) -> str:
    """A share in per cent beside what is ``allowed``, also where it is over it and would print as that."""
    if share > allowed and percent(share) == percent(allowed):
        return f"up to just over {percent(allowed)}"
    return f"{'up to' if share > allowed else 'at most'} {percent(share)}"


def cost(subject: AuditSubject, plan: Plan) -> str:
    """How many columns, models, minutes of a core and MiB, about."""
    rows, columns = subject.x.shape
    clear = plan.training == "clear" and columns <= MOST_COLUMNS
    part = min(rows, plan.rows) / 1000 * (1 + _SHARES * clear)
    seconds = _BASE + plan.models * (_MODEL + _COLUMN * columns) * part
    mib = _LOADED + rows * columns * _BYTES / 2**20
    minutes = counted(max(1, round(seconds / 60)), "minute")
    return (
        f"{counted(columns, 'column', ',')}, {counted(2 * plan.models, 'model', ',')}, about {minutes} of a "
        f"core and {mib:,.0f} MiB"
    )


def check_advice(subject: AuditSubject, plan: Plan) -> None:
    """Refuse what cannot end with advice: training in the clear is measured up to 128 columns.

    Raises:
        ConfigError: says which columns make most.
    """
    columns = len(subject.columns)
    if plan.training != "clear" or columns <= MOST_COLUMNS:
        return
    widest = sorted(subject.whole, key=lambda whole: -len(whole[1]))[:_MOST_MADE]
    made = ", ".join(f"{name} makes {len(places):,}" for name, places in widest if len(places) > 1)
    raise ConfigError(
        f"{subject.name} has {counted(columns, 'column', ',')}, training in the clear is measured up to "
        f"{MOST_COLUMNS}{f' ({made})' if made else ''}, and without it no advice follows: name fewer with "
        "--columns, or give --training secure if nobody sees its messages; --yes goes on all the same"
    )
