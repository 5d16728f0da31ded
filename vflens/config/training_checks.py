"""What settings of a vertical training exclude of each other."""

from vflens.config.settings import Recording
from vflens.models.settings import Training
from vflens.words import counted


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
