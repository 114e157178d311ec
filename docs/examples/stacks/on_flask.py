"""MCP beside the other routes of a Flask application."""

import sys

from flask import Flask
from shop import CAPABILITIES, INFO
from shop_calls import answer
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import make_server

from sansmcp_io.wsgi import App

# -- application
app = Flask(__name__)


@app.get("/")
def home() -> str:
    return "the shop itself\n"


mcp = App(answer, info=INFO, capabilities=CAPABILITIES)
app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/mcp": mcp})  # type: ignore[method-assign]

# -- run
if __name__ == "__main__":
    make_server("127.0.0.1", int(sys.argv[1]), app, threaded=True).serve_forever()
