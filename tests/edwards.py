"""Ed25519's group in plain Python, from its equation: RFC 8032, section 5.1. Slow, and nobody else's code."""

from __future__ import annotations

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ORDER = 2**252 + 27742317777372353535851937790883648493  # of the subgroup
Element = tuple[int, int]
NEUTRAL: Element = (0, 1)


def added(one: Element, other: Element) -> Element:
    """The sum of two elements."""
    (a, b), (c, d) = one, other
    k = D * a * b * c * d % P
    return (a * d + c * b) * pow(1 + k, -1, P) % P, (b * d + a * c) * pow(1 - k, -1, P) % P


def multiplied(scalar: int, element: Element) -> Element:
    """``scalar`` times ``element``."""
    total = NEUTRAL
    while scalar:
        if scalar & 1:
            total = added(total, element)
        element, scalar = added(element, element), scalar >> 1
    return total


def encoded(element: Element) -> bytes:
    """32 bytes: y, and the lowest bit of x on top."""
    x, y = element
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decoded(data: bytes) -> Element | None:
    """The element in 32 bytes; None if no element has this y."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, (y & (1 << 255) - 1) % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P:
        return None
    return (x if x & 1 == sign else P - x), y


def small() -> list[Element]:
    """The eight elements of small order."""
    found = (decoded(y.to_bytes(32, "little")) for y in range(2, 100))
    of_small_order = (multiplied(ORDER, element) for element in found if element is not None)
    generator = next(e for e in of_small_order if multiplied(4, e) != NEUTRAL)
    return [multiplied(k, generator) for k in range(8)]


def x25519(element: Element) -> bytes:
    """Its x-coordinate on Curve25519, RFC 7748, section 4.1: 32 bytes, 0 for the neutral one."""
    y = element[1]
    return ((1 + y) * pow(1 - y, P - 2, P) % P).to_bytes(32, "little")


def of_x25519(data: bytes) -> Element | None:
    """One of the two elements with this x-coordinate on Curve25519; None on its twist."""
    u = int.from_bytes(data, "little") & (1 << 255) - 1
    return decoded(((u - 1) * pow(u + 1, P - 2, P) % P).to_bytes(32, "little"))


def clamped(key: bytes) -> int:
    """The number that X25519 makes of a key, RFC 7748, section 5: a multiple of 8 from 2²⁵⁴ to 2²⁵⁵."""
    return (int.from_bytes(key, "little") & (1 << 254) - 8) | 1 << 254
