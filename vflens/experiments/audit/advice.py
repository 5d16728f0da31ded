"""What an audit says of training, and what it recommends: judged by all attacks that ran."""

from __future__ import annotations

from vflens.experiments.audit.bench import MOST_COLUMNS
from vflens.experiments.audit.charts import named
from vflens.experiments.results.clear_training import given_away
from vflens.experiments.results.verdict import number
from vflens.types import Facts, Phase

_SECURE = "These figures hold only if nobody sees the messages of training."


def protection(found: Facts) -> str:
    """How training is protected, and what it gives away where it is not."""
    if found["training"] == "secure":
        return f"{_SECURE} No vertical federation of VFLens trains that way."
    if not (read := _of_training(found)):
        return (
            "Training is in the clear, and what it gives away was not measured: expect every training row of "
            "yours to be found."
        )
    best = min(read, key=lambda a: a["mse"])
    blind = found["blind"][found["blind_guess"]]
    words = given_away(1 - best["mse"] / blind if blind else 0.0)
    return f"Training is in the clear: whoever reads its messages finds {words} ({best['attack']})."


def recommendation(found: Facts) -> str:
    """The recommendation, from the measurements of all attacks that ran, those of training too."""
    clear, read = found["training"] == "clear", _of_training(found)
    if clear and not read:
        return (
            "Nothing can be recommended while it was not measured what training in the clear gives away: "
            f"name at most {MOST_COLUMNS} columns, or give --training secure if nobody sees its messages."
        )
    least, strongest = found["wanted"]["least_error"], found["strongest"]["mse"]
    if strongest >= least:
        said = (
            f"No defence is needed for {_aim(found)} against the attacks above: the strongest errs by "
            f"{number(strongest)}."
        )
    elif found["fitting"]:
        said = _cheapest(found)
    elif any(a["mse"] < least for a in read):
        said = (
            f"While training is in the clear no installed defence reaches {_aim(found)} at {_cost(found)}: "
            "protect training, share fewer columns, or stay out. What helps once training is protected: "
            "--training secure."
        )
    else:
        said = (
            f"No installed defence reaches {_aim(found)} at {_cost(found)}: share fewer columns, ask for "
            "less, or stay out."
        )
    return said if clear else f"{_SECURE} {said}"


def _cheapest(found: Facts) -> str:
    first, *others = found["fitting"]
    more = f" So do, at more cost: {', '.join(map(named, others))}." if others else ""
    return (
        f"The cheapest installed defence with {_aim(found)} at {_cost(found)} is {named(first)}, switched on "
        f"by {first['at']}: error {number(first['mse'])}, {_loss(first['accuracy_loss'])}.{_unbeaten(first)}"
        f"{more}"
    )


def _unbeaten(defended: Facts) -> str:
    """Which attacks ran against a defence that none of them beats."""
    if defended["attack"]:
        return ""
    if not defended["tried"]:
        ran = "No attack here could run against it: all lack what it withholds, or are slow"
    else:
        ran = f"Against it ran {', '.join(defended['tried'])}, none better than a blind guess"
    return f" {ran}. This proves nothing about other attacks."


def _of_training(found: Facts) -> list[Facts]:
    """The attacks on training in the clear."""
    return [a for a in found["attacks"] if a["phase"] == Phase.TRAIN]


def _aim(found: Facts) -> str:
    return f"an error of at least {number(found['wanted']['least_error'])}"


def _cost(found: Facts) -> str:
    return f"an accuracy loss of at most {number(found['wanted']['most_loss'])}"


def _loss(loss: float) -> str:
    return "accuracy unchanged" if abs(loss) < 0.0005 else f"accuracy loss {number(loss)}"
