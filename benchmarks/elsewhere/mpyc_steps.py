"""``make mpyc-check``: the steps by MPyC, three parties over sockets of this machine.

Features, labels and parameters are Shamir's shares of fixed-point numbers: any two parties together see all.
The sigmoid is the cubic that is usual there, another function than ours: θ differs by it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.elsewhere.problem import FIRST, RATE, ROWS, STEPS, Array, Taken, data, row

PARTIES, FRACTION_BITS, BITS = 3, 20, 48
LINEAR, CUBE = 0.197, -0.004  # σ(z) ≈ ½ + .197 z − .004 z³


async def _party() -> None:
    """One of the three; prints what it took."""
    from mpyc.runtime import mpc  # type: ignore[import-not-found,unused-ignore]

    number = mpc.SecFxp(BITS, FRACTION_BITS)
    await mpc.start()
    features, labels = (mpc.input(number.array(part), senders=0) for part in data())
    theta = number.array(np.zeros(features.shape[1]))
    for _ in range(FIRST):
        theta = _step(features, labels, theta)
    await mpc.output(theta)
    sent, core, began = _sent(mpc), process_time(), perf_counter()
    for _ in range(STEPS):
        theta = _step(features, labels, theta)
        await mpc.gather(theta)
    seconds, core, sent = perf_counter() - began, process_time() - core, _sent(mpc) - sent
    found = await mpc.output(theta)
    await mpc.shutdown()
    print(json.dumps([seconds, core, sent, [float(number) for number in found]]))


def _step(features: Any, labels: Any, theta: Any) -> Any:
    z = features @ theta
    residual = z * (CUBE * (z * z) + LINEAR) + 0.5 - labels
    return theta - (features.T @ residual) * (RATE / ROWS)


def _sent(mpc: Any) -> int:
    return sum(peer.protocol.nbytes_sent for peer in mpc.parties if peer.pid != mpc.pid)


def main() -> None:
    """Start the three, and print a row."""
    command = [sys.executable, __file__, f"-M{PARTIES}", "--no-log"]
    started = [
        subprocess.Popen([*command, f"-I{party}"], stdout=subprocess.PIPE, text=True)
        for party in range(PARTIES)
    ]
    text = [json.loads(party.communicate()[0].splitlines()[-1]) for party in started]
    seconds, cores, sents, thetas = zip(*text, strict=True)
    theta: Array = np.array(thetas[0])
    row("MPyC, 3 parties", Taken(max(seconds), sum(cores), sum(sents), theta))


if __name__ == "__main__":
    if any(argument.startswith("-I") for argument in sys.argv):
        from mpyc.runtime import mpc

        mpc.run(_party())
    else:
        main()
