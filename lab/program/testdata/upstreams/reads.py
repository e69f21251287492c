"""A line of EFFECTS is the path of a request and its tenant, as a WSGI application reads them."""

import os
import posixpath
from urllib.parse import unquote
from wsgiref.simple_server import WSGIRequestHandler, make_server

effects = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


def serve(environ, start_response):
    path = posixpath.normpath(unquote(environ["PATH_INFO"]).split(";")[0])
    os.write(effects, f"{path} {environ.get('HTTP_X_TENANT', '')}\n".encode())
    start_response("201 Created", [("Content-Length", "0")])
    return []


host, port = os.environ["LISTEN"].split(":")
make_server(host, int(port), serve, handler_class=Quiet).serve_forever()
