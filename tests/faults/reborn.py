"""Parties that are started again when they are killed, as under a restart policy, forked as in ``zygote.py``.

``python reborn.py JOBS``: JOBS is a list in JSON of role, configuration file and the value of VFLENS_FAIL for
the first start. It prints a line in JSON for each start, [job, process], and then the exit codes of all jobs.
"""

from __future__ import annotations

import json
import os
import sys

from zygote import fork


def start(job: int, fault: str) -> int:
    role, config, _ = jobs[job]
    child = fork(role, config, fault)
    print(json.dumps([job, child]), flush=True)
    return child


if __name__ == "__main__":
    jobs: list[list[str]] = json.loads(sys.argv[1])
    codes: list[list[int]] = [[] for _ in jobs]
    running = {start(job, fault): job for job, (_, _, fault) in enumerate(jobs)}
    while running:
        child, status = os.wait()
        job = running.pop(child)
        codes[job].append(os.waitstatus_to_exitcode(status))
        if codes[job][-1] < 0:
            running[start(job, "")] = job
    print(json.dumps(codes))
