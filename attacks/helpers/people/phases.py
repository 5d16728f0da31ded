"""Which rows a view asks for."""

import numpy as np

from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Phase


def phase_of(view: AdversaryView) -> Phase:
    """The phase whose rows ``view`` asks for."""
    training = len(view.rows) > 0 and bool(np.isin(view.rows, view.training_rows).all())
    return Phase.TRAIN if training else Phase.PREDICT
