#!/usr/bin/env python3
"""Clients of `dpinfer serve` that mean no good, or are only slow: a thousand connections, requests that stop
half-way, sockets that are closed on one side, bytes that are no HTTP and no JSON. The server answers the next client
all the same, and its memory does not grow.
    serve_hostile.py path/to/dpinfer MODEL [SEED]"""
import json
import random
import re
import signal
import socket
import subprocess
import sys
import time

program, model = sys.argv[1:3]
draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
n_passed = 0


def check(holds, what):
    global n_passed
    if not holds:
        server.kill()
        sys.exit("FAILED: " + what)
    n_passed += 1


def connect():
    s = socket.create_connection(("127.0.0.1", port), 60)
    return s


def read_all(s):
    """What comes until the server closes, or has sent as much as it said."""
    data = b""
    while True:
        head, found, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if found and length and len(body) >= int(length.group(1)):
            return data
        try:
            part = s.recv(65536)
        except ConnectionResetError:
            return data
        if not part:
            return data
        data += part


def request(body, path="/v1/completions", more=b""):
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s" % (
        path.encode(), len(body), more, body)


def ask(n_tokens=3):
    s = connect()
    s.sendall(request(b'{"prompt": "Ticket", "max_tokens": %d, "seed": 1}' % n_tokens))
    reply = read_all(s)
    s.close()
    return reply


def memory():
    """Kilobytes that the server holds."""
    with open("/proc/%d/status" % server.pid) as status:
        return int(re.search(r"VmRSS:\s*(\d+)", status.read()).group(1))


def text_of(reply):
    return json.loads(reply.partition(b"\r\n\r\n")[2])["choices"][0]["text"]


server = subprocess.Popen([program, "serve", model, "--port", "0", "-t", "1", "--waiting", "2000"], stdout=subprocess.PIPE)
address = server.stdout.readline().decode()
if not address:
    print("skipped: the server does not begin")
    sys.exit(77)
port = int(address.rsplit(":", 1)[1])
whole = text_of(ask(20))
s = connect()
s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
metrics = read_all(s).decode()
s.close()
planned = float(re.search(r"^dpinfer_memory_idle_bytes (\S+)$", metrics, re.M).group(1)) / 1024
check(.85 * planned < memory() < 1.15 * planned, "memory: %d KiB, and %d are planned" % (memory(), planned))

# A thousand connections that stay, each with half a request; and then each with the rest of it.
crowd = [connect() for _ in range(1000)]
question = request(b'{"prompt": "Ticket", "max_tokens": 20, "seed": 1}')
for s in crowd:
    s.sendall(question[:60])
check(text_of(ask(20)) == whole, "an answer beside a thousand connections")
for s in crowd:
    s.sendall(question[60:])
for s in crowd:
    check(text_of(read_all(s)) == whole, "one of a thousand answers")
for s in crowd:
    s.close()

# A client that closes its side still reads its answer; one that reads nothing holds nobody up.
s = connect()
s.sendall(question)
s.shutdown(socket.SHUT_WR)
check(text_of(read_all(s)) == whole, "the answer of a socket that is half closed")
longer = [connect() for _ in range(8)] # as many as are drawn at a time
for s in longer:
    s.sendall(request(b'{"prompt": "Ticket", "max_tokens": 200, "seed": 1}'))
s = connect()
s.sendall(question)
s.shutdown(socket.SHUT_WR)
check(text_of(read_all(s)) == whole, "the answer of a socket that is half closed, after a wait")
for s in longer:
    read_all(s)
    s.close()
deaf = [connect() for _ in range(20)]
for s in deaf:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    s.sendall(request(b'{"prompt": "Ticket", "max_tokens": 200, "stream": true}'))
check(text_of(ask(20)) == whole, "an answer beside clients that read nothing")
for s in deaf:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
    s.close()
# A byte at a time.
s = connect()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for i in range(len(question)):
    s.sendall(question[i:i + 1])
check(text_of(read_all(s)) == whole, "a request byte by byte")


def damage(bytes_):
    bytes_ = bytearray(bytes_)
    for _ in range(draw.randrange(1, 6)):
        how, at = draw.randrange(5), draw.randrange(len(bytes_) or 1)
        if how == 0 and bytes_:
            bytes_[at] = draw.randrange(256)
        elif how == 1:
            bytes_[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(9)))
        elif how == 2:
            del bytes_[at:at + draw.randrange(20)]
        elif how == 3:
            bytes_[at:at] = draw.choice((b"\r\n", b"\0", b'"', b"{", b"[" * 3000, b"\xff\xfe", b"1e999", b"-1", b"\\u0000"))
        else:
            bytes_ = bytes_[:at + 1]
    return bytes(bytes_)


def hostile():
    """One connection with something that no client means."""
    body = b'{"messages": [{"role": "user", "content": "Ticket"}], "max_tokens": 2, "seed": 1, "stream": %s}' % draw.choice(
        (b"true", b"false"))
    path = draw.choice(("/v1/completions", "/v1/chat/completions", "/health", "/metrics"))
    if draw.randrange(2):
        bytes_ = request(damage(body), path)
    else:
        bytes_ = damage(request(body, path, draw.choice((b"", b"Expect: 100-continue\r\n", b"Transfer-Encoding: chunked\r\n",
                                                        b"Content-Length: 99999999999999999999\r\n",
                                                        b"X: " + b"y" * 40000 + b"\r\n"))))
    s = connect()
    try:
        s.sendall(bytes_)
        if draw.randrange(2):
            s.shutdown(socket.SHUT_WR)
        if draw.randrange(2):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    except OSError: # the server has closed it
        pass
    s.close()


for _ in range(500):
    hostile()
ask(20)  # whose answer comes when it has taken those before
before = memory()
for i in range(1500):
    hostile()
    if i % 100 == 0:
        check(text_of(ask(20)) == whole, "an answer among hostile clients")
check(memory() < before + 4096, "memory grew from %d to %d KiB" % (before, memory()))

# Requests of which a proxy may think that they end elsewhere, or are for another: refused, and nothing behind them read.
host, typed = b"Host: localhost\r\n", b"Content-Type: application/json\r\n"
for fields, words in ((b"", b"Host: found 0"), (host + host, b"Host: found 2"),
                      (host + typed + b"Content-Length: 2\r\nContent-Length: 30\r\n", b"Content-Length: found 2"),
                      (host + typed + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding")):
    s = connect()
    s.sendall(b"POST /v1/completions HTTP/1.1\r\n%s\r\n{}GET /health HTTP/1.1\r\n%s\r\n" % (fields, host))
    reply = read_all(s)
    check(reply.startswith(b"HTTP/1.1 400 ") and words in reply, "%s: %s" % (fields, reply))
    check(b"connection: close" in reply.lower() and read_all(s) == b"", "what follows: %s" % fields)
    s.close()
s = connect()
s.sendall(b"GET /health HTTP/1.0\r\n\r\n")
check(read_all(s).split(b" ")[1] == b"200", "HTTP/1.0 has no Host")
s.close()

# Half a request holds up no end: clients have ten seconds for replies, and there is none to come.
s = connect()
s.sendall(question[:-10])
check(text_of(ask(20)) == whole, "an answer beside half a request")
begun = time.monotonic()
server.send_signal(signal.SIGTERM)
check(server.wait(60) == 0, "its end")
check(time.monotonic() - begun < 9, "the end waited for half a request")
print("serve_hostile: %d passed" % n_passed)
