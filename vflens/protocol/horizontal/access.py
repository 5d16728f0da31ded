"""Who may ask whom in a horizontal run."""

from vflens.protocol.access import Access, pairs
from vflens.protocol.acts import Begin, Describe, Disclose, Finished, Prepare, Rejoin, Step, Stop, Submission
from vflens.types import Role

_ASKED = (Describe, Prepare, Rejoin, Step, Disclose, Begin, Submission, Stop)

#: Between a server and its clients.
HORIZONTAL_ACCESS: Access = {
    **dict.fromkeys(_ASKED, pairs({Role.SERVER}, {Role.CLIENT})),
    Finished: pairs({Role.CLIENT}, {Role.SERVER}),
}
