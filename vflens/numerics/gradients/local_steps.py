"""The gradient that a client's update of a federated round shows."""

from collections.abc import Mapping

from vflens.array import Array


def gradient_of(
    update: Mapping[str, Array],
    learning_rate: float,
    *,
    steps: int = 1,
    penalty: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """The gradient −Δ/(η·steps) of the loss, by name, from the difference Δ = θ_after − θ_before.

    Of one step of plain gradient descent it is exact, up to the rounding of Δ: an error of θ's last bit
    grows by 1/η. Of several steps it is the mean of the gradients on the way, which differs from the mean at
    θ_before by O(η·steps); steps on different batches are one batch of all their rows, to that order. Adam,
    momentum, or noise on the update leave no such relation.

    Args:
        update: Δ, by name of the parameter.
        learning_rate: η > 0.
        steps: local steps.
        penalty: the gradient of the loss's penalty at θ_before, such as 2·l2·θ, which is taken off; it may
            leave out parameters without one.
    """
    added = penalty or {}
    return {name: -delta / (learning_rate * steps) - added.get(name, 0.0) for name, delta in update.items()}
