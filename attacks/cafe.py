"""FedAdOb's own white-box inversion, as it is printed (CAFE, in its Tables IV and V and Figure 5).

Step 2 of CAFE (Jin et al., 2021). To compare: :mod:`vflens.attacks.wmi` is the stronger one.
"""

from typing import Literal

from pydantic import Field

from vflens.attacks.wmi import Start, WhiteBoxInversion


class Cafe(WhiteBoxInversion):
    """min_x ‖G(x) − H‖² + .1·TV(x) with Adam from 0 alone, without a box, for the disclosed bottom model G.

    It is :class:`WhiteBoxInversion` with other defaults. The paper leaves Adam's rate and the number of steps
    open: they are those of ``wmi``.
    """

    start: Start = Field(
        "zero",
        description="0; ½; those two and points drawn in the box, as many as `starts`; or each row's nearest "
        "granted rows",
    )
    smoothness: float = Field(0.1, ge=0, allow_inf_nan=False, description="weight of the total variation")
    smoothness_of: Literal["embedding", "absolute"] = Field(
        "absolute", description="that weight as it stands, or in units of the row's ‖H‖²"
    )
    box: bool = Field(False, description="keep every step inside [0, 1]")
