#!/usr/bin/env python3
"""`dpinfer serve` under clients of all kinds for a long time: plain and private answers, whole and streamed, keys that
are there again, refusals, bytes that are no HTTP, sockets that are half closed, reset or slow. In rounds; after each
the server is at rest, and its memory, files and threads are counted. At the end the ledger, the answers on the disk and
what clients have seen agree to the last charge.
    serve_soak.py path/to/dpinfer MODEL [SECONDS [SEED]]"""
import collections
import hashlib
import http.client
import json
import os
import random
import re
import socket
import sys
import threading
import time

import serve_support as support
from serve_support import (BUDGET, CHAT, PLAN, TEXT, Server, body_of, content, enter_folder, question, read_reply, request,
                           reset_at_close, rows, send_damaged, text_of, wait_until, write, write_records)

seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 4
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
N_CLIENTS, N_ROUNDS = 6, max(4, min(60, round(seconds / 30)))
PLAIN = {"prompt": "Ticket", "max_tokens": 8, "seed": 1}
lock = threading.Lock()
done = collections.Counter() # of actions
released = {}  # (principal, key): the reply, of keys that were answered
charged = {}   # charge: (principal, what it cost, report), of answers that clients have seen
failures = []


def check(holds, what):
    """For threads: the test fails at the end of the round."""
    if not holds:
        with lock:
            failures.append(what)


# ---- Requests -------------------------------------------------------------------------------------------------------
def send(method, path, body=None, key=None, token="alice"):
    return server.send(method, path, body, key, token)


def raw(body, path=TEXT, more=b""):
    return request(body, path, b"Authorization: Bearer alice\r\n" + more)


def plain_raw(**more):
    return raw(json.dumps({**PLAIN, **more}).encode())


def private_question(draw, **more):
    return question(draw.choice((.1, .2, .5)), draw.randrange(1, 9), **more)


def private_raw(draw, **more):
    return raw(json.dumps(private_question(draw, **more)).encode(), CHAT)


def note_answer(principal, reply):
    answer = principal, reply["privacy"]["cost"], reply["privacy"]["report"]
    with lock:
        seen = charged.setdefault(reply["privacy"]["charge"], answer)
    check(seen == answer, "one charge, two answers: %s" % reply["privacy"])


def check_code(allowed, code, reply, principal="alice"):
    """An answer that was seen is noted."""
    check(code in allowed, "found %s, expected %s: %s" % (code, allowed, reply))
    if code == 200:
        note_answer(principal, reply)


# ---- What clients do ------------------------------------------------------------------------------------------------
def plain(draw):
    code, reply = send("POST", TEXT, PLAIN)
    check(code == 503 or code == 200 and reply["choices"][0]["text"] == whole, "a plain answer: %s" % code)


def stream(draw):
    data = server.ask(plain_raw(stream=True))
    text = "".join(json.loads(line[6:])["choices"][0].get("text", "") for line in data.decode().splitlines()
                   if line.startswith("data: {") and '"choices":[{' in line)
    check(b" 503 " in data[:20] or text == whole, "a stream: %r" % data[-300:])


def leave_stream(draw):
    with server.connect() as s:
        s.sendall(plain_raw(max_tokens=200, stream=True))
        read_reply(s, draw.choice((1, 300, 1000)))
        if draw.randrange(2):
            reset_at_close(s)


def private(draw):
    principal = draw.choice(("alice", "bob"))
    check_code((200, 503), *send("POST", CHAT, private_question(draw), token=principal), principal)


def document(draw):
    check_code((200, 503), *send("POST", TEXT, {"dataset": "letters", "privacy": {"epsilon": .1, "batch": 2, "label": "a"},
                                                "prompt": "Write a ticket.", "max_tokens": 5}))


def private_stream(draw):
    with server.connect() as s:
        s.sendall(private_raw(draw, stream=True))
        data = read_reply(s, draw.choice((1, 1 << 30)))
    check(b" 200 " in data[:20] or b" 503 " in data[:20] or len(data) == 1, "a private stream: %r" % data[:300])


def repeat(draw):
    """A new key at once from two sides, or one that was answered before."""
    with lock:
        known = draw.choice(sorted(released)) if released and draw.randrange(2) else None
    if known:
        body, first = released[known]
        found = send("POST", CHAT, body, key=known[1], token=known[0])
        check(found == (200, first), "the same key: %s %s" % found)
        return
    principal, key = draw.choice(("alice", "bob")), "%x" % draw.getrandbits(64)
    body = json.dumps(private_question(draw)).encode()
    replies = []
    both = [threading.Thread(target=lambda: replies.append(send("POST", CHAT, body, key=key, token=principal)))
            for _ in range(2)]
    for t in both:
        t.start()
    for t in both:
        t.join()
    for code, reply in replies:
        check_code((200, 409, 503), code, reply, principal)
    answers = [reply for code, reply in replies if code == 200]
    check(len(answers) < 2 or answers[0] == answers[1], "two answers of one key")
    with lock:
        if answers and len(released) < 200:
            released[principal, key] = body, answers[0]


def lose_reply(draw):
    """An answer that its client does not wait for; with the same key it is read later."""
    key = "%x" % draw.getrandbits(64)
    body = json.dumps(private_question(draw)).encode()
    with server.connect() as s:
        s.sendall(raw(body, CHAT, b"Idempotency-Key: %s\r\n" % key.encode()))
        reset_at_close(s)
    check_code((200, 409, 503), *send("POST", CHAT, body, key=key))


def refused(draw):
    code, body, token = draw.choice((
        (403, private_question(draw, dataset="spent"), "alice"), (403, private_question(draw), "carol"),
        (404, private_question(draw, dataset="notes"), "alice"), (400, private_question(draw, seed=1), "alice"),
        (401, private_question(draw), "mallory"), (400, private_question(draw, privacy={}), "alice"),
        (400, private_question(draw, logprobs=True), "alice"), (400, b"{\"messages\": [", "alice"),
        (413, b" " * ((1 << 20) + 1), "alice")))
    try:
        found, reply = send("POST", CHAT, body, token=token)
    except (ConnectionError, http.client.HTTPException):
        found = 413 if code == 413 else 0 # the reply may be lost where the rest of a large body is not read
    check(found in (code, 503), "refused: %s, expected %s: %s" % (found, code, str(body)[:200]))


def look(draw):
    path = draw.choice(("/health", "/metrics", "/", "/v1/models", BUDGET, BUDGET + "/letters", BUDGET + "/spent"))
    check(send("GET", path)[0] == 200, path)
    check(send("POST", PLAN, private_question(draw))[0] == 200, "a plan")
    with lock:
        one = charged[draw.choice(sorted(charged))] if charged else None
    if one:
        code, report = send("GET", one[2], token=one[0])
        check(code == 200 and "ledger" in json.dumps(report), "a report: %s" % code)


def damaged(draw):
    send_damaged(draw, server, support.damage(draw, private_raw(draw, dataset=draw.choice(("letters", "spent")))))


def half_closed(draw):
    with server.connect() as s:
        s.sendall(plain_raw())
        s.shutdown(socket.SHUT_WR)
        data = read_reply(s)
    check(b" 503 " in data[:20] or b" 200 " in data[:20] and text_of(data) == whole, "half closed: %r" % data[-300:])


def slow(draw):
    bytes_, is_whole, n = private_raw(draw), draw.randrange(2), draw.randrange(1, 9)
    with server.connect() as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(bytes_) if is_whole else len(bytes_) // 2, n):
            s.sendall(bytes_[i:i + n])
        data = read_reply(s) if is_whole else b""
    if b" 200 " in data[:20]:
        note_answer("alice", body_of(data))


ACTIONS = (plain, stream, leave_stream, private, document, private_stream, repeat, repeat, lose_reply, refused, look, damaged,
           damaged, half_closed, slow)


def client(draw, end, first):
    """Until the end; at least those that are first."""
    while (first or time.monotonic() < end) and not failures:
        action = first.pop() if first else draw.choice(ACTIONS)
        try:
            action(draw)
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            check(False, "%s: %r" % (action.__name__, error))
        with lock:
            done[action.__name__] += 1


# ---- The server at rest ---------------------------------------------------------------------------------------------
def count():
    """KiB that the server holds, its threads, its files, its sockets."""
    proc = "/proc/%d/" % server.process.pid
    links = []
    for name in os.listdir(proc + "fd"):
        try:
            links.append(os.readlink(proc + "fd/" + name))
        except FileNotFoundError: # closed meanwhile
            pass
    links = [link for link in links if "-journal" not in link] # of a commit that goes on
    n_sockets = sum(link.startswith("socket:") for link in links)
    n_threads = int(re.search(r"Threads:\s*(\d+)", content(proc + "status")).group(1))
    return server.memory(), n_threads, len(links) - n_sockets, n_sockets


def is_at_rest(most_sockets):
    """Nothing is drawn, and there are no more sockets than that; nor more threads and files than in the first round."""
    _, n_threads, n_files, n_sockets = count()
    return (server.metric("answers_drawn") + server.metric("answers_waiting") == 0 and n_sockets <= most_sockets
            and not (rounds and (n_threads > rounds[0][2] or n_files > rounds[0][3])))


enter_folder()
write_records("letters.jsonl")
write_records("spent.jsonl", 4)
write("tokens", "".join("%s %s%s\n" % (name, hashlib.sha256(name.encode()).hexdigest(), share)
                        for name, share in (("alice", ""), ("bob", ""), ("carol", " letters=0"))))
server = Server("--dataset", "letters=letters.jsonl,epsilon=100000,delta=1e-5,batch=4,label=dept", "--dataset",
                "spent=spent.jsonl,epsilon=0.01,delta=1e-5", "--ledger", "ledger", "--tokens", "tokens", "-c", "512",
                "--parallel", "4", "--waiting", "16", "--allow-stream", token="alice")
whole = text_of(server.ask(plain_raw()))
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
    most_sockets = n_sockets if seconds > 120 and i == N_ROUNDS - 1 else 4000
    wait_until(lambda: failures or is_at_rest(most_sockets), "the server does not come to rest")
    support.check(not failures, "\n".join(failures[:10]))
    rounds.append((round(time.monotonic() - begin), *count()))
    print("%6d s  %7d KiB  %2d threads  %3d files  %4d sockets  %7d requests  %6d answers seen" %
          (*rounds[-1], sum(done.values()), len(charged)), flush=True)

# ---- What is left of it ---------------------------------------------------------------------------------------------
check = support.check
early = [r for r in rounds if r[0] <= max(rounds[0][0], seconds / 3)]
growth = rounds[-1][1] - max(r[1] for r in early)
check(growth <= (4096 if seconds > 120 else 16384), # what it takes to warm up is in the first rounds
      "memory grew by %d KiB: %s" % (growth, [r[1] for r in rounds]))
spent = {d["dataset"]: d["spent"] for d in send("GET", BUDGET)[1]["data"]}
server.stop()
ledger = dict(rows("ledger", "SELECT id, amount FROM charge WHERE counted = 1"))
found = rows("ledger.answers", "SELECT charge, amount, principal, state, id FROM answer")
answers = {row[0]: row[1:] for row in found}
check(len(found) == len(answers) and ledger == {charge: row[0] for charge, row in answers.items()},
      "%d charges, %d answers: not one for one" % (len(ledger), len(found)))
check(all(row[2] == 2 for row in answers.values()), "an answer that was begun is not released")
for charge, (principal, cost, report) in charged.items():
    amount, who, _, name = answers.get(charge, (0, "", 0, ""))
    check(who == principal and abs(amount / 2**40 - cost) <= 1e-12 and report.endswith(name),
          "an answer that was seen is not the ledger's: charge %d" % charge)
total = sum(ledger.values()) / 2**40
check(abs(spent["letters"] - total) <= 1e-9 * total and spent["spent"] == 0,
      "spent: %s, and the ledger has %.12g" % (spent, total))
check(all(done[a.__name__] for a in ACTIONS), "not all was done: %s" % done)
print("serve_soak: %d s, %d requests, %d charges, %d of them seen; memory %+d KiB after the first third; %s" %
      (seconds, sum(done.values()), len(ledger), len(charged), growth, dict(done)))
