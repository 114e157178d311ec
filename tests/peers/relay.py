"""Joins standard input and output to a Unix socket, for clients that know only stdio.

Usage: python tests/peers/relay.py PATH
"""

import os
import socket
import sys
import threading


def carry(source: int, target: int) -> None:
    while data := os.read(source, 65_536):
        while data:
            data = data[os.write(target, data) :]


if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.connect(sys.argv[1])
        threading.Thread(target=carry, args=(peer.fileno(), 1), daemon=True).start()
        carry(0, peer.fileno())
