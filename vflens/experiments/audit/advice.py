"""Whether to join, and with what: an audit's first sentence and its advice, by all attacks that ran."""

from __future__ import annotations

from collections.abc import Sequence

from vflens.experiments.audit.bench import MOST_COLUMNS
from vflens.experiments.audit.charts import named
from vflens.experiments.audit.defenses import reached
from vflens.experiments.results.clear_training import given_away
from vflens.experiments.results.verdict import number
from vflens.models.settings import ON_SHARES
from vflens.types import Facts, Phase

_SECURE = "These figures hold only if nobody sees the messages of training."
_NAMED = 3  # defences in a sentence


def decision(found: Facts) -> str:
    """The first sentence: join as planned, join with a defence, or not as planned; against what is wanted."""
    clear = found["training"] == "clear"
    if clear and not _of_training(found):
        return "No advice yet: training is in the clear, and what it gives away was not measured."
    condition = "" if clear else ", if nobody sees the messages of training"
    strongest, column = found["strongest"], found["own_units"][0]["column"]
    if reached(found["wanted"], strongest["mse"], found["leak"]):
        return f"Join as planned{condition}: {takes(found, strongest, found['leak'], column)}."
    if found["fitting"]:
        first = found["fitting"][0]
        told = takes(found, first, first["leak"], first["column"])
        return f"Join with {named(first)}{condition}: {told}; {first['price']}."
    told = takes(found, strongest, found["leak"], column)
    return f"Do not join as planned: {told}, and no installed defence that is worth its cost mends it."


def takes(found: Facts, measured: Facts, leak: float, column: str) -> str:
    """What the strongest attack takes of ``column``, or its error as ``measured``, beside what is wanted."""
    wanted = found["wanted"]
    least, most = wanted["least_error"], wanted["most_leak"]
    asked = f"you allow {_percent(most)} of a column" if least is None else f"you ask for {number(least)}"
    if not measured.get("tried", True):  # what nothing defends is always tried
        return f"no attack here could run against it ({asked})"
    if least is not None:
        return f"the strongest attack that ran errs by {number(measured['mse'])} ({asked})"
    if not leak:
        return f"no attack that ran is better than a blind guess ({asked})"
    return f"an attack takes {_beside(leak, most)} of what a blind guess leaves open of {column} ({asked})"


def protection(found: Facts) -> str:
    """How training is protected, and what it gives away where it is not."""
    if found["training"] == "secure":
        return (
            f"{_SECURE} A federation of VFLens trains that way with training.protection = 'shares', "
            f"{ON_SHARES} only."
        )
    if not (read := _of_training(found)):
        return (
            "Training is in the clear, and what it gives away was not measured: expect every training row of "
            "yours to be found."
        )
    best = min(read, key=lambda a: (a["attack"] != found["strongest"]["attack"], a["mse"]))  # one name for it
    blind = found["blind"][found["blind_guess"]]
    words = given_away(1 - best["mse"] / blind if blind else 0.0)
    return f"Training is in the clear: whoever reads its messages finds {words} ({best['attack']})."


def recommendation(found: Facts) -> str:
    """What helps and what it costs, from the measurements of all attacks that ran, those of training too."""
    clear, read = found["training"] == "clear", _of_training(found)
    if clear and not read:
        return (
            "Nothing can be recommended while it was not measured what training in the clear gives away: "
            f"name at most {MOST_COLUMNS} columns, or give --training secure if nobody sees its messages."
        )
    if reached(found["wanted"], found["strongest"]["mse"], found["leak"]):
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
    return said + _unpaid(hiding)


def _unpaid(hiding: Sequence[Facts]) -> str:
    """The defences that hide enough and cost too much, or of which the cost is open."""
    if not hiding:
        return ""
    each = "; ".join(f"{named(d)}: {d['price']}" for d in hiding[:_NAMED])
    return f" Enough is hidden by {each}."


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
    if not defended["tried"]:
        ran = "No attack here could run against it: all lack what it withholds, or are slow"
    else:
        ran = f"Against it ran {', '.join(defended['tried'])}, none better than a blind guess"
    return f" {ran}. Other attacks may do better."


def _of_training(found: Facts) -> list[Facts]:
    """The attacks on training in the clear."""
    return [a for a in found["attacks"] if a["phase"] == Phase.TRAIN]


def _aim(found: Facts) -> str:
    wanted = found["wanted"]
    if wanted["least_error"] is not None:
        return f"an error of at least {number(wanted['least_error'])}"
    return f"a leak of at most {_percent(wanted['most_leak'])} of a column"


def _cost(found: Facts) -> str:
    return f"a cost of at most {number(found['wanted']['most_loss'])} {measure(found)}"


def measure(found: Facts) -> str:
    """What a defence's cost is measured in."""
    return next((d["cost"]["measure"] for d in found["defenses"] if d["cost"]), "accuracy")


def wanted(found: Facts) -> str:
    """What the party asks for, in words."""
    return f"{_aim(found)}, at {_cost(found)}"


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 1 or not share else f"{percent:.1g} %"


def _beside(share: float, allowed: float) -> str:
    """A share in per cent beside what is ``allowed``, also where it is over it and would print as that."""
    over = share > allowed and _percent(share) == _percent(allowed)
    return f"more than {_percent(allowed)}" if over else _percent(share)
