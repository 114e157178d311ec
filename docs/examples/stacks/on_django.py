"""An MCP view of a Django project, for the users that its own authentication knows."""

import sys
from collections.abc import Callable
from wsgiref.simple_server import make_server

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from shop import CAPABILITIES, INFO
from shop_calls import answer

from sansmcp_io.wsgi import App, Environ, Unauthorized

# -- project
TOKENS = {"Bearer 6f1e": "ann"}
settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
    MIDDLEWARE=[f"{__name__}.by_token"],
    ROOT_URLCONF=__name__,
)
django.setup()
from django.contrib.auth.models import AnonymousUser, User  # noqa: E402  # needs the settings


def by_token(get_response: Callable[[WSGIRequest], HttpResponse]) -> Callable[..., HttpResponse]:
    """The authentication of this project; any other one that sets `request.user` will do."""

    def middleware(request: WSGIRequest) -> HttpResponse:
        name = TOKENS.get(request.headers.get("Authorization", ""))
        request.user = AnonymousUser() if name is None else User(username=name)
        return get_response(request)

    return middleware


# -- view
def authenticate(environ: Environ) -> str:
    """The principal of the view. A session is open only to the user that has opened it."""
    user = environ["project.user"]
    if not user.is_authenticated:
        raise Unauthorized("Bearer")
    name: str = user.get_username()
    return name


mcp = App(answer, info=INFO, capabilities=CAPABILITIES, authenticate=authenticate)


@csrf_exempt
def view(request: WSGIRequest) -> HttpResponse:
    response = HttpResponse()
    del response["Content-Type"]  # which Django has set

    def start_response(status: str, fields: list[tuple[str, str]]) -> Callable[[bytes], object]:
        response.status_code = int(status.split()[0])
        for name, value in fields:
            response[name] = value
        return response.write

    environ = {**request.environ, "wsgi.input": request, "project.user": request.user}
    for piece in mcp(environ, start_response):
        response.write(piece)
    return response


# -- run
def home(request: WSGIRequest) -> HttpResponse:
    return HttpResponse("the shop itself\n")


urlpatterns = [path("", home), path("mcp", view)]

if __name__ == "__main__":
    make_server("127.0.0.1", int(sys.argv[1]), WSGIHandler()).serve_forever()
