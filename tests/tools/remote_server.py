#!/usr/bin/env python3
"""An OpenAI-style server for tests: remote_server.py FOLDER [CERTIFICATE KEY]

Listens on a free port of 127.0.0.1 and writes it to the pipe FOLDER/port. Every byte that comes is appended to
FOLDER/bytes, request by request, and each body to FOLDER/bodies, a line each. FOLDER/mode says how it behaves, a word for
each request, the last one for all that follow (do_POST has them); a file FOLDER/restart begins with the first word
again. It ends with its standard input.
"""
import http.server
import json
import os
import ssl
import sys
import threading
import time
from email.utils import formatdate

folder = sys.argv[1]
lock = threading.Lock()
count = 0
again = 0 # who comes before that, does not honour a Retry-After


def path(name):
    return os.path.join(folder, name)


def append(name, data):
    with lock, open(path(name), "ab") as f:
        f.write(data)


def content(name):
    with open(path(name), encoding="utf-8") as f:
        return f.read()


def message(**fields):
    choice = {"index": 0, "message": {"role": "assistant", **fields}}
    return 200, {"object": "chat.completion", "choices": [choice]}


def guesses(prompt):
    """As a model might answer: the words of the last line but one of the prompt."""
    lines = ["[%s], # \"%s\"" % (json.dumps(w.upper()), "no guess") for w in json.loads(prompt.split("\n")[-2])]
    return "Here they are:\n[\n" + "\n".join(lines) + "\n]\n"


def next_mode():
    global count
    with lock:
        if os.path.exists(path("restart")):
            os.unlink(path("restart"))
            count = 0
        modes = content("mode").split()
        count += 1
    return modes[min(count, len(modes)) - 1]


class Recorder:
    """A file that keeps what is read from it, until it is told: a request of one connection is
    whole, whatever comes on others meanwhile."""

    def __init__(self, file):
        self.file = file
        self.data = b""

    def __getattr__(self, name):
        return getattr(self.file, name)

    def keep(self, data):
        self.data += data
        return data

    def tell(self):
        append("bytes", self.data)
        self.data = b""

    def readline(self, *a):
        return self.keep(self.file.readline(*a))

    def read(self, *a):
        return self.keep(self.file.read(*a))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True # or a body waits 40 ms for the answer to its header

    def setup(self):
        super().setup()
        self.rfile = Recorder(self.rfile)

    def finish(self):
        self.rfile.tell()
        super().finish()

    def log_message(self, *a):
        pass

    def send_response(self, *a):
        self.rfile.tell() # who has the answer may look at once
        super().send_response(*a)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.rfile.tell()
        append("bodies", body + b"\n")
        mode = next_mode()
        key = self.headers.get("Authorization", "nobody")
        escaped = key.replace("-", "\\u002D").replace("4", "\\u0034") # as JSON may have it
        answers = {
            "good": lambda: message(content=content("answer")),
            "inputs": lambda: message(content=guesses(json.loads(body)["messages"][-1]["content"])),
            "repeats": lambda: message(content="and for %s." % key),
            "odd": lambda: (200, b'{"id": 1e400, "usage": {"n": 18446744073709551616, "at": NaN, "s": "\\ud800\xff"}, '
                                 b'"usage": %s, "choices": [{"message": {"index": -1e-400, "content": "an odd answer."}}]}'
                                 % (b"[" * 5000 + b"]" * 5000)),
            "refuses": lambda: message(content=None, refusal="\x1b[31mno way\nfor %s" % key),
            "calls": lambda: message(tool_calls=[{"id": "1", "type": "function"}]), # without content
            "escaped": lambda: (401, b'{"error": "no way for %s' % escaped.encode()), # it is no JSON
            "nested": lambda: (401, {"error": {"message": '{"for": "%s"}' % escaped}}),
            "429-seconds": lambda: self.later(429, "1", 1),
            "503-date": lambda: self.later(503, formatdate(int(time.time()) + 2, usegmt=True), 1),
            "429-tomorrow": lambda: self.later(429, "86400", 0),
            "page": lambda: (200, b"<html>Welcome</html>"),
            "form": lambda: (200, {"choices": [{"text": 7}]}),
            "elsewhere": lambda: (307, b"", ("Location", "/v1/elsewhere"))}
        if time.monotonic() < again:
            self.answer(400, {"error": {"message": "too early"}})
        elif mode in answers:
            self.answer(*answers[mode]())
        elif mode.isdigit(): # a status
            self.answer(int(mode), {"error": {"message": "no \x1b[31mway\nfor %s" % key}})
        else:
            self.close_connection = True
            if mode == "silent": # until the client goes away
                self.rfile.read(1)
            elif mode == "half": # in the middle of an answer
                self.answer(200, b'{"choices"', ("Content-Length", "1000"))
            elif mode == "endless":
                self.answer(200, b"")
                try:
                    while True:
                        self.wfile.write(b"x" * 65536)
                except OSError:
                    pass

    def later(self, status, when, seconds):
        global again
        again = time.monotonic() + seconds
        return status, {"error": {"message": "later"}}, ("Retry-After", when)

    def answer(self, status, body, header=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if header:
            self.send_header(*header)
        if not self.close_connection:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *a):
        pass


server = Server(("127.0.0.1", 0), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(path("port"), "w") as f:
    f.write("%d\n" % server.server_address[1])
sys.stdin.read()
