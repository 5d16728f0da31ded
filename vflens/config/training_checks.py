"""What settings of a vertical training exclude of each other."""

from vflens.config.settings import Recording
from vflens.models.family import ModelFamily
from vflens.models.settings import ON_SHARES, RATE_OF_A_NUMBER, Training
from vflens.protocol.vertical.shares import scale_of
from vflens.words import counted


def check_protection(model: ModelFamily, training: Training) -> None:
    """Refuse what a protected training cannot do; its other aggregator is refused by the model's family.

    Raises:
        ValueError: names the setting and the remedy, for pydantic.
    """
    if not training.is_protected:
        return
    with_it = "with training.protection = 'shares'"
    if model.response is None:
        raise ValueError(
            f"model.family {with_it}: {model.title} has another residual than σ(z) − y, or z − y of a "
            f"number: train {ON_SHARES}, or leave the protection out"
        )
    if training.optimizer != "sgd":
        rate = "a larger learning_rate" if model.response.bounded else RATE_OF_A_NUMBER
        raise ValueError(
            f"training.optimizer = {training.optimizer!r} {with_it}: it divides by what nobody knows, take "
            f"'sgd' and {rate}"
        )
    if training.patience:
        raise ValueError(
            f"training.patience = {training.patience} {with_it}: nobody sees a loss, and stopping early "
            "would tell of it; set it to 0"
        )
    if model.response.bounded:  # else it depends on the columns of all parties
        scale_of(model.response, training, columns=1, steps=1)


def check_sampling(transcript: Recording, training: Training) -> None:
    """Refuse a sampling without the last epoch.

    Raises:
        ValueError: names both settings, for pydantic.
    """
    if training.epochs % transcript.every:
        raise ValueError(
            f"transcript.every = {transcript.every} of {counted(training.epochs, 'epoch')} leaves out the "
            "last: choose a divisor"
        )
