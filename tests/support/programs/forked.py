"""Has a program run by a fork server, and is as good as that program to whoever starts this one.

The arguments are the path of the socket of the server, the module, and the arguments of the
module. The standard streams are passed on, and the exit status is returned. Run it with
`python -I -S`: what it imports is part of the interpreter, so that it starts within a few
milliseconds.
"""

import _socket
import os
import sys
from array import array

CHARACTERS = {ord('"'): '\\"', ord("\\"): "\\\\", **{n: f"\\u{n:04x}" for n in range(32)}}


def quoted(text: str) -> str:
    """A JSON string, without the import of `json`."""
    return '"' + "".join(CHARACTERS.get(ord(one), one) for one in text) + '"'


path, module, *arguments = sys.argv[1:]
environment = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in os.environ.items())
given = ",".join(map(quoted, [module, *arguments]))
body = (
    f'{{"module":{quoted(module)},"argv":[{given}],"cwd":{quoted(os.getcwd())},'
    f'"env":{{{environment}}}}}'
).encode()
connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
connection.connect(path)
streams = array("i", [0, 1, 2]).tobytes()
rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
connection.sendmsg([len(body).to_bytes(4, "big")], rights)
connection.sendall(body)
for descriptor in (0, 1, 2):  # they belong to the program alone
    os.close(descriptor)
said = b""
while data := connection.recv(100):
    said += data
code = int(said.split()[1])
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
