"""Files in results: a tool sends images, small files and links, and a client stores them safely."""

import base64
import binascii
import mimetypes
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sansmcp import JSONObject, content

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
LARGEST = 256 * 1024
"""The most bytes of a file within a result; larger files are linked."""


# -- send
def block_of(path: Path, folder: Path) -> JSONObject:
    """The block for a file below the folder that the server shows."""
    uri = f"notes:///{path.relative_to(folder).as_posix()}"
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    size = path.stat().st_size
    if size > LARGEST:
        return {**content.resource_link(uri, path.name, mime_type=kind, size=size)}
    data = path.read_bytes()
    if kind.startswith("image/"):
        return {**content.image(data, kind)}
    if kind.startswith("text/"):
        return {**content.embedded_resource(uri, data.decode("utf-8", "replace"), kind)}
    return {**content.embedded_resource(uri, data, kind)}


# -- receive
BEGINNINGS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
"""How files begin that this client shows, by their types."""


def image_of(block: JSONObject, most_bytes: int = 5_000_000) -> bytes:
    """The bytes of an image that may be shown.

    Raises:
        ValueError: It is too large, is no Base64, or is no image of its type.
    """
    text: Any = block["data"]
    if len(text) > most_bytes * 4 // 3 + 4:
        raise ValueError("the image is too large")
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("the image is no Base64") from None
    beginning = BEGINNINGS.get(block["mimeType"])
    if beginning is None or not data.startswith(beginning):
        raise ValueError(f"this is no image of the type {block['mimeType']}")
    return data


def show(block: JSONObject) -> str:
    match block:
        case {"type": "image"}:
            try:
                return f"an image of {len(image_of(block))} bytes"
            except ValueError as error:
                return str(error)
        case {"type": "resource", "resource": {"uri": uri, "text": text}}:
            return f"{uri}: {text!r}"
        case {"type": "resource", "resource": {"uri": uri, "blob": blob}}:
            return f"{uri}: {len(base64.b64decode(blob, validate=True))} bytes"
        case {"type": "resource_link", "uri": uri, "size": size}:
            return f"{uri}: a link to {size} bytes, for resources/read"
        case _:
            return f"a block of the type {block['type']}"


# -- run
def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = {"a.png": PNG, "b.txt": b"Buy milk.", "c.bin": b"\0\1", "d.bin": bytes(300_000)}
        for file, data in files.items():
            (folder / file).write_bytes(data)
            print(show(block_of(folder / file, folder)))
    print(show({**content.image(b"<svg onload=...>", "image/png")}))
    print(show({**content.image(PNG, "image/svg+xml")}))
    print(show({"type": "image", "data": "not Base64", "mimeType": "image/png"}))


if __name__ == "__main__":
    main()
