"""The active party of a benchmark lives in this process: it is set up as a party's own process is."""

from vflens.wire.process import configure_process

configure_process()
