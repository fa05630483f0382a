"""Another user of the machine, who speaks Spark's own protocol and knows no secret."""

import socket
import struct

__all__ = ["refuses_strangers"]

RPC_REQUEST, RPC_FAILURE = 3, 5


def refuses_strangers(port: int) -> bool:
    """Whether a message without authentication is refused, and not read as if it came from Spark itself."""
    kind, answer = asked(port, b"a message of a stranger")
    return kind == RPC_FAILURE and b"Expected SaslMessage" in answer


def asked(port: int, body: bytes) -> tuple[int, bytes]:
    """The answer of Spark's own protocol to an unauthenticated request: its kind, and its text."""
    message = struct.pack(">BqI", RPC_REQUEST, 7, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
        stranger.sendall(struct.pack(">q", 8 + len(message)) + message)
        size, kind = struct.unpack(">qB", stranger.recv(9, socket.MSG_WAITALL))
        return kind, stranger.recv(size - 9, socket.MSG_WAITALL)
