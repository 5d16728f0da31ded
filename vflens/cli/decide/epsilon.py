"""``vflens epsilon``: a lower bound of ε, measured with canaries, beside the ε that is claimed."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from vflens.cli.output import Json, emit
from vflens.errors import ConfigError, ThresholdError, UndecidedError

Source = Annotated[str, typer.Argument(help="a defence's name, module:function, or an .npz of canaries")]
Given = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="a parameter of the defence; repeatable")
]


def epsilon(
    source: Source,
    *,
    given: Given = None,
    rounds: Annotated[int | None, Option(min=1, help="of a client with the defence")] = None,
    claimed: Annotated[float | None, Option(min=0, help="ε of a function or file")] = None,
    delta: Annotated[float, Option(help="δ of the claim, from 0 to 1")] = 1e-5,
    gaussian: Annotated[bool, Option("--gaussian", help="of Gaussian noise: a tighter bound")] = False,
    canaries: Annotated[int, Option(help="records whose coin is guessed")] = 2000,
    columns: Annotated[int, Option(help="numbers of a canary; classes, of a label")] = 8,
    length: Annotated[
        float | None, Option(help="norm of a canary; default: 10 times the clip, or 10")
    ] = None,
    left_out: Annotated[bool, Option("--left-out", help="canaries are there or not")] = False,
    confidence: Annotated[float, Option(min=0.5, max=0.9999, help="of the bound")] = 0.95,
    seed: Annotated[int, Option(min=0, help="one seed, one result")] = 0,
    json: Json = False,
) -> None:
    """Measure ε in one run with canaries, beside the ε that is claimed.

    Ends with code 15 if the claim is false, with 16 if so few canaries cannot say.

    Example: vflens epsilon dp_gaussian --set level=2
    """
    from vflens.experiments.epsilon.measure import Claimed, measure
    from vflens.experiments.epsilon.sources import CanaryPlan, of_defense, of_file, of_function
    from vflens.experiments.offline.command import given_parameters
    from vflens.experiments.outcome.decide import State

    plan = CanaryPlan(canaries=canaries, columns=columns, length=length, left_out=left_out, seed=seed)
    file = source.endswith(".npz")
    foreign = file or ":" in source
    if foreign and (given or rounds):
        raise ConfigError("--set and --rounds belong to a defence: leave them out")
    if not foreign and (claimed is not None or gaussian):
        raise ConfigError(
            f"{source!r} is neither module:function nor a file .npz, and a defence states its own claim: "
            "leave --claimed and --gaussian out"
        )
    if not 0 <= delta < 1 or (delta == 0 and (gaussian or not foreign)):
        raise ConfigError(f"--delta {delta:g}: give 0 or more and less than 1, above 0 for Gaussian noise")
    if foreign:
        sent, released = of_file(Path(source)) if file else of_function(source, plan)
        claim = Claimed(claimed, delta, gaussian)
    else:
        sent, released, claim = of_defense(source, given_parameters(given or ()), rounds, delta, plan)
    found = measure(sent, released, claim, confidence)
    emit(json, found.json, lambda: found.sentence)
    if found.state is State.FOUND:
        raise ThresholdError(
            "the claim is false: add noise, release less, or claim more: the measured ε is only a lower bound"
        )
    if found.state is State.UNDECIDED:
        raise UndecidedError("the claim is not decided: give more --canaries")
