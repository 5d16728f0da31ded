"""The agreement of a recorded run, of whichever setting."""

from collections.abc import Mapping

from vflens.protocol.agreement import Agreement
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import Setting

AGREEMENTS: Mapping[Setting, type[Agreement]] = {
    a.setting: a for a in (VerticalAgreement, HorizontalAgreement)
}
