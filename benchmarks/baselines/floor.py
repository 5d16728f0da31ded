"""The floor: the three parties with the same numerics and messages over gRPC, and nothing else.

A message that was received is written to a file, in one unbuffered write. There is no gate, defence, check,
index, deadline, token or lock: what is left is the price of the topology in Python.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

import numpy as np

from vflens.config import Limits
from vflens.models.softmax_regression import log_softmax, loss_gradient
from vflens.numerics.optimizer import Adam
from vflens.protos import vfl_pb2 as pb
from vflens.types import Array
from vflens.wire.process import configure_process

ROWS, COLUMNS, CLASSES, BATCH = 600_000, 10, 2, 256  # columns of each party
RUN = "benchmark/run"


class Block:
    """Partial logits of one party's columns, learned with Adam."""

    def __init__(self, seed: int) -> None:
        self.x = np.random.default_rng(seed).random((ROWS, COLUMNS))
        self._theta, self._gradient = np.zeros(CLASSES * COLUMNS), np.zeros(CLASSES * COLUMNS)
        self._weight = self._theta.reshape(CLASSES, COLUMNS)
        self._adam = Adam(len(self._theta), 0.01)

    def forward(self, rows: Array) -> Array:
        """Partial logits (n, k) of ``rows``."""
        z: Array = self.x.take(rows, axis=0) @ self._weight.T
        return z

    def learn(self, rows: Array, gradient: Array) -> None:
        """One step from the gradient (n, k) in the partial logits of ``rows``."""
        np.matmul(gradient.T, self.x.take(rows, axis=0), out=self._gradient.reshape(CLASSES, COLUMNS))
        self._adam.update(self._theta, self._gradient)


def released(sender: str, exchange: pb.Exchange, point: str, rows: Array, values: Array) -> pb.Released:
    """A payload as VFLens sends it."""
    tensor = pb.Tensor(name=point, dtype="<f8", shape=values.shape, data=values.tobytes())
    kind: Any = pb.Point.Value(point.upper())
    return pb.Released(sender=sender, exchange=exchange, point=kind, rows=rows.tobytes(), tensors=[tensor])


def rows_of(data: bytes) -> Array:
    """int32 positions."""
    return np.frombuffer(data, "<i4")


def values_of(message: pb.Released) -> Array:
    """The only tensor of ``message``."""
    (tensor,) = message.tensors
    return np.frombuffer(tensor.data, tensor.dtype).reshape(tuple(tensor.shape))


def exchange(phase: str, number: int) -> pb.Exchange:
    """The key of one exchange."""
    kind: Any = pb.Phase.Value(phase)
    return pb.Exchange(run=RUN, phase=kind, round=1, step=number)


def passive(log: BinaryIO) -> dict[str, Any]:
    """Partial logits out, gradients in."""
    block = Block(0)

    def step(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for data in requests:
            request = pb.StepRequest.FromString(data)
            if request.HasField("received"):
                block.learn(rows_of(request.received.rows), values_of(request.received))
            rows = rows_of(request.rows)
            own = released("passive", request.exchange, "embedding", rows, block.forward(rows))
            yield pb.StepReply(released=own).SerializeToString()
            log.write(data)

    def forward(data: bytes, context: Any) -> bytes:
        request = pb.ForwardRequest.FromString(data)
        rows = rows_of(request.rows)
        own = released("passive", request.exchange, "embedding", rows, block.forward(rows))
        return bytes(own.SerializeToString())

    return {"Step": step, "Forward": forward}


def active(log: BinaryIO) -> dict[str, Any]:
    """Summed partial logits in, gradients out."""
    block, y = Block(1), np.eye(CLASSES)[np.random.default_rng(2).integers(CLASSES, size=ROWS)]

    def step(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for data in requests:
            request = pb.StepRequest.FromString(data)
            rows = rows_of(request.rows)
            z = values_of(request.received) + block.forward(rows)
            gradient = loss_gradient(z, y.take(rows, axis=0))[1]
            own = released("active", request.exchange, "gradient", rows, gradient)
            yield pb.StepReply(released=own).SerializeToString()
            log.write(data)
            block.learn(rows, gradient)

    return {"Step": step}


def coordinator(log: BinaryIO, passive_address: str) -> dict[str, Any]:
    """Asks the passive party, adds, gives scores."""
    from vflens.wire.channel import open_channel

    call: Any = open_channel(passive_address, Limits()).unary_unary("/floor/Forward")

    def predict(data: bytes, context: Any) -> bytes:
        own = pb.PredictRequest.FromString(data).embedding
        request = pb.ForwardRequest(exchange=own.exchange, rows=own.rows)
        reply = call(request.SerializeToString())
        log.write(data)
        log.write(reply)
        scores = log_softmax(values_of(own) + values_of(pb.Released.FromString(reply)))
        answer = released("coordinator", own.exchange, "scores", rows_of(own.rows), scores)
        return bytes(answer.SerializeToString())

    return {"Predict": predict}


async def train(log: BinaryIO, addresses: list[str], steps: int) -> float:
    """Steps a second of the coordinator's loop."""
    from vflens.wire.channel import open_aio_channel

    channels = [open_aio_channel(address, Limits()) for address in addresses]
    streams: list[Any] = [channel.stream_stream("/floor/Step")() for channel in channels]
    up, down = streams
    gradient, answer, began = None, b"", perf_counter()
    batches = np.random.default_rng(3).integers(ROWS, size=(steps, BATCH), dtype=np.int32)
    for number, rows in enumerate(batches):
        key = exchange("TRAIN", number)
        await up.write(
            pb.StepRequest(exchange=key, rows=rows.tobytes(), received=gradient).SerializeToString()
        )
        log.write(answer)
        answer = await up.read()
        total = values_of(pb.StepReply.FromString(answer).released)
        mine = released("coordinator", key, "embedding", rows, total)
        await down.write(pb.StepRequest(exchange=key, rows=rows.tobytes(), received=mine).SerializeToString())
        log.write(answer)
        answer = await down.read()
        gradient = pb.StepReply.FromString(answer).released
    seconds = perf_counter() - began
    for channel in channels:
        await channel.close()
    return steps / seconds


def main(role: str, folder: Path, *arguments: str) -> None:
    """One party as a process, until its standard input ends."""
    configure_process()
    from vflens.wire.channel import grpc, options

    with (folder / f"{role}.bin").open("wb", buffering=0) as log:
        if role == "train":
            print(asyncio.run(train(log, list(arguments[1:]), int(arguments[0]))), flush=True)
            return
        parties: dict[str, Any] = {"passive": passive, "active": active, "coordinator": coordinator}
        handlers = parties[role](log, *arguments)
        server = grpc.server(ThreadPoolExecutor(4), options=options(Limits()))
        methods: dict[str, Any] = {
            name: grpc.stream_stream_rpc_method_handler(answer)
            if name == "Step"
            else grpc.unary_unary_rpc_method_handler(answer)
            for name, answer in handlers.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("floor", methods),))
        address = f"unix:{folder / role}.sock"
        server.add_insecure_port(address)
        server.start()
        print(address, flush=True)
        sys.stdin.read()


@contextmanager
def _party(role: str, folder: Path, *arguments: str) -> Iterator[str]:
    """The first line that the process of ``role`` prints."""
    command = [sys.executable, "-m", "benchmarks.baselines.floor", role, str(folder), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.communicate()


def steps_per_second(folder: Path, steps: int) -> float:
    """Training steps a second of three new processes."""
    with (
        _party("passive", folder) as up,
        _party("active", folder) as down,
        _party("train", folder, str(steps), up, down) as rate,
    ):
        return float(rate)


@contextmanager
def predicting(folder: Path) -> Iterator[Callable[[Array], Array]]:
    """Log-probabilities of rows, asked from here as the active party; the others are processes."""
    from vflens.wire.channel import open_channel

    with ExitStack() as end:
        log = end.enter_context((folder / "predicting.bin").open("wb", buffering=0))
        address = end.enter_context(
            _party("coordinator", folder, end.enter_context(_party("passive", folder)))
        )
        call: Any = end.enter_context(open_channel(address, Limits())).unary_unary("/floor/Predict")
        block, numbers = Block(1), iter(range(2**31))

        def ask(rows: Array) -> Array:
            own = released(
                "active", exchange("PREDICT", next(numbers)), "embedding", rows, block.forward(rows)
            )
            reply = call(pb.PredictRequest(embedding=own).SerializeToString())
            log.write(reply)
            return values_of(pb.Released.FromString(reply))

        yield ask


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
