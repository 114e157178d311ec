"""A client chooses a model by the wishes of a server, and a server stays within the roots."""

from sansmcp import JSONObject
from sansmcp.content import ModelScores, choose_model, root_contains

# -- models
MODELS = {
    "owl-large-2": ModelScores(cost=0.1, speed=0.3, intelligence=1),
    "owl-small-2": ModelScores(cost=0.8, speed=0.9, intelligence=0.5),
    "wren-1": ModelScores(cost=1, speed=1, intelligence=0.1),
}


def model_for(params: JSONObject) -> str | None:
    """The model for a `sampling/createMessage` request, before the user has agreed to it."""
    return choose_model(params.get("modelPreferences"), list(MODELS), MODELS)


# -- roots
ROOTS: list[JSONObject] = [{"uri": "file:///home/ann/notes", "name": "notes"}]


def may_read(uri: str) -> bool:
    """Whether a URI of a model may be read, by the result of `roots/list`."""
    return root_contains(ROOTS, uri)


# -- run
def main() -> None:
    wishes: list[JSONObject] = [
        {"hints": [{"name": "gull"}, {"name": "owl"}], "intelligencePriority": 1},
        {"hints": [{"name": "owl"}], "costPriority": 0.8, "speedPriority": 0.5},
        {"speedPriority": 1},
        {},
    ]
    for preferences in wishes:
        print(model_for({"modelPreferences": preferences}))
    for path in ("notes/a.md", "notes/../notes/b.md", "notes/%2e%2e/secret", "notes-old/c.md"):
        print(path, may_read(f"file:///home/ann/{path}"))


if __name__ == "__main__":
    main()
