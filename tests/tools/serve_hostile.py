#!/usr/bin/env python3
"""Clients of `dpinfer serve` that mean no good, or are only slow: a thousand connections, requests that stop
half-way, sockets that are closed on one side, bytes that are no HTTP and no JSON. The server answers the next client
all the same, and its memory does not grow.
    serve_hostile.py path/to/dpinfer MODEL path/to/far_deadline.so [SEED]"""
import os
import random
import socket
import sys

from serve_support import (CHAT, TEXT, Server, check, damage, enter_folder, passed, read_reply, request, reset_at_close,
                           send_damaged, text_of)

far_deadline = os.path.abspath(sys.argv[3])
draw = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
HOST, TYPED = b"Host: localhost\r\n", b"Content-Type: application/json\r\n"


def prompt(n_tokens, more=b'"seed": 1'):
    return request(b'{"prompt": "Ticket", "max_tokens": %d, %s}' % (n_tokens, more))


def connect(data, n=1):
    """n connections, each with this."""
    crowd = [server.connect() for _ in range(n)]
    for s in crowd:
        s.sendall(data)
    return crowd


def check_reply(s, what):
    with s:
        check(text_of(read_reply(s)) == whole, what)


def check_next(what):
    check(text_of(server.ask(question)) == whole, "an answer " + what)


enter_folder()
server = Server("--waiting", "2000")
question = prompt(20)
whole = text_of(server.ask(question))
planned = server.metric("memory_idle_bytes") / 1024
check(.85 * planned < server.memory() < 1.15 * planned, "memory: %d KiB, and %d are planned" % (server.memory(), planned))

# A thousand connections that stay, each with half a request; and then each with the rest of it.
crowd = connect(question[:60], 1000)
check_next("beside a thousand connections")
for s in crowd:
    s.sendall(question[60:])
for s in crowd:
    check_reply(s, "one of a thousand answers")


# A client that closes its side still reads its answer, also after a wait; one that reads nothing holds nobody up.
def check_half_closed():
    s, = connect(question)
    s.shutdown(socket.SHUT_WR)
    check_reply(s, "the answer of a socket that is half closed")


check_half_closed()
longer = connect(prompt(200), 8) # as many as are drawn at a time
check_half_closed()
for s in longer:
    read_reply(s)
    s.close()
deaf = [server.connect() for _ in range(20)]
for s in deaf:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    s.sendall(prompt(200, b'"stream": true'))
check_next("beside clients that read nothing")
for s in deaf:
    reset_at_close(s)
    s.close()
check(text_of(server.ask(*(question[i:i + 1] for i in range(len(question))))) == whole, "a request byte by byte")


def hostile():
    """One connection with something that no client means."""
    body = b'{"messages": [{"role": "user", "content": "Ticket"}], "max_tokens": 2, "seed": 1, "stream": %s}' % draw.choice(
        (b"true", b"false"))
    path = draw.choice((TEXT, CHAT, "/health", "/metrics"))
    more = draw.choice((b"", b"Expect: 100-continue\r\n", b"Transfer-Encoding: chunked\r\n",
                        b"Content-Length: 99999999999999999999\r\n", b"X: " + b"y" * 40000 + b"\r\n"))
    send_damaged(draw, server, request(damage(draw, body), path) if draw.randrange(2) else
                 damage(draw, request(body, path, more)))


for i in range(2000):
    hostile()
    if i >= 500 and i % 100 == 0: # its answer comes when it has taken those before
        check_next("among hostile clients")
    if i == 500:
        before = server.memory()
check_next("after hostile clients")
check(server.memory() < before + 4096, "memory grew from %d to %d KiB" % (before, server.memory()))

# Requests of which a proxy may think that they end elsewhere, or are for another: refused, and nothing behind them read.
for fields, words in ((b"", b"Host: found 0"), (HOST + HOST, b"Host: found 2"),
                      (HOST + TYPED + b"Content-Length: 2\r\nContent-Length: 30\r\n", b"Content-Length: found 2"),
                      (HOST + TYPED + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding")):
    s, = connect(b"POST /v1/completions HTTP/1.1\r\n%s\r\n{}GET /health HTTP/1.1\r\n%s\r\n" % (fields, HOST))
    reply = read_reply(s)
    check(reply.startswith(b"HTTP/1.1 400 ") and words in reply, "%s: %s" % (fields, reply))
    check(b"connection: close" in reply.lower() and read_reply(s) == b"", "what follows: %s" % fields)
    s.close()
check(server.ask(b"GET /health HTTP/1.0\r\n\r\n").split(b" ")[1] == b"200", "HTTP/1.0 has no Host")

server.stop()

# Half a request holds up no end: clients have ten seconds for replies (here a day), and there is none to come.
server = Server(environment={"LD_PRELOAD": far_deadline})
s, = connect(question[:-10])
check_next("beside half a request")
server.stop()
passed()
