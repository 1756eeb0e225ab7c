"""What the tests of `dpinfer serve` in Python share: the server, requests, sockets, what the server holds. The program and
the model are the first two arguments of each test; it runs in a folder of its own, which is removed at its end."""
import atexit
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

program, model = (os.path.abspath(p) for p in sys.argv[1:3])
CHAT, TEXT, BUDGET, PLAN = "/v1/chat/completions", "/v1/completions", "/v1/privacy/budget", "/v1/privacy/plan"
LIMIT = 600 # seconds for what takes one or a few on an idle machine
n_passed = 0
children = [] # processes that end with the test


def enter_folder():
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


@atexit.register
def end_children():
    for child in children:
        child.kill()
        child.wait()


def check(holds, what):
    global n_passed
    if not holds:
        sys.exit("FAILED: %s" % (what,))
    n_passed += 1


def wait_until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            check(False, what)
        time.sleep(.01)


def passed(more=""):
    print("%s: %d passed%s" % (os.path.basename(sys.argv[0])[:-3], n_passed, more))


# ---- Files ----------------------------------------------------------------------------------------------------------
def content(path):
    with open(path) as f:
        return f.read()


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def write_records(path, n=40, n_units=13):
    write(path, "".join(json.dumps({"text": "Ticket %d: the printer of room %d does not print." % (i * 7919, i),
                                    "dept": "ab"[i % 2], "who": "p%d" % (i % n_units)}) + "\n" for i in range(n)))


def rows(file, query):
    database = sqlite3.connect(file, timeout=LIMIT)
    found = database.execute(query).fetchall()
    database.commit()
    database.close()
    return found


def run(*words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=LIMIT)


def verify(*words):
    """What `verify` says, which accepts it."""
    verified = run("verify", *words, "--ledger", "ledger")
    check(verified.returncode == 0, "verify: %s" % verified.stderr)
    return verified.stdout


# ---- The server -----------------------------------------------------------------------------------------------------
def question(epsilon=1, n_tokens=6, **more):
    return {"dataset": "letters", "privacy": {"epsilon": epsilon}, "max_tokens": n_tokens,
            "messages": [{"role": "user", "content": "Which problem do people have?"}], **more}


class Server:
    """With these options. It may die before it has told its address where `environment` says so. Metrics are read by
    `token`."""

    def __init__(self, *options, environment=None, token=None):
        self.token = token
        with open("err", "w") as err:
            self.process = subprocess.Popen([program, "serve", model, "--port", "0", "-t", "1", *options], stderr=err,
                                            stdout=subprocess.PIPE, env={**os.environ, **(environment or {})})
        children.append(self.process)
        self.address = self.process.stdout.readline().decode().strip()
        self.port = int(self.address.rsplit(":", 1)[1]) if self.address else 0
        check(self.port or environment, "the server does not begin: " + content("err"))

    def send(self, method, path, body=None, key=None, token=None, again=None):
        """Status and body, which is read where it is an object of JSON."""
        head = {"Content-Type": "application/json"}
        if key is not None:
            head["Idempotency-Key"] = key
        if token is not None:
            head["Authorization"] = "Bearer " + token
        if again is not None: # as clients of OpenAI count their retries
            head["X-Stainless-Retry-Count"] = str(again)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        connection.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body), head)
        reply = connection.getresponse()
        text = reply.read()
        self.headers = reply.headers
        connection.close()
        return reply.status, json.loads(text) if text.startswith(b"{") else text.decode(errors="replace")

    def get(self, path, **who):
        return self.send("GET", path, **who)

    def chat(self, body=None, **who):
        return self.send("POST", CHAT, question() if body is None else body, **who)

    def plan(self, *of_question):
        code, plan = self.send("POST", PLAN, question(*of_question))
        check(code == 200, "a plan: %s" % plan)
        return plan

    def budget(self, **who):
        """That of the dataset `letters`."""
        code, budget = self.get(BUDGET + "/letters", **who)
        check(code == 200, "a budget: %s" % budget)
        return budget

    def metric(self, name):
        return float(re.search("^dpinfer_%s (\\S+)$" % re.escape(name), self.get("/metrics", token=self.token)[1], re.M).group(1))

    def memory(self):
        """KiB that it holds."""
        return int(re.search(r"VmRSS:\s*(\d+)", content("/proc/%d/status" % self.process.pid)).group(1))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), LIMIT)

    def ask(self, *parts):
        """The reply, as it came, to what is sent by a connection of its own."""
        with self.connect() as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                s.sendall(part)
            return read_reply(s)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(LIMIT) == 0, "its end: " + content("err"))


# ---- Sockets --------------------------------------------------------------------------------------------------------
def request(body, path=TEXT, more=b""):
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s" % (
        path.encode(), len(body), more, body)


def read_reply(s, most=1 << 30):
    """What comes until the server closes, or has sent as much as it said, or `most` bytes."""
    data = b""
    while len(data) < most:
        head, found, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if found and length and len(body) >= int(length.group(1)) or b"chunked" in head and data.endswith(b"0\r\n\r\n"):
            break
        try:
            part = s.recv(65536)
        except ConnectionResetError:
            break
        if not part:
            break
        data += part
    return data


def body_of(reply):
    return json.loads(reply.partition(b"\r\n\r\n")[2])


def text_of(reply):
    return body_of(reply)["choices"][0]["text"]


def reset_at_close(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def damage(draw, data):
    """Bytes that were changed, put in, taken out, cut."""
    data = bytearray(data)
    for _ in range(draw.randrange(1, 6)):
        how, at = draw.randrange(5), draw.randrange(len(data) or 1)
        if how == 0 and data:
            data[at] = draw.randrange(256)
        elif how == 1:
            data[at:at] = draw.randbytes(draw.randrange(9))
        elif how == 2:
            del data[at:at + draw.randrange(20)]
        elif how == 3:
            data[at:at] = draw.choice((b"\r\n", b"\0", b'"', b"{", b"[" * 3000, b"\xff\xfe", b"1e999", b"-1", b"\\u0000"))
        else:
            del data[at + 1:]
    return bytes(data)


def send_damaged(draw, server, data):
    """Whatever becomes of it."""
    with server.connect() as s:
        try:
            s.sendall(data)
            if draw.randrange(2):
                s.shutdown(socket.SHUT_WR)
            if draw.randrange(2):
                reset_at_close(s)
        except OSError: # the server has closed it
            pass
