"""White-box inversion by an attacker who estimates a passport's γ and β from how embeddings are distributed.

One key serves all rows of an exchange: it scales and shifts each channel, so granted rows and the embeddings
of other rows determine it, without pairs. Then each row from the granted ones of nearest embedding.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks.helpers.networks.exchanges import by_key, signs
from vflens.attacks.helpers.networks.inversion import Inversion, target_model
from vflens.attacks.helpers.networks.passports import GuessedPassport, behind, open_layer
from vflens.attacks.helpers.people.phases import phase_of
from vflens.errors import KnowledgeError
from vflens.models.networks.parameters import from_arrays
from vflens.models.networks.passport import open_layers
from vflens.plugins.declared import Declared
from vflens.plugins.steps import Steps
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, ColumnInfo, Estimate, Knowledge, Phase, Progress, statuses
from vflens.words import counted

_LEVELS = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)  # the quantiles that are compared
_TRIED = 64  # rows whose inversion chooses between candidates

Undo: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]  # of embeddings and the asked ones of them


class MomentInversion(Inversion):
    """γ and β bring the quantiles of each number of G(x_a), over granted rows x_a, nearest to those of H.

    The passport is taken to be around ``layer``, by default the last convolution, else the last linear layer:
    each number then belongs to one of its channels. Without an activation behind, its quantiles hardly show
    the sign of γ; the covariances between channels do, up to one common sign
    (:func:`vflens.attacks.helpers.networks.exchanges.matched_signs`). So γ and β are fitted from both, a
    third candidate takes channel by channel the better fit of the two, and the one whose inversion of some
    rows leaves the least residuals is taken.

    Of training rows every exchange has a γ and a β of its own; what the exchanges of several epochs give of a
    row is averaged.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {
            Knowledge.EMBEDDINGS,
            Knowledge.PARAMETERS,
            Knowledge.ARCHITECTURE,
            Knowledge.METADATA,
            Knowledge.AUXILIARY,
        }
    )
    rowwise: ClassVar[bool] = False
    knows: ClassVar[frozenset[str]] = frozenset({"passport"})
    exact: ClassVar[bool] = False

    learning_steps: int = Field(200, ge=1, le=1_000_000, description="steps of L-BFGS for γ and β")
    layer: str | None = Field(
        None,
        coerce_numbers_to_str=True,
        description="the layer behind the passport; default: the last convolution, else the last linear",
    )
    training_epochs: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="estimate training rows too, from the exchanges of the last so many recorded epochs",
    )

    def declared(self) -> Declared:
        """With ``training_epochs`` also training rows, from the messages of training."""
        if not self.training_epochs:
            return super().declared()
        return Declared(self.needs, self.phases | {Phase.TRAIN}, frozenset({Phase.TRAIN, Phase.PREDICT}))

    def check(self, bottom: nn.Module) -> None:
        """See :meth:`vflens.plugins.attack.Attack.check`: ``layer`` is one of the model's."""
        open_layer(bottom, self.layer)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,): ‖G(x̂) − H‖. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: also where training ended within the last epochs, before some row.
        """
        model = target_model(view)
        from_arrays(model, view.target_network())
        keyed = by_key(view, view.rows, phase_of(view), self.training_epochs)
        undone = self.undoing(view, behind(model, self.layer, GuessedPassport).eval(), rng)
        order = np.argsort(view.rows)
        x, residual = np.zeros((len(view.rows), len(view.metadata()))), np.zeros(len(view.rows))
        times = np.zeros(len(view.rows))
        step = Steps(view.progress, "exchange", len(keyed))
        for rows, h in keyed:
            asked = np.isin(rows, view.rows)
            if not asked.any():
                continue
            at = order[np.searchsorted(view.rows, rows[asked], sorter=order)]
            ends, left = undone(h, asked)
            x[at], residual[at], times[at] = x[at] + ends, residual[at] + left, times[at] + 1
            step()
        if len(missing := view.rows[times == 0]):
            raise KnowledgeError(
                f"{counted(len(missing), 'row')} (first: {missing[0]}) stand in none of the last "
                f"{counted(self.training_epochs, 'recorded epoch')}, of which the last is not whole: "
                "raise training_epochs"
            )
        return Estimate(
            view.target,
            view.rows,
            x / times[:, None],
            statuses(len(x)),
            extras={"residual": residual / times},
        )

    def undoing(self, view: AdversaryView, model: nn.Module, rng: np.random.Generator) -> Undo:
        """What inverts some of the embeddings under one key, estimated from all of them."""
        return partial(self.undone, model, view.auxiliary()[1], view.metadata(), progress=view.progress)

    def undone(
        self,
        model: nn.Module,
        features: Array,
        columns: Sequence[ColumnInfo],
        h: Array,
        asked: Array,
        *,
        progress: Progress,
    ) -> tuple[Array, Array]:
        """Columns (m, d) and residuals (m,) of the ``asked`` (n,) ones of embeddings ``h`` (n, w) under one
        key, beside rows ``features`` distributed alike.
        """
        (guessed,) = (m for m in model.modules() if isinstance(m, GuessedPassport))

        def misfit(candidate: tuple[Tensor, Tensor]) -> float:
            guessed.take(*candidate)
            return float((self.ends(h[:_TRIED], columns, model, features)[1] ** 2).sum())

        guessed.take(*min(self._candidates(model, guessed, features, h), key=misfit))
        return self.ends(h[asked], columns, model, features, progress=progress)

    def _candidates(
        self, model: nn.Module, guessed: GuessedPassport, features: Array, embeddings: Array
    ) -> list[tuple[Tensor, Tensor]]:
        """γ and β fitted from the signs found, from the opposite ones, and channel by channel the better fit
        of both; where layers with weights follow, from 1, from −1, and the better fit.
        """
        device, ends_here = guessed.scale.device, list(open_layers(model).values())[-1] is guessed.layer
        x, h = torch.tensor(features, device=device), torch.tensor(embeddings, dtype=torch.float64).to(device)
        guessed.take(torch.ones_like(guessed.scale), guessed.own_shift())
        with torch.no_grad():
            found = signs(model(x), h, len(guessed.scale)) if ends_here else torch.ones_like(guessed.scale)
        wanted, channels = torch.quantile(h, _LEVELS.to(device), dim=0), len(found) if ends_here else 1
        fits = []
        for scale in (found, -found):
            guessed.take(scale, guessed.own_shift())
            if (
                ends_here and (np.asarray(embeddings) < 0).any()
            ):  # no activation behind, which would change both
                guessed.take(*_matched(scale, guessed.shift, model(x).detach(), h))
            left = _fit(model, guessed, x, wanted, steps=self.learning_steps, channels=channels)
            fits.append((guessed.scale.detach().clone(), guessed.shift.detach().clone(), left))
        first, second = fits
        better = second[2] < first[2]
        mixed = tuple(torch.where(better, new, old) for new, old in zip(second, first, strict=True))
        return [(fit[0], fit[1]) for fit in (first, second, mixed)]


def _matched(scale: Tensor, shift: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """γ and β that give each channel of ``g`` (m, w), embeddings under ``scale`` and ``shift``, the mean and
    the deviation of ``h`` (n, w): a descent that begins far from them may end under the other sign.
    """
    both = (z.reshape(len(z), len(scale), -1) for z in (g, h))
    (mean, size), (wanted, spread) = ((z.mean(dim=(0, 2)), z.std(dim=(0, 2))) for z in both)
    factor = spread / size.clamp_min(1e-12)
    return scale * factor, wanted - factor * (mean - shift)


def _fit(
    model: nn.Module, guessed: GuessedPassport, x: Tensor, wanted: Tensor, *, steps: int, channels: int
) -> Tensor:
    """Bring the quantiles of ``model``'s embeddings of ``x`` nearest to ``wanted`` (levels, w), from where γ
    and β stand.

    What is left of the squared differences, per channel (channels,).
    """
    learned = (guessed.scale, guessed.shift)
    optimizer = torch.optim.LBFGS(
        learned, max_iter=steps, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def misfit() -> Tensor:
        difference: Tensor = torch.quantile(model(x), _LEVELS.to(x.device), dim=0) - wanted
        return (difference**2).reshape(len(_LEVELS), channels, -1).sum(dim=(0, 2))

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = misfit().sum()
        torch.autograd.backward(value, inputs=learned)
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        return misfit()
