#!/usr/bin/env python3
"""What `dpinfer serve` costs, beside what its parts cost, in one run.

    bench/serve.py DPINFER MODEL [--against URL] [-B 8] [-p 128] [-n 32] [--at-once 8] [-t N]
                   [-r 5] [--tokens T]

  first byte   of a plain answer that is streamed: from the request to its first text. With --against
               also of another server that answers POST URL/v1/chat/completions (such as
               `llama-server -m MODEL -t N --port ...`), with the same prompts of about -p tokens;
               prompts and servers take turns, and no prompt is there twice. --tokens: its bearer
               token
  private      --at-once private answers of -n and of 2 -n tokens, about -B records of about -p
               tokens each: what a token of them costs, as the difference of the two; beside a
               token's share of the step of --at-once texts of -B references in `dpinfer bench`. And
               the whole of the longer ones beside that bench's prompts and steps.
  memory       what the server holds before and after its answers, beside what it plans

Ratios are of medians of -r runs. Answers that end early (the model's own end of text) make steps of
fewer sequences: where 'tokens' is below 100 % the ratios are too high.
"""
import argparse
import http.client
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
options.add_argument("program")
options.add_argument("model")
options.add_argument("--against", metavar="URL")
options.add_argument("--tokens", metavar="T", default="")
options.add_argument("-B", type=int, default=8)
options.add_argument("-p", type=int, default=128)
options.add_argument("-n", type=int, default=32)
options.add_argument("--at-once", type=int, default=8)
options.add_argument("-t", type=int, default=os.cpu_count())
options.add_argument("-r", type=int, default=5)
o = options.parse_args()
draw = random.Random(1)
WORDS = ("printer room ticket letter street winter doctor answer paper window garden station "
         "morning number friend colour machine problem engine water").split()


def count_tokens(text):
    ids = subprocess.run([o.program, "tokenize", o.model], input=text, capture_output=True, text=True, check=True).stdout
    return len(re.findall(r"-?\d+", ids))


def text_of(n_tokens):
    """Words that no other text begins with, of about so many tokens."""
    words = [str(draw.randrange(10**6))]
    n = count_tokens(" ".join(words + WORDS)) / (len(WORDS) + 1)
    while len(words) * n < n_tokens:
        words.append(draw.choice(WORDS))
    return " ".join(words)


def post(url, body, token=""):
    head = {"Content-Type": "application/json"}
    if token:
        head["Authorization"] = "Bearer " + token
    at = urllib.parse.urlsplit(url)
    make = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
    connection = make(at.netloc, timeout=3600)
    connection.request("POST", at.path, json.dumps(body), head)
    reply = connection.getresponse()
    if reply.status != 200:
        raise SystemExit("%s: %d %s" % (url, reply.status, reply.read().decode(errors="replace")))
    return reply


def first_byte(url, prompt, token=""):
    """Seconds to the first text of a streamed answer."""
    begin = time.monotonic()
    reply = post(url + "/v1/chat/completions", {"messages": [{"role": "user", "content": prompt}], "max_tokens": 8,
                                                "temperature": 0, "stream": True}, token)
    seconds = None
    for line in reply:
        if seconds is None and re.search(rb'"content": ?"[^"]', line):
            seconds = time.monotonic() - begin
    if seconds is None:
        raise SystemExit("%s: an answer without text" % url)
    return seconds


def answers(url, n_tokens):
    """Seconds for all of them at once, and their tokens."""
    n_drawn, begun = [], threading.Barrier(o.at_once + 1)

    def one():
        begun.wait()
        reply = json.load(post(url + "/v1/chat/completions", {
            "dataset": "records", "privacy": {"epsilon": 1, "tokens": n_tokens, "batch": o.B},
            "messages": [{"role": "user", "content": "Which problem do people have?"}]}))
        n_drawn.append(reply["usage"]["completion_tokens"])

    threads = [threading.Thread(target=one) for _ in range(o.at_once)]
    for t in threads:
        t.start()
    begun.wait()
    begin = time.monotonic()
    for t in threads:
        t.join()
    if len(n_drawn) < o.at_once:
        raise SystemExit("an answer has failed")
    return time.monotonic() - begin, sum(n_drawn)


def memory(server):
    with open("/proc/%d/status" % server.pid) as f:
        return int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1)) * 1024


def metric(url, name):
    at = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
    at.request("GET", "/metrics")
    return float(re.search(r"^dpinfer_%s (\S+)$" % name, at.getresponse().read().decode(), re.M).group(1))


def spread(values):
    return "%.1f ms (%.1f to %.1f)" % (1e3 * statistics.median(values), 1e3 * min(values), 1e3 * max(values))


def measure(url, server):
    before = memory(server)
    first_byte(url, text_of(o.p)) # weights come into memory
    others = {"dpinfer": (url, "")}
    if o.against:
        others["the other"] = (o.against.rstrip("/"), o.tokens)
        first_byte(others["the other"][0], text_of(o.p), o.tokens)
    seconds = {name: [] for name in others}
    for _ in range(o.r):
        prompt = text_of(o.p)
        for name, (where, token) in others.items():
            seconds[name].append(first_byte(where, prompt, token))
    for name, all_ in seconds.items():
        print("first byte, %-9s  %s, prompts of %d tokens" % (name, spread(all_), o.p))
    if o.against:
        a, b = (statistics.median(seconds[name]) for name in ("dpinfer", "the other"))
        print("first byte             %.3f of the other's" % (a / b))
    runs = {n: [answers(url, n) for _ in range(o.r)] for n in (o.n, 2 * o.n)}
    idle, planned = memory(server), metric(url, "memory_idle_bytes")
    walls = {n: statistics.median(w for w, _ in all_) for n, all_ in runs.items()}
    drawn = {n: statistics.median(k for _, k in all_) for n, all_ in runs.items()}
    return before, idle, planned, walls, drawn


def main():
    folder = tempfile.TemporaryDirectory()
    with open(os.path.join(folder.name, "records.jsonl"), "w") as f:
        for _ in range(o.B):
            f.write(json.dumps({"text": text_of(max(8, o.p - 60))}) + "\n")
    server = subprocess.Popen(
        [o.program, "serve", o.model, "--dataset", "records=records.jsonl,epsilon=100000,delta=1e-5,batch=%d" % o.B,
         "--ledger", "ledger", "--port", "0", "-t", str(o.t), "--parallel", str(o.at_once), "-c",
         str(o.p + 2 * o.n + 192), "--record-cache", "0"], stdout=subprocess.PIPE, cwd=folder.name)
    try:
        url = server.stdout.readline().decode().strip()
        if not url:
            raise SystemExit("the server does not begin")
        before, idle, planned, walls, drawn = measure(url, server)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    bench = json.loads(subprocess.run(
        [o.program, "bench", o.model, "--method", "invisibleink", "-B", str(o.B), "--texts", str(o.at_once), "-p",
         str(o.p), "-n", str(2 * o.n), "-t", str(o.t), "-r", str(o.r), "-o", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)[0]
    step = bench["T_TG"] / (2 * o.n)
    token = (walls[2 * o.n] - walls[o.n]) / (drawn[2 * o.n] - drawn[o.n])
    parts = bench["T_PP"] + bench["T_TG"] * drawn[2 * o.n] / (2 * o.n * o.at_once)
    print("private, %d at once    %.2f ms a token; its share of a step of %d texts of %d references: %.2f ms" %
          (o.at_once, 1e3 * token, o.at_once, o.B, 1e3 * step / o.at_once))
    print("private, a token       %.3f of its share" % (token * o.at_once / step))
    print("private, whole         %.3f of prompts and steps: %.0f ms of %.0f; tokens %.0f %%" %
          (walls[2 * o.n] / parts, 1e3 * walls[2 * o.n], 1e3 * parts, 100 * drawn[2 * o.n] / (2 * o.n * o.at_once)))
    print("memory                 %.1f MiB before an answer, %.1f after; planned %.1f: %.3f" %
          (before / 2**20, idle / 2**20, planned / 2**20, idle / planned))


o.program, o.model = os.path.abspath(o.program), os.path.abspath(o.model)
main()
