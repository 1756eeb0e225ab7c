#!/usr/bin/env python3
"""`dpinfer serve --dataset` from outside: plans, answers, reports that `verify` accepts, budgets that end, shares of
principals, streams; kill -9 before each call that changes a file, and what the next server makes of it; SIGTERM under
load; a copy of the ledger while it is used; a thousand connections.
    serve_private.py path/to/dpinfer MODEL path/to/kill_at.so [EVERY]     each EVERY-th of the kills"""
import hashlib
import http.client
import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

program, model, preload = (os.path.abspath(p) for p in sys.argv[1:4])
every = int(sys.argv[4]) if len(sys.argv) > 4 else 1
n_passed = 0
server = None


def check(holds, what):
    global n_passed
    if not holds:
        if server and server.poll() is None:
            server.kill()
        sys.exit("FAILED: " + what)
    n_passed += 1


class Server:
    def __init__(self, *options, at=None, epsilon=8, more=""):
        global server
        environment = dict(os.environ)
        if at is not None:
            open("count", "wb").write(bytes(8))
            environment.update(LD_PRELOAD=preload, DPI_KILL_AT=str(at), DPI_KILL_LOG=os.path.abspath("count"))
        spec = "letters=refs.jsonl,epsilon=%g,delta=1e-5%s" % (epsilon, more)
        self.process = server = subprocess.Popen(
            [program, "serve", model, "--dataset", spec, "--ledger", "ledger", "--port", "0", "-t", "1", "-c", "512",
             *options], stdout=subprocess.PIPE, stderr=open("err", "w"), env=environment)
        address = self.process.stdout.readline().decode()
        self.port = int(address.rsplit(":", 1)[1]) if address else 0

    def send(self, method, path, body=None, key=None, token=None):
        head = {"Content-Type": "application/json"}
        if key:
            head["Idempotency-Key"] = key
        if token is not None:
            head["Authorization"] = "Bearer " + token
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, json.dumps(body) if body is not None else None, head)
        reply = connection.getresponse()
        text = reply.read()
        self.headers = reply.headers
        connection.close()
        return reply.status, json.loads(text) if text.startswith(b"{") else text.decode()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(120) == 0, "a stop: " + open("err").read())


def question(epsilon=1, n_tokens=6, **more):
    return {"dataset": "letters", "privacy": {"epsilon": epsilon}, "max_tokens": n_tokens,
            "messages": [{"role": "user", "content": "Which problem do people have?"}], **more}


def ledger():
    """Charges and their sum, as another program reads them."""
    text = subprocess.run([program, "ledger", "show", "ledger", "--json"], capture_output=True, check=True).stdout
    return json.loads(text)["datasets"][0]


chat, budget = "/v1/chat/completions", "/v1/privacy/budget"
os.chdir(tempfile.mkdtemp())
with open("refs.jsonl", "w") as f:
    for i in range(40):
        f.write(json.dumps({"text": "Ticket %d: the printer of room %d does not print." % (i * 7919, i),
                            "dept": "ab"[i % 2], "who": "p%d" % (i % 13)}) + "\n")

# ---- What a user does -----------------------------------------------------------------------------------------------
s = Server(more=",label=dept,batch=8")
check(s.port > 0, "the server: " + open("err").read())
code, plan = s.send("POST", "/v1/privacy/plan", question(3))
check(code == 200 and plan["answers_left"] > 2 and plan["batches"] == 5, "a plan")
check(s.send("GET", budget)[1]["data"][0]["spent"] == 0, "a plan costs nothing")
code, answer = s.send("POST", chat, question(3), key="first")
check(code == 200 and answer["usage"]["completion_tokens"] <= 6, "an answer: %s" % answer)
check(abs(answer["privacy"]["cost"] - plan["cost"]) < 1e-12, "an answer costs what the plan said")
code, report = s.send("GET", answer["privacy"]["report"])
check(code == 200, "a report")
json.dump(report, open("report.json", "w"))
open("text", "w").write(answer["choices"][0]["message"]["content"])
verified = subprocess.run([program, "verify", "report.json", "--model", model, "--output", "text", "--ledger", "ledger"],
                          capture_output=True)
check(verified.returncode == 0 and b"has its charge" in verified.stdout, "verify: %s" % verified.stderr)
for label in "ab":
    question_of = question(.5)
    question_of["privacy"]["label"] = label
    check(s.send("POST", chat, question_of)[0] == 200, "an answer of a label")
# Refusals, each with the code and the words that it has.
for code, words, body in (
        (404, "no dataset", question(1, dataset="notes")),
        (400, "logprobs: found true", question(1, logprobs=True)),
        (400, "n: found 2", question(1, n=2)),
        (400, "echo: found true", question(1, echo=True)),
        (400, "seed: not allowed", question(1, seed=3)),
        (400, "logit_bias: found", question(1, logit_bias={"5": 1})),
        (400, "'cache_prompt' is not a field", question(1, cache_prompt=True)),
        (400, "'timings_per_token' is not a field", question(1, timings_per_token=True)),
        (400, "stream: found true", question(1, stream=True)),
        (400, "temperature: found 0", question(1, temperature=0)),
        (400, "privacy.epsilon: found -1, allowed", question(-1)),
        (400, "privacy.epsilon: found 1e-9, allowed 1e-05 <= x <= 1e+06", question(1e-9)),
        (400, "privacy.batch: found 9, allowed 1..8", question(1, privacy={"epsilon": 1, "batch": 9})),
        (400, "privacy.label: no record", question(1, privacy={"epsilon": 1, "label": "c"})),
        (400, "delta: found 0.5 with 40 records", question(1, privacy={"epsilon": 1, "delta": .5})),
        (400, "'rho' is not a field of privacy", question(1, privacy={"epsilon": 1, "rho": 1})),
        (400, "privacy.epsilon: there is none", question(1, privacy={})),
        (400, "dataset: there is none", {"privacy": {"epsilon": 1}, "messages": question()["messages"]}),
        (400, "max_tokens: found 512, allowed 1..511", question(1, 512)),
        (403, "does not allow this", question(100))):
    found, reply = s.send("POST", chat, body)
    check(found == code and words in reply["error"]["message"], "%s: %s %s" % (words, found, reply))
check(reply["error"]["type"] == "privacy_budget_exceeded" and reply["error"]["remaining"] > 0, "what remains")
code, reply = s.send("POST", chat, question(3, 7), key="first")
check(code == 422 and reply["error"]["type"] == "idempotency_error", "a key that another request had")
check(s.send("POST", chat, question(3), key="first") == (200, answer), "a key that is there again")
check(s.send("POST", chat, question(3), key="x" * 256)[0] == 400, "a key that is too long")
code, one = s.send("GET", budget + "/letters")
check(code == 200 and one["charges"] == 3 and len(one["history"]) == 3 and one["others"] == 0, "a budget")
check(one["scope"] == "dataset" and one["unit"] is None, "whose budget it is")
check(one["history"][2]["report"] == answer["privacy"]["report"], "the report of a charge")
check([c["id"] for c in one["history"]] == [3, 2, 1], "the newest charge is the first")
check(s.send("GET", budget + "/notes")[0] == 404 and s.send("GET", "/v1/privacy/reports/x")[0] == 404, "what is not there")
metrics = s.send("GET", "/metrics")[1]
check('dpinfer_budget_left{dataset="letters"} %.6f' % one["left"] in metrics[:-1] + "0" or
      abs(float(metrics.split('dpinfer_budget_left{dataset="letters"} ')[1].split()[0]) - one["left"]) < 1e-6, "metrics")
s.stop()
check(ledger()["charges"].__len__() == 3, "three charges")
s = Server(more=",label=dept,batch=8")
check(s.send("POST", chat, question(3), key="first") == (200, answer), "an answer after a restart")
check(s.send("GET", answer["privacy"]["report"])[1] == report, "a report after a restart")
check(subprocess.run([program, "serve", model, "--dataset", "letters=refs.jsonl,epsilon=8,delta=1e-5", "--ledger",
                      "ledger", "--port", "0"], capture_output=True, timeout=60).returncode != 0, "two servers, one file")
s.stop()
other = subprocess.run([program, "serve", model, "--dataset", "letters=refs.jsonl,epsilon=9,delta=1e-5", "--ledger",
                        "ledger", "--port", "0"], capture_output=True, timeout=60)
check(other.returncode == 2 and b"allowed those of the ledger: 8" in other.stderr, "another budget: %s" % other.stderr)

# ---- A pace, and a budget for each unit ------------------------------------------------------------------------------
for more, words in ((",pace=top", "pace-theta is not there"), (",pace=auto", "allowed none, top, change, share"),
                    (",pace-tokens=4", "has no such number"), (",scope=unit", "unit is not there"),
                    (",pace=top,pace-theta=.6,pace-tokens=0", "pace-tokens: found '0'")):
    bad = subprocess.run([program, "serve", model, "--dataset", "letters=refs.jsonl,epsilon=8,delta=1e-5" + more,
                          "--ledger", "none", "--port", "0"], capture_output=True, timeout=60)
    check(bad.returncode == 2 and words.encode() in bad.stderr, "%s: %s" % (more, bad.stderr))
for name in ("ledger", "ledger.answers", "ledger.answers.lock"):
    os.unlink(name)
s = Server(more=",unit=who,scope=unit,batch=5,pace=top,pace-theta=.6,pace-tokens=4")
code, paced = s.send("POST", "/v1/privacy/plan", question(3, 40))
check(code == 200 and paced["pace"] == "top" and paced["scope"] == "unit", "a plan: %s" % paced)
one = s.send("GET", budget + "/letters")[1]
check(one["scope"] == "unit" and one["unit"] == "who", "a budget of units: %s" % one)
for i in range(7): # more than a unit can pay for, and less than would end the answers
    code, answer = s.send("POST", chat, question(3, 40))
    check(code == 200, "an answer of units: %s" % answer)
    check(answer["privacy"]["remaining"] == s.send("GET", budget + "/letters")[1]["total"], "what a new unit has")
check(s.send("POST", "/v1/privacy/plan", question(3, 40))[1]["answers_left"] == paced["answers_left"] == one["total"] //
      paced["cost"], "what a new unit can pay for")
report = s.send("GET", answer["privacy"]["report"])[1]
json.dump(report, open("report.json", "w"))
open("text", "w").write(answer["choices"][0]["message"]["content"])
verified = subprocess.run([program, "verify", "report.json", "--model", model, "--output", "text", "--ledger", "ledger"],
                          capture_output=True)
check(verified.returncode == 0, "verify: %s" % verified.stderr)
check('"pace": "top"' in json.dumps(report) and '"unit"' in json.dumps(report), "the report has pace and scope")
s.stop()
check(subprocess.run([program, "serve", model, "--dataset", "letters=refs.jsonl,epsilon=8,delta=1e-5,unit=who", "--ledger",
                      "ledger", "--port", "0"], capture_output=True, timeout=60).returncode == 2, "another scope")
for name in ("ledger", "ledger.answers", "ledger.answers.lock"):
    os.unlink(name)
s = Server(more=",unit=who,batch=5")
check(s.send("POST", "/v1/privacy/plan", question(3, 40))[1]["clip"] < paced["clip"], "a pace leaves more for each token")
s.stop()

# ---- Principals, and a budget that ends -----------------------------------------------------------------------------
def begin_anew():
    for name in ("ledger", "ledger.answers", "ledger.answers.lock"):
        if os.path.exists(name):
            os.unlink(name)


begin_anew()
with open("tokens", "w") as f:
    for name, share in (("alice", " letters=0.3"), ("bob", ""), ("carol", " letters=0")):
        f.write("%s %s%s\n" % (name, hashlib.sha256(name.encode()).hexdigest(), share))
s = Server("--tokens", "tokens", "--allow-stream", more=",unit=who")
spent = {"alice": 0, "bob": 0, "carol": 0}
answers = []
for i in range(30):
    name = ("alice", "bob", "carol")[i % 3]
    code, reply = s.send("POST", chat, question(2, 4), token=name)
    check(code in (200, 403), "%d: %s" % (code, reply))
    spent[name] += reply["privacy"]["cost"] if code == 200 else 0
    answers += [(name, reply)] if code == 200 else []
one = s.send("GET", budget + "/letters", token="bob")[1]
check(spent["carol"] == 0 and 0 < spent["alice"] <= .3 * one["total"], "a share: %s" % spent)
check(one["spent"] <= one["total"] and abs(one["spent"] - sum(spent.values())) < 1e-9, "the sum of all")
check({p["principal"]: p["spent"] for p in one["principals"]} == {k: v for k, v in spent.items() if v}, "by whom")
check(reply["error"]["type"] == "privacy_budget_exceeded", "the end of a budget")
link = answers[0][1]["privacy"]["report"]
check(s.send("GET", link, token=answers[0][0])[0] == 200, "its own report")
check(s.send("GET", link, token="bob" if answers[0][0] == "alice" else "alice")[0] == 404, "another's report")
check([answers[-1][0]] == [c["note"].split()[3].rstrip(":") for c in one["history"][:1]], "the last charge's note")
for name in ("alice", "bob"):
    history = s.send("GET", budget + "/letters", token=name)[1]["history"]
    check(sorted(c["report"] for c in history if "report" in c) ==
          sorted(reply["privacy"]["report"] for whose, reply in answers if whose == name), "reports of " + name)
check(s.send("GET", budget)[0] == 401, "a budget without a token")
s.stop()

# ---- Rounds of batches, links, and what an earlier program wrote ------------------------------------------------------
def rows(what, order="number"):
    files = sqlite3.connect("ledger.answers")
    found = files.execute("SELECT %s FROM answer ORDER BY %s" % (what, order)).fetchall()
    files.close()
    return found


def change_answers(*statements):
    files = sqlite3.connect("ledger.answers", timeout=60)
    for statement in statements:
        files.execute(statement)
    files.commit()
    files.close()


begin_anew()
s = Server("--dataset", "other=refs.jsonl,epsilon=8,delta=1e-5", more=",label=dept,unit=who,scope=unit,batch=5")
for i in range(6): # 6 batches of 13 units in two labels, and another dataset between them
    body = question(1, 1, privacy={"epsilon": 1, "label": "ab"[i % 2]})
    check(s.send("POST", chat, body)[0] == 200, "an answer of a label")
    check(s.send("POST", chat, question(1, 1, dataset="other"))[0] == 200, "an answer of another dataset")
rounds = [one for i in range(6) for one in (("letters", "ab"[i % 2], i // 2 + 1), ("other", "", i + 1))]
check(rows("dataset, label, round") == rounds, "rounds: %s" % rows("dataset, label, round"))
check(s.send("POST", chat, question(1, 1), key="before")[0] == 200, "an answer with a key")
before = s.send("POST", chat, question(1, 1), key="before")
os.makedirs("links", exist_ok=True)
for name in ("ledger", "ledger.answers"):
    if not os.path.islink("links/" + name):
        os.symlink("../" + name, "links/" + name)
second = subprocess.run([program, "serve", model, "--dataset", "other=refs.jsonl,epsilon=8,delta=1e-5", "--ledger",
                         "links/ledger", "--port", "0"], capture_output=True, timeout=60)
check(second.returncode != 0 and b"another server has it" in second.stderr, "links to one file: %s" % second.stderr)
s.stop()
n_rows = len(rows("number"))
change_answers("DROP INDEX rounds", "ALTER TABLE answer DROP COLUMN round", "ALTER TABLE answer DROP COLUMN label",
               "PRAGMA user_version = 1")
s = Server("--dataset", "other=refs.jsonl,epsilon=8,delta=1e-5", more=",label=dept,unit=who,scope=unit,batch=5")
check(s.send("POST", chat, question(1, 1), key="before") == before, "an answer that an earlier program kept")
check(s.send("POST", chat, question(1, 1))[0] == 200, "an answer after those of an earlier program")
check(rows("round")[-1][0] == n_rows + 1, "its round")
s.stop()

# ---- Rows whose end the disk did not take ----------------------------------------------------------------------------
begin_anew()
s = Server()
check(s.send("POST", chat, question(1), key="model")[0] == 200, "an answer")
for key, name in (("lost", "chatcmpl-0"), ("free", "chatcmpl-1")): # as if the disk had been full
    change_answers("INSERT INTO answer(id, principal, dataset, key, hash, state, amount, charge, created, label, round) "
                   "SELECT '%s', principal, dataset, '%s', hash, 1, amount, 0, created, label, round + 1 FROM answer "
                   "WHERE key = 'model'" % (name, key))
subprocess.run([program, "ledger", "charge", "ledger", "--rho", "1e-4", "--note", "answer chatcmpl-0 over HTTP: x"],
               capture_output=True, check=True)
for again in range(2):
    code, reply = s.send("POST", chat, question(1), key="lost")
    check(code == 409 and "was lost" in reply["error"]["message"], "a charge without an answer: %s" % reply)
check(s.send("POST", chat, question(1), key="free")[0] == 200, "a row without a charge is no answer")
links = [c.get("report") for c in s.send("GET", budget + "/letters")[1]["history"]]
check([bool(l) for l in links] == [True, False, True], "reports of what is released: %s" % links)

# ---- Keys of requests that wait --------------------------------------------------------------------------------------
s.stop()
begin_anew()
s = Server("--parallel", "1", epsilon=1000)
replies = {}


def ask(name, key, n_tokens):
    replies[name] = s.send("POST", chat, question(1, n_tokens), key=key)


def wait_until(name, value):
    while float(s.send("GET", "/metrics")[1].split("\n%s " % name)[1].split()[0]) < value:
        pass


threads = [threading.Thread(target=ask, args=("long", "k1", 300))]
threads[0].start()
wait_until("dpinfer_answers_drawn", 1)
threads.append(threading.Thread(target=ask, args=("first", "k2", 6)))
threads[1].start()
wait_until("dpinfer_answers_waiting", 1)
ask("again", "k2", 6)
ask("other", "k2", 7)
for t in threads:
    t.join()
check(replies["again"][0] == 409 and "being drawn" in replies["again"][1]["error"]["message"], "a key that waits")
check(replies["other"][0] == 422, "another request with a key that waits: %s" % (replies["other"],))
check(replies["long"][0] == replies["first"][0] == 200, "what waited is answered")
ask("then", "k2", 6)
check(replies["then"] == replies["first"] and len(ledger()["charges"]) == 2, "and sent again")

# ---- Bodies that are too long, paths that end early, a dataset that is closed -----------------------------------------
for n_bytes in (2 << 20, 8 << 20):
    code, reply = s.send("POST", chat, question(1, 6, user="x" * n_bytes))
    check(code == 413 and "bytes, allowed 1048576" in reply["error"]["message"], "a long body: %s" % code)
for path in ("/health%00zz", "/metrics%00", budget + "/letters%00"):
    check(s.send("GET", path)[0] == 404, path)
check(s.send("GET", "/he%61lth")[0] == 200 and s.send("GET", "/health%")[0] == 404, "escapes")
check(s.send("POST", "/v1/privacy/plan", question(1))[1]["answers_left"] > 0, "a plan")
subprocess.run([program, "ledger", "close", "ledger"], capture_output=True, check=True)
plan = s.send("POST", "/v1/privacy/plan", question(1))[1]
check(plan["answers_left"] == 0 and plan["remaining"] == 0, "the plan of a closed dataset: %s" % plan)
check(s.send("POST", chat, question(1))[0] == 403, "a closed dataset")
s.stop()

# ---- kill -9, everywhere --------------------------------------------------------------------------------------------
def outcome(s):
    """What one request came to: its reply, or None where the server died."""
    try:
        return s.send("POST", chat, question(1), key="k")
    except (OSError, http.client.HTTPException, ValueError):
        return None


def is_answer(reply):
    return reply is not None and reply[0] == 200


begin_anew()
s = Server(at=0)
started = struct.unpack("q", open("count", "rb").read())[0]
check(is_answer(outcome(s)), "an answer that nothing stops")
n_calls = struct.unpack("q", open("count", "rb").read())[0]
s.process.kill()
s.process.wait()
check(n_calls > started + 20, "only %d calls change files" % (n_calls - started))
kinds = {}
for at in range(1, n_calls + 2, every):
    begin_anew()
    s = Server(at=at)
    seen = outcome(s) if s.port else None
    s.process.kill()
    s.process.wait()
    s = Server()
    check(s.port > 0, "kill at call %d: the next server does not begin: %s" % (at, open("err").read()))
    before = ledger()["charges"]
    again = outcome(s)
    after = ledger()["charges"]
    if is_answer(seen):
        kind = "sent"
        check(again == seen and len(after) == len(before) == 1, "call %d: an answer that was seen: %s" % (at, again))
    elif is_answer(again) and len(before) == 0:
        kind = "nothing"
        check(len(after) == 1, "call %d: %d charges for one answer" % (at, len(after)))
    elif is_answer(again):
        kind = "kept"
        check(len(after) == len(before) == 1, "call %d: an answer that was kept" % at)
    else:
        kind = "lost"
        check(again[0] == 409 and len(before) == len(after) == 1 and "lost" in again[1]["error"]["message"],
              "call %d: %s, %d charges" % (at, again, len(after)))
        check(outcome(s) == again, "call %d: it stays lost" % at)
    check(outcome(s) == again, "call %d: the same again" % at)
    kinds[kind] = kinds.get(kind, 0) + 1
    s.stop()
check(set(kinds) == {"nothing", "lost", "kept", "sent"} or every > 1, "phases that were met: %s" % kinds)

# ---- Side by side, a copy of the ledger meanwhile, and SIGTERM ------------------------------------------------------
begin_anew()
s = Server("--waiting", "2000", epsilon=1000)
results = [None] * 24


def send(i):
    try:
        results[i] = s.send("POST", chat, question(.5, 40), key="k%d" % i)
    except (OSError, http.client.HTTPException) as error:
        results[i] = (0, str(error))


def send_all():
    threads = [threading.Thread(target=send, args=(i,)) for i in range(len(results))]
    for t in threads:
        t.start()
    return threads


threads = send_all()
while not any(results):
    source, copy = sqlite3.connect("ledger"), sqlite3.connect("copy")
    source.backup(copy)
    check(copy.execute("PRAGMA integrity_check").fetchone() == ("ok",), "a copy")
    source.close()
    copy.close()
for t in threads:
    t.join()
check(all(r[0] == 200 for r in results), "answers side by side: %s" % [r for r in results if r[0] != 200][:2])
check(len(ledger()["charges"]) == len(results), "a charge for each")
shown = subprocess.run([program, "ledger", "show", "copy", "--json"], capture_output=True)
check(shown.returncode == 0 and len(json.loads(shown.stdout)["datasets"][0]["charges"]) <= len(results), "the copy")
s.stop()
begin_anew()
s = Server("--waiting", "2000", "--parallel", "4", epsilon=1000)
threads = send_all()
while s.send("GET", budget + "/letters")[1]["charges"] < 2:
    pass
s.stop()
for t in threads:
    t.join()
done = [r for r in results if r[0] == 200]
check(2 <= len(done) and all(r[0] in (0, 200, 503) for r in results), "SIGTERM: %s" % sorted({r[0] for r in results}))
check(len(ledger()["charges"]) == len(done), "SIGTERM: %d charges, %d answers" % (len(ledger()["charges"]), len(done)))

# ---- Memory at rest -------------------------------------------------------------------------------------------------
def planned_of(s):
    return float(s.send("GET", "/metrics")[1].split("dpinfer_memory_idle_bytes ")[3].split()[0]) / 1024


begin_anew()
s = Server("--record-cache", "0", epsilon=1000)
results = [None] * 8
for t in send_all():
    t.join()
check(all(r[0] == 200 for r in results), "eight at once: %s" % results)
planned = planned_of(s)
for _ in range(100): # it rests once nothing has been drawn for a moment
    time.sleep(.1)
    with open("/proc/%d/status" % s.process.pid) as status:
        held = int(status.read().split("VmRSS:")[1].split()[0])
    if held < 1.15 * planned:
        break
check(.85 * planned < held < 1.15 * planned, "%d KiB at rest, and %d are planned" % (held, planned))
s.stop()
records = open("refs.jsonl").read()
with open("refs.jsonl", "w") as f:
    for i in range(40):
        f.write(json.dumps({"text": "word " * 50000}) + "\n")
begin_anew()
s = Server("--record-cache", "0", epsilon=1000)
check(abs(planned_of(s) - planned) < 2048, "a plan of memory depends on how long records are")
s.stop()
open("refs.jsonl", "w").write(records)

# ---- A thousand connections -----------------------------------------------------------------------------------------
begin_anew()
s = Server("--waiting", "5", epsilon=1000)
connections = []
body = json.dumps(question(.3, 3)).encode()
for i in range(1000):
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=300)
    c.connect()
    c.sock.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                   % (chat.encode(), len(body)))
    connections.append(c)
check(s.send("GET", "/health")[0] == 200, "health among a thousand")
for c in connections:
    c.sock.sendall(body)
codes = {}
for c in connections:
    reply = http.client.HTTPResponse(c.sock)
    reply.begin()
    codes[reply.status] = codes.get(reply.status, 0) + 1
    reply.read()
    c.close()
check(set(codes) <= {200, 503} and codes.get(200, 0) >= 6, "a thousand: %s" % codes)
check(len(ledger()["charges"]) == codes[200], "a charge for each answer of a thousand")
s.stop()
print("serve_private: %d passed, kills: %s" % (n_passed, kinds))
