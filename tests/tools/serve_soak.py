#!/usr/bin/env python3
"""`dpinfer serve` under clients of all kinds for a long time: plain and private answers, whole and streamed, keys that
are there again, refusals, bytes that are no HTTP, sockets that are half closed, reset or slow. In rounds; after each
the server is at rest, and its memory, files and threads are counted. At the end the ledger, the answers on the disk and
what clients have seen agree to the last charge.
    serve_soak.py path/to/dpinfer MODEL [SECONDS [SEED]]"""
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

program, model = (os.path.abspath(p) for p in sys.argv[1:3])
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 10
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
N_CLIENTS, N_ROUNDS = 6, max(4, min(60, round(seconds / 30)))
CHAT, TEXT, BUDGET = "/v1/chat/completions", "/v1/completions", "/v1/privacy/budget"
lock = threading.Lock()
done = {}      # action: how often
released = {}  # (principal, key): the reply, of keys that were answered
charged = {}   # charge: (principal, what it cost, report), of answers that clients have seen
failures = []


def fail(what):
    server.kill()
    sys.exit("FAILED: " + what)


def check(holds, what):
    if not holds:
        with lock:
            failures.append(what)


# ---- Requests -------------------------------------------------------------------------------------------------------
def send(method, path, body=None, key=None, token="alice"):
    head = {"Content-Type": "application/json"}
    if token:
        head["Authorization"] = "Bearer " + token
    if key:
        head["Idempotency-Key"] = key
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body), head)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, json.loads(text) if text.startswith(b"{") else text.decode(errors="replace")


def raw(body, path=TEXT, more=b"", token=b"alice"):
    return (b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
            b"Content-Length: %d\r\n%s\r\n%s" % (path.encode(), token, len(body), more, body))


def connect():
    return socket.create_connection(("127.0.0.1", port), 300)


def read_some(s, most=1 << 30):
    """What comes until the other side closes or has sent as much as it said, or `most` bytes."""
    data = b""
    while len(data) < most:
        head, found, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if found and length and len(body) >= int(length.group(1)):
            break
        if data.endswith(b"0\r\n\r\n") and b"chunked" in head:
            break
        try:
            part = s.recv(65536)
        except ConnectionResetError:
            break
        if not part:
            break
        data += part
    return data


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    s.close()


def question(draw, dataset="letters", epsilon=None, **more):
    return {"dataset": dataset, "privacy": {"epsilon": epsilon or draw.choice((.1, .2, .5))},
            "max_tokens": draw.randrange(1, 9), "messages": [{"role": "user", "content": "Which problem do people have?"}],
            **more}


def note_answer(principal, reply):
    privacy = reply["privacy"]
    with lock:
        seen = charged.setdefault(privacy["charge"], (principal, privacy["cost"], privacy["report"]))
    check(seen == (principal, privacy["cost"], privacy["report"]), "one charge, two answers: %s" % privacy)


# ---- What clients do ------------------------------------------------------------------------------------------------
def plain(draw):
    code, reply = send("POST", TEXT, {"prompt": "Ticket", "max_tokens": 8, "seed": 1})
    check(code in (200, 503) and (code == 503 or reply["choices"][0]["text"] == whole), "a plain answer: %s" % code)


def stream(draw):
    s = connect()
    s.sendall(raw(b'{"prompt": "Ticket", "max_tokens": 8, "seed": 1, "stream": true}'))
    data = read_some(s)
    s.close()
    text = "".join(json.loads(line[6:])["choices"][0].get("text", "") for line in data.decode().split("\r\n")
                   for line in line.split("\n") if line.startswith("data: {") and '"choices":[{' in line)
    check(b" 503 " in data[:20] or text == whole, "a stream: %r" % data[-300:])


def leave_stream(draw):
    s = connect()
    s.sendall(raw(b'{"prompt": "Ticket", "max_tokens": 200, "stream": true}'))
    read_some(s, draw.choice((1, 300, 1000)))
    (reset if draw.randrange(2) else socket.socket.close)(s)


def private(draw):
    principal = draw.choice(("alice", "bob"))
    code, reply = send("POST", CHAT, question(draw), token=principal)
    check(code in (200, 503), "a private answer: %s %s" % (code, reply))
    if code == 200:
        note_answer(principal, reply)


def document(draw):
    code, reply = send("POST", TEXT, {"dataset": "letters", "privacy": {"epsilon": .1, "batch": 2, "label": "a"},
                                      "prompt": "Write a ticket.", "max_tokens": 5})
    check(code in (200, 503), "a document: %s %s" % (code, reply))
    if code == 200:
        note_answer("alice", reply)


def private_stream(draw):
    s = connect()
    s.sendall(raw(json.dumps(question(draw, stream=True)).encode(), CHAT))
    data = read_some(s, draw.choice((1, 1 << 30)))
    check(b" 200 " in data[:20] or b" 503 " in data[:20] or len(data) == 1, "a private stream: %r" % data[:300])
    s.close()


def repeat(draw):
    """A new key at once from two sides, or one that was answered before."""
    with lock:
        known = draw.choice(sorted(released)) if released and draw.randrange(2) else None
    if known:
        body, first = released[known]
        code, reply = send("POST", CHAT, body, key=known[1], token=known[0])
        check((code, reply) == (200, first), "the same key: %s %s" % (code, reply))
        return
    principal, key = draw.choice(("alice", "bob")), "%x" % draw.getrandbits(64)
    body = json.dumps(question(draw)).encode()
    replies = []
    both = [threading.Thread(target=lambda: replies.append(send("POST", CHAT, body, key=key, token=principal)))
            for _ in range(2)]
    for t in both:
        t.start()
    for t in both:
        t.join()
    answers = [reply for code, reply in replies if code == 200]
    check(all(code in (200, 409, 503) for code, reply in replies), "two at once: %s" % replies)
    check(len(answers) < 2 or answers[0] == answers[1], "two answers of one key")
    if answers:
        note_answer(principal, answers[0])
        with lock:
            if len(released) < 200:
                released[principal, key] = body, answers[0]


def lose_reply(draw):
    """An answer that its client does not wait for; with the same key it is read later."""
    key = "%x" % draw.getrandbits(64)
    body = json.dumps(question(draw)).encode()
    s = connect()
    s.sendall(raw(body, CHAT, b"Idempotency-Key: %s\r\n" % key.encode()))
    reset(s)
    code, reply = send("POST", CHAT, body, key=key)
    check(code in (200, 409, 503), "a key after a reset: %s %s" % (code, reply))
    if code == 200:
        note_answer("alice", reply)


def refused(draw):
    code, body, token = draw.choice((
        (403, question(draw, "spent"), "alice"), (403, question(draw), "carol"),
        (404, question(draw, "notes"), "alice"), (400, question(draw, seed=1), "alice"), (401, question(draw), "mallory"),
        (400, question(draw, privacy={}), "alice"), (400, question(draw, logprobs=True), "alice"),
        (400, b"{\"messages\": [", "alice"), (413, b" " * ((1 << 20) + 1), "alice")))
    try:
        found, reply = send("POST", CHAT, body, token=token)
    except (ConnectionError, http.client.HTTPException):
        found = 413 if code == 413 else 0 # the reply may be lost where the rest of a large body is not read
    check(found in (code, 503), "refused: %s, expected %s: %s" % (found, code, str(body)[:200]))


def look(draw):
    path = draw.choice(("/health", "/metrics", "/", "/v1/models", BUDGET, BUDGET + "/letters", BUDGET + "/spent"))
    check(send("GET", path)[0] == 200, path)
    check(send("POST", "/v1/privacy/plan", question(draw))[0] == 200, "a plan")
    with lock:
        one = charged[draw.choice(sorted(charged))] if charged else None
    if one:
        code, report = send("GET", one[2], token=one[0])
        check(code == 200 and "ledger" in json.dumps(report), "a report: %s" % code)


def damage(draw):
    bytes_ = bytearray(raw(json.dumps(question(draw, draw.choice(("letters", "spent")))).encode(), CHAT))
    for _ in range(draw.randrange(1, 6)):
        how, at = draw.randrange(4), draw.randrange(len(bytes_) or 1)
        if how == 0 and bytes_:
            bytes_[at] = draw.randrange(256)
        elif how == 1:
            bytes_[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(9)))
        elif how == 2:
            del bytes_[at:at + draw.randrange(20)]
        else:
            bytes_[at:at] = draw.choice((b"\r\n", b"\0", b'"', b"{", b"[" * 3000, b"\xff\xfe", b"1e999", b"\\u0000"))
    s = connect()
    try:
        s.sendall(bytes_)
        if draw.randrange(2):
            s.shutdown(socket.SHUT_WR)
    except OSError: # the server has closed it
        pass
    (reset if draw.randrange(2) else socket.socket.close)(s)


def half_closed(draw):
    s = connect()
    s.sendall(raw(b'{"prompt": "Ticket", "max_tokens": 8, "seed": 1}'))
    s.shutdown(socket.SHUT_WR)
    data = read_some(s)
    s.close()
    check(b" 503 " in data[:20] or b" 200 " in data[:20] and
          json.loads(data.partition(b"\r\n\r\n")[2])["choices"][0]["text"] == whole,
          "a socket that is half closed: %r" % data)


def slow(draw):
    s = connect()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bytes_ = raw(json.dumps(question(draw)).encode(), CHAT)
    whole_, n = draw.randrange(2), draw.randrange(1, 9)
    for i in range(0, len(bytes_) if whole_ else len(bytes_) // 2, n):
        s.sendall(bytes_[i:i + n])
    data = read_some(s) if whole_ else b""
    if b" 200 " in data[:20]:
        note_answer("alice", json.loads(data.partition(b"\r\n\r\n")[2]))
    s.close()


ACTIONS = (plain, stream, leave_stream, private, document, private_stream, repeat, repeat, lose_reply, refused, look, damage,
           damage, half_closed, slow)


def client(draw, end, first):
    """Until the end; at least those that are first."""
    while (first or time.monotonic() < end) and not failures:
        action = first.pop() if first else draw.choice(ACTIONS)
        try:
            action(draw)
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            check(False, "%s: %r" % (action.__name__, error))
        with lock:
            done[action.__name__] = done.get(action.__name__, 0) + 1


# ---- The server at rest ---------------------------------------------------------------------------------------------
def metric(name):
    return float(re.search(r"^dpinfer_%s (\S+)$" % name, send("GET", "/metrics")[1], re.M).group(1))


def count():
    """KiB that the server holds, its threads, its files, its sockets."""
    with open("/proc/%d/status" % server.pid) as f:
        status = f.read()
    links = []
    for name in os.listdir("/proc/%d/fd" % server.pid):
        try:
            links.append(os.readlink("/proc/%d/fd/%s" % (server.pid, name)))
        except FileNotFoundError: # closed meanwhile
            pass
    links = [link for link in links if "-journal" not in link] # of a commit that goes on
    n_sockets = sum(link.startswith("socket:") for link in links)
    return (int(re.search(r"VmRSS:\s*(\d+)", status).group(1)), int(re.search(r"Threads:\s*(\d+)", status).group(1)),
            len(links) - n_sockets, n_sockets)


def rest(n_sockets):
    """After what is drawn is over, and there are no more sockets than that; nor more threads and files than in the first
    round, once what a request has opened is closed."""
    end = time.monotonic() + 120
    while (metric("answers_drawn") + metric("answers_waiting") > 0 or count()[3] > n_sockets
           or (rounds and (count()[1] > rounds[0][2] or count()[2] > rounds[0][3]))):
        if time.monotonic() > end:
            fail("the server does not come to rest: %s, %d answers are drawn" % (count(), metric("answers_drawn")))
    return count()


folder = tempfile.mkdtemp()
os.chdir(folder)
for name, n in (("letters", 40), ("spent", 4)):
    with open(name + ".jsonl", "w") as f:
        for i in range(n):
            f.write(json.dumps({"text": "Ticket %d: the printer of room %d does not print." % (i * 7919, i),
                                "dept": "ab"[i % 2]}) + "\n")
with open("tokens", "w") as f:
    for name, share in (("alice", ""), ("bob", ""), ("carol", " letters=0")):
        f.write("%s %s%s\n" % (name, hashlib.sha256(name.encode()).hexdigest(), share))
server = subprocess.Popen(
    [program, "serve", model, "--dataset", "letters=letters.jsonl,epsilon=100000,delta=1e-5,batch=4,label=dept",
     "--dataset", "spent=spent.jsonl,epsilon=0.01,delta=1e-5", "--ledger", "ledger", "--tokens", "tokens", "--port", "0",
     "-t", "1", "-c", "512", "--parallel", "4", "--waiting", "16", "--allow-stream"], stdout=subprocess.PIPE)
address = server.stdout.readline().decode()
if not address:
    print("skipped: the server does not begin")
    sys.exit(77)
port = int(address.rsplit(":", 1)[1])
whole = send("POST", TEXT, {"prompt": "Ticket", "max_tokens": 8, "seed": 1})[1]["choices"][0]["text"]
n_sockets = count()[3]
rounds = []
begin = time.monotonic()
for i in range(N_ROUNDS):
    end = begin + (i + 1) * seconds / N_ROUNDS
    clients = [threading.Thread(target=client, args=(random.Random(seed * 1000000 + i * 1000 + k), end,
                                                     list(ACTIONS[k::N_CLIENTS]) if i == 0 else []))
               for k in range(N_CLIENTS)]
    for t in clients:
        t.start()
    for t in clients:
        t.join()
    # A connection whose client has gone in the midst of a request may stay until it was idle for 60 seconds.
    rounds.append((round(time.monotonic() - begin),) + rest(n_sockets if seconds > 120 and i == N_ROUNDS - 1 else 4000))
    if failures:
        fail("\n".join(failures[:10]))
    print("%6d s  %7d KiB  %2d threads  %3d files  %4d sockets  %7d requests  %6d answers seen" %
          (rounds[-1] + (sum(done.values()), len(charged))), flush=True)

# ---- What is left of it ---------------------------------------------------------------------------------------------
early = [r for r in rounds if r[0] <= max(rounds[0][0], seconds / 3)]
growth = rounds[-1][1] - max(r[1] for r in early)
if growth > (4096 if seconds > 120 else 16384): # what it takes to warm up is in the first rounds
    fail("memory grew by %d KiB: %s" % (growth, [r[1] for r in rounds]))
budgets = {d["dataset"]: d for d in send("GET", BUDGET)[1]["data"]}
server.send_signal(signal.SIGTERM)
if server.wait(60) != 0:
    fail("its end: %s" % server.returncode)
ledger = {row[0]: row[1] for row in sqlite3.connect("ledger").execute("SELECT id, amount FROM charge WHERE counted = 1")}
answers = {row[0]: row[1:] for row in sqlite3.connect("ledger.answers").execute(
    "SELECT charge, amount, principal, state, id FROM answer")}
n_rows = sqlite3.connect("ledger.answers").execute("SELECT count(*) FROM answer").fetchone()[0]
if n_rows != len(answers) or ledger != {charge: row[0] for charge, row in answers.items()}:
    fail("%d charges, %d answers: not one for one" % (len(ledger), n_rows))
if any(row[2] != 2 for row in answers.values()):
    fail("an answer that was begun is not released")
for charge, (principal, cost, report) in charged.items():
    amount, who, _, name = answers.get(charge, (0, "", 0, ""))
    if who != principal or abs(amount / 2**40 - cost) > 1e-12 or not report.endswith(name):
        fail("an answer that was seen is not the ledger's: charge %d" % charge)
total = sum(ledger.values()) / 2**40
if abs(budgets["letters"]["spent"] - total) > 1e-9 * total or budgets["spent"]["spent"] != 0:
    fail("spent: %s, and the ledger has %.12g" % (budgets["letters"]["spent"], total))
shutil.rmtree(folder)
if min(done.get(a.__name__, 0) for a in ACTIONS) == 0:
    fail("not all was done: %s" % done)
print("serve_soak: %d s, %d requests, %d charges, %d of them seen; memory %+d KiB after the first third; %s" %
      (seconds, sum(done.values()), len(ledger), len(charged), growth, done))
