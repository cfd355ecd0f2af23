"""Ports for servers that tests start."""

import socket


def free_port():
    """One that the system gives out: two workers that looked for the first free one would find the same."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]
