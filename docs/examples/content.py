"""Content of results from bytes and objects, and what clients of older revisions get of it."""

import attrs

from sansmcp import JSONObject, content

PNG = b"...the bytes of a picture..."
OGG = b"...the bytes of a voice..."


# -- build
@attrs.frozen
class Forecast:
    city: str
    degrees: float


def forecast(city: str) -> JSONObject:
    if city != "Lima":
        return {**content.tool_error(f"there is no forecast for {city!r}, only for Lima")}
    result = content.structured(
        Forecast(city, 21.5),
        content.image(PNG, "image/png", annotations=content.annotate(audience=["user"])),
        content.audio(OGG, "audio/ogg"),
        content.resource_link("weather://Lima/week", "week", title="The week"),
    )
    return {**result}


def read(uri: str) -> JSONObject:
    return {"contents": [content.resource_contents(uri, "sun", "text/plain")]}


# -- adapt
def answer(city: str, revision: str) -> JSONObject:
    result, losses = content.adapt(forecast(city), revision)
    for loss in losses:
        print(f"  {loss.rule} {loss.path}: {loss.text}")
    return result


# -- show
TOOL: JSONObject = {"name": "forecast", "annotations": {"title": "Forecast", "readOnlyHint": True}}


def question() -> str:
    hints = content.tool_hints(TOOL)
    may = "only reads" if hints.read_only else "may change things"
    return f"{content.display_name(TOOL)} {may}. Run it?"


# -- run
def main() -> None:
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18"):
        print(revision)
        for block in answer("Lima", revision)["content"]:
            print(" ", block["type"], block.get("text", ""))
    print(forecast("Oslo"))
    print(read("weather://Lima/now"))
    print(question())


if __name__ == "__main__":
    main()
