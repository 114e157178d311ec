"""An application of the small framework."""

from typing import Literal

import trio
from framework import Framework

from sansmcp_io.trio import ServerCall

app = Framework("weather", "1.0")


@app.tool
def convert(degrees: float, to: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Convert a temperature."""
    value = (degrees - 32) / 1.8 if to == "celsius" else degrees * 1.8 + 32
    return f"{value:.1f}"


@app.tool
async def forecast(cities: list[str], call: ServerCall) -> dict[str, str]:
    """What the weather will be in each city."""
    for number, _ in enumerate(cities, 1):
        call.progress(number, total=len(cities))
        await trio.lowlevel.checkpoint()  # the work
    return dict.fromkeys(cities, "rain")


@app.resource("weather://today")
def today() -> str:
    """What the weather is."""
    return "rain"


@app.prompt
def ask(city: str) -> str:
    """Ask for the weather."""
    return f"What is the weather in {city}?"


if __name__ == "__main__":
    trio.run(app.run)
