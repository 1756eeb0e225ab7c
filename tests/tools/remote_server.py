#!/usr/bin/env python3
"""An OpenAI-style server for tests: remote_server.py FOLDER [CERTIFICATE KEY]

Listens on a free port of 127.0.0.1 and writes it to the
pipe FOLDER/port. Every byte that comes is appended
to FOLDER/bytes, request by request, and each body to FOLDER/bodies, a line each. FOLDER/mode says how it behaves, a word
for each request, the last one for all that follow; a file
FOLDER/restart begins with the first word again:
  good      answers with the text of FOLDER/answer
  inputs    answers with the list of words in the last line but one of the prompt, as a model might
  repeats   answers with the key it got
  refuses   200 with content null and a refusal that repeats the key it got
  calls     200 with a call of a tool, without content
  STATUS    answers 401, 429, 500 ... with an error that repeats the key it got
  escaped   401 with the key in escapes of JSON, in what is none
  nested    401 with the key in escapes of JSON, in a message
  wait      429 with Retry-After: 1
  close     closes the connection without a word
  half      closes in the middle of an answer
  silent    says nothing until the client goes away
  page      200 with a page of HTML
  form      200 with JSON of another form
  endless   200 with an answer that never ends
  elsewhere 307 to another path
It ends with its standard input.
"""
import http.server
import json
import os
import socketserver
import ssl
import sys
import threading

folder = sys.argv[1]
lock = threading.Lock()
count = 0


def path(name):
    return os.path.join(folder, name)


def next_mode():
    global count
    with lock:
        if os.path.exists(path("restart")):
            os.unlink(path("restart"))
            count = 0
        modes = open(path("mode")).read().split()
        mode = modes[min(count, len(modes) - 1)]
        count += 1
    return mode


class Recorder:
    """A file that keeps what is read from it, until it is told: a request of one connection is
    whole, whatever comes on others meanwhile."""

    def __init__(self, file):
        self.file = file
        self.data = b""

    def keep(self, data):
        self.data += data
        return data

    def tell(self):
        with lock, open(path("bytes"), "ab") as f:
            f.write(self.data)
        self.data = b""

    def readline(self, *a):
        return self.keep(self.file.readline(*a))

    def read(self, *a):
        return self.keep(self.file.read(*a))

    def close(self):
        self.file.close()

    @property
    def closed(self):
        return self.file.closed


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.rfile = Recorder(self.rfile)

    def finish(self):
        self.rfile.tell()
        super().finish()

    def log_message(self, *a):
        pass

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def inputs(self, body):
        prompt = json.loads(body)["messages"][-1]["content"]
        words = json.loads(prompt.split("\n")[-2])
        lines = ["[%s], # \"%s\"" % (json.dumps(w.upper()), "no guess") for w in words]
        self.good("Here they are:\n[\n" + "\n".join(lines) + "\n]\n")

    def good(self, text=None):
        self.message({"content": text or open(path("answer"), encoding="utf-8").read()})

    def message(self, fields):
        choice = {"index": 0, "message": {"role": "assistant", **fields}}
        self.answer(200, json.dumps({"object": "chat.completion", "choices": [choice]}).encode())

    def endless(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 65536)
        except OSError:
            pass
        self.close_connection = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.rfile.tell()
        with lock, open(path("bodies"), "ab") as f:
            f.write(body + b"\n")
        mode = next_mode()
        key = self.headers.get("Authorization", "nobody")
        escaped = key.replace("-", "\\u002D").replace("4", "\\u0034")
        if mode == "good":
            self.good()
        elif mode == "repeats":
            self.good("and for %s." % key)
        elif mode == "refuses":
            self.message({"content": None, "refusal": "\x1b[31mno way\nfor %s" % key})
        elif mode == "calls":
            self.message({"tool_calls": [{"id": "1", "type": "function"}]})
        elif mode == "escaped":
            self.answer(401, b'{"error": "no way for %s' % escaped.encode())
        elif mode == "nested":
            self.answer(401, json.dumps({"error": {"message": '{"for": "%s"}' % escaped}}).encode())
        elif mode == "inputs":
            self.inputs(body)
        elif mode == "wait":
            self.answer(429, b'{"error": {"message": "slow down"}}', [("Retry-After", "1")])
        elif mode.isdigit():
            words = "no \x1b[31mway\nfor %s" % key
            self.answer(int(mode), json.dumps({"error": {"message": words}}).encode())
        elif mode == "close":
            self.close_connection = True
        elif mode == "half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices"')
            self.close_connection = True
        elif mode == "silent":
            self.rfile.read(1)
            self.close_connection = True
        elif mode == "page":
            self.answer(200, b"<html>Welcome</html>")
        elif mode == "form":
            self.answer(200, b'{"choices": [{"text": 7}]}')
        elif mode == "elsewhere":
            self.answer(307, b"", [("Location", "/v1/elsewhere")])
        else:
            self.endless()


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

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
