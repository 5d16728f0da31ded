"""The streams that a leader opens to its parties for the steps of training."""

from contextlib import AsyncExitStack

from vflens.protocol.acts import Step, StepReply
from vflens.protocol.link import Link, Stream


def open_stream(link: Link, stack: AsyncExitStack) -> Stream[StepReply]:
    """A training stream that ends with ``stack``."""
    opened = link.stream(Step)
    stack.push_async_callback(opened.close)
    return opened
