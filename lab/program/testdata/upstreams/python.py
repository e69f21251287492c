"""An order is a line with its key in the file EFFECTS. The answer differs from run to run."""

import os
import random
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

effects = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class Orders(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(random.random() / 100)
        os.write(effects, (self.headers["Idempotency-Key"] + "\n").encode())
        time.sleep(random.random() / 100)
        body = random.randbytes(512)
        self.send_response(201)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


host, port = os.environ["LISTEN"].split(":")
ThreadingHTTPServer((host, int(port)), Orders).serve_forever()
