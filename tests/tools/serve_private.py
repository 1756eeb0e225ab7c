#!/usr/bin/env python3
"""`dpinfer serve --dataset` from outside: plans, answers, reports that `verify` accepts, budgets that end, shares of
principals, streams; kill -9 before calls that change a file, and what the next server makes of it; SIGTERM under
load; a copy of the ledger while it is used; a thousand connections.
    serve_private.py path/to/dpinfer MODEL path/to/kill_at.so [EVERY]     kills at each EVERY-th call, and where what
                                                                          they come to changes"""
import glob
import hashlib
import http.client
import json
import math
import os
import sqlite3
import struct
import sys
import threading
from contextlib import closing

from serve_support import (BUDGET, CHAT, LIMIT, Server, check, content, enter_folder, model, passed, question, request, rows,
                           run, verify, wait_until, write, write_records)

preload = os.path.abspath(sys.argv[3])
every = int(sys.argv[4]) if len(sys.argv) > 4 else 1
OF_UNITS = ",label=dept,unit=who,scope=unit,batch=5"
OTHER = "other=refs.jsonl,epsilon=8,delta=1e-5"


def options_of(epsilon, more, file="ledger"):
    return ["--dataset", "letters=refs.jsonl,epsilon=%g,delta=1e-5%s" % (epsilon, more), "--ledger", file]


def serve(*options, epsilon=8, more="", **environment):
    return Server("-c", "512", *options_of(epsilon, more), *options, environment=environment)


def serve_anew(*options, **more):
    """A server whose ledger is there no more."""
    for name in glob.glob("ledger*"):
        os.unlink(name)
    return serve(*options, **more)


def refused(words, options, code=2):
    ended = run("serve", model, "--port", "0", *options)
    check(ended.returncode == code and words in ended.stderr, "%s: %d, %s" % (words, ended.returncode, ended.stderr))


def charges(file="ledger"):
    """Those of a ledger, as another program reads them."""
    shown = run("ledger", "show", file, "--json")
    check(shown.returncode == 0, "a ledger: " + shown.stderr)
    return json.loads(shown.stdout)["datasets"][0]["charges"]


def check_report(s, answer):
    """The report of an answer, which `verify` accepts."""
    code, report = s.get(answer["privacy"]["report"])
    check(code == 200, "a report")
    write("report.json", json.dumps(report))
    write("text", answer["choices"][0]["message"]["content"])
    check("has its charge" in verify("report.json", "--model", model, "--output", "text"), "the charge of a report")
    return report


def side_by_side(s, n, *of_question):
    """n questions at once: what they come to, in time, and their threads."""
    results = [None] * n

    def send(i):
        try:
            results[i] = s.chat(question(*of_question), key="k%d" % i)
        except (OSError, http.client.HTTPException) as error:
            results[i] = (0, str(error))

    threads = [threading.Thread(target=send, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    return results, threads


def join(threads):
    for t in threads:
        t.join()


enter_folder()
write_records("refs.jsonl")

# ---- What a user does -----------------------------------------------------------------------------------------------
s = serve(more=",label=dept,batch=8")
plan = s.plan(3)
# e^(2C / tau): C is what the plan says
check(abs(plan["factor"] - math.exp(2 * plan["clip"])) < 1e-6 * plan["factor"], "what C can do")
check(plan["references_are"] == "well heard" and s.plan(.01)["references_are"] == "hardly", "what is heard")
check(plan["answers_left"] > 2 and plan["batches"] == 5, "a plan")
check(s.get(BUDGET)[1]["data"][0]["spent"] == 0, "a plan costs nothing")
code, answer = s.chat(question(3), key="first")
check(code == 200 and answer["usage"]["completion_tokens"] <= 6, "an answer: %s" % answer)
check(abs(answer["privacy"]["cost"] - plan["cost"]) < 1e-12, "an answer costs what the plan said")
report = check_report(s, answer)
form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "required": ["a"], "properties":
        {"a": {"type": "boolean"}}}}}
turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}, *question()["messages"]]
code, formed = s.chat(question(.5, 24, messages=turns, response_format=form))
check(code == 200 and json.loads(formed["choices"][0]["message"]["content"]).keys() == {"a"}, "an answer of a schema: %s" % formed)
check_report(s, formed)
for label in "ab":
    check(s.chat(question(privacy={"epsilon": .5, "label": label}))[0] == 200, "an answer of a label")
# Refusals, each with the code and the words that it has.
for code, words, body in (
        (404, "no dataset", question(dataset="notes")),
        (400, "logprobs: found true", question(logprobs=True)),
        (400, "n: found 2", question(n=2)),
        (400, "echo: found true", question(echo=True)),
        (400, "seed: not allowed", question(seed=3)),
        (400, "logit_bias: found", question(logit_bias={"five": 1})),
        (400, "logit_bias: found the token 99999, allowed", question(logit_bias={"99999": 1})),
        (400, "'cache_prompt' is not a field", question(cache_prompt=True)),
        (400, "'timings_per_token' is not a field", question(timings_per_token=True)),
        (400, "stream: found true", question(stream=True)),
        (400, "top_p: found 0.9, allowed 1 with", question(top_p=.9)),
        (400, "max_tokens: found 1, allowed", question(1, 1, response_format=form)),
        (400, "temperature: found 0", question(temperature=0)),
        (400, "privacy.epsilon: found -1, allowed", question(-1)),
        (400, "privacy.epsilon: found 1e-9, allowed 1e-05 <= x <= 1e+06", question(1e-9)),
        (400, "privacy.batch: found 9, allowed 1..8", question(privacy={"epsilon": 1, "batch": 9})),
        (400, "privacy.label: no record", question(privacy={"epsilon": 1, "label": "c"})),
        (400, "delta: found 0.5 with 40 records", question(privacy={"epsilon": 1, "delta": .5})),
        (400, "'rho' is not a field of privacy", question(privacy={"epsilon": 1, "rho": 1})),
        (400, "privacy.epsilon: there is none", question(privacy={})),
        (400, "dataset: there is none", {"privacy": {"epsilon": 1}, "messages": question()["messages"]}),
        (400, "max_tokens: found 512, allowed 1..511", question(1, 512)),
        (403, "does not allow this", question(100))):
    found, reply = s.chat(body)
    check(found == code and words in reply["error"]["message"], "%s: %s %s" % (words, found, reply))
    check(reply["error"]["code"] == ("privacy_budget_exceeded" if code == 403 else None), "its code: %s" % reply)
check(reply["error"]["type"] == "privacy_budget_exceeded" and reply["error"]["remaining"] > 0, "what remains")
code, reply = s.chat(question(3, 7), key="first")
check(code == 422 and reply["error"]["type"] == "idempotency_error", "a key that another request had")
check(s.chat(question(3), key="first") == (200, answer), "a key that is there again")
check(s.chat(question(3), key="x" * 256)[0] == 400, "a key that is too long")
one = s.budget()
check(one["charges"] == 4 and len(one["history"]) == 4 and one["others"] == 0, "a budget")
check(one["scope"] == "dataset" and one["unit"] is None, "whose budget it is")
check(one["history"][3]["report"] == answer["privacy"]["report"], "the report of a charge")
check([c["id"] for c in one["history"]] == [4, 3, 2, 1], "the newest charge is the first")
for path in (BUDGET + "/notes", "/v1/privacy/reports/x"):
    check(s.get(path)[0] == 404, "what is not there: " + path)
check(abs(s.metric('budget_left{dataset="letters"}') - one["left"]) < 1e-6, "metrics")
s.stop()
check(len(charges()) == 4, "four charges")
s = serve(more=",label=dept,batch=8")
check(s.chat(question(3), key="first") == (200, answer), "an answer after a restart")
check(s.get(answer["privacy"]["report"])[1] == report, "a report after a restart")
refused("another server has it", options_of(8, ""), 1)
s.stop()
refused("allowed those of the ledger: 8", options_of(9, ""))

# ---- A pace, and a budget for each unit ------------------------------------------------------------------------------
for more, words in ((",pace=top", "pace-theta is not there"), (",pace=best", "allowed none, top, change, share, auto"),
                    (",pace=auto,pace-theta=.5", "has no such number"),
                    (",pace-tokens=4", "has no such number"), (",scope=unit", "unit is not there"),
                    (",pace=top,pace-theta=.6,pace-tokens=0", "pace-tokens: found '0'")):
    refused(words, options_of(8, more, "none"))
s = serve_anew(more=",unit=who,scope=unit,batch=5,pace=top,pace-theta=.6,pace-tokens=4")
paced = s.plan(3, 20)
check(paced["pace"] == "top" and paced["scope"] == "unit", "a plan: %s" % paced)
one = s.budget()
check(one["scope"] == "unit" and one["unit"] == "who", "a budget of units: %s" % one)
for i in range(7): # more than a unit can pay for, and less than would end the answers
    code, answer = s.chat(question(3, 20))
    check(code == 200, "an answer of units: %s" % answer)
    check(answer["privacy"]["remaining"] == s.budget()["total"], "what a new unit has")
check(s.plan(3, 20)["answers_left"] == paced["answers_left"] == one["total"] // paced["cost"], "what a new unit can pay for")
report = json.dumps(check_report(s, answer))
check('"pace": "top"' in report and '"unit"' in report, "the report has pace and scope")
s.stop()
refused("", options_of(8, ",unit=who")) # another scope
s = serve_anew(more=",batch=5,pace=none")
check(s.plan(3, 20)["clip"] < paced["clip"], "a pace leaves more for each token")
without = s.metric("memory_most_bytes")
s.stop()
# One that is found for the question is that of a run, and that of the answer.
s = serve_anew(more=",batch=5") # by default
check(s.metric("memory_most_bytes") > without, "memory in which a pace is found")
found, shown = s.plan(3, 20), run("plan", model, "--records", "40", "-B", "5", "--num", "1", "--epsilon", "3", "--delta", "1e-5",
                                  "--query", "Which problem do people have?", "-n", "20", "-c", "512", "--temp", "1", "--json")
shown = json.loads(shown.stdout)
check(found["pace"] == "top" and found["pace_tokens"] == shown["n_private"] > 0, "a pace that is found: %s" % found)
check(abs(found["clip"] - shown["C"]) < 1e-9 and found["factor"] > 10, "what it leaves: %s" % found)
code, answer = s.chat(question(3, 20))
claim = json.dumps(check_report(s, answer))
check(code == 200 and '"pace_texts": 2' in claim, "the report says that the pace was found: %s" % claim)
# While some are found, other requests are answered: all of them come to the same thread.
plans = [threading.Thread(target=s.plan, args=(3, 400)) for i in range(4)]
for t in plans:
    t.start()
n_beside = 0
while any(t.is_alive() for t in plans) and n_beside < 30:
    s.budget()
    n_beside += any(t.is_alive() for t in plans)
check(n_beside >= 10, "%d requests beside plans whose pace is found" % n_beside)
for t in plans:
    t.join()
# A request that is sent again while its pace is found is the same one.
n_before, results = len(charges()), []
again = [threading.Thread(target=lambda: results.append(s.chat(question(3, 60), key="again"))) for i in range(3)]
for t in again:
    t.start()
for t in again:
    t.join()
check({code for code, _ in results} <= {200, 409} and 200 in {code for code, _ in results}, "one answer: %s" % results)
check(len(charges()) == n_before + 1, "one charge")
s.stop()

# ---- Principals, and a budget that ends -----------------------------------------------------------------------------
SHARES = {"alice": " letters=0.3", "bob": "", "carol": " letters=0"}
write("tokens", "".join("%s %s%s\n" % (name, hashlib.sha256(name.encode()).hexdigest(), share)
                        for name, share in SHARES.items()))
s = serve_anew("--tokens", "tokens", "--allow-stream", more=",unit=who")
spent = dict.fromkeys(SHARES, 0)
answers = []
for i in range(30):
    name = list(SHARES)[i % 3]
    code, reply = s.chat(question(2, 4), token=name)
    check(code in (200, 403), "%d: %s" % (code, reply))
    if code == 200:
        spent[name] += reply["privacy"]["cost"]
        answers.append((name, reply))
check(reply["error"]["type"] == "privacy_budget_exceeded", "the end of a budget")
one = s.budget(token="bob")
check(spent["carol"] == 0 and 0 < spent["alice"] <= .3 * one["total"], "a share: %s" % spent)
check(one["spent"] <= one["total"] and abs(one["spent"] - sum(spent.values())) < 1e-9, "the sum of all")
check({p["principal"]: p["spent"] for p in one["principals"]} == {k: v for k, v in spent.items() if v}, "by whom")
first = answers[0]
for name, code in ((first[0], 200), ("bob" if first[0] == "alice" else "alice", 404)):
    check(s.get(first[1]["privacy"]["report"], token=name)[0] == code, "the report of %s for %s" % (first[0], name))
check(one["history"][0]["note"].split()[3].rstrip(":") == answers[-1][0], "the last charge's note")
for name in ("alice", "bob"):
    check(sorted(c["report"] for c in s.budget(token=name)["history"] if "report" in c) ==
          sorted(reply["privacy"]["report"] for whose, reply in answers if whose == name), "reports of " + name)
check(s.get(BUDGET)[0] == 401, "a budget without a token")
s.stop()

# ---- Rounds of batches, links, and what an earlier program wrote ------------------------------------------------------
def rounds():
    return rows("ledger.answers", "SELECT dataset, label, round FROM answer ORDER BY number")


s = serve_anew("--dataset", OTHER, more=OF_UNITS)
for i in range(6): # 6 batches of 13 units in two labels, and another dataset between them
    for body in (question(1, 1, privacy={"epsilon": 1, "label": "ab"[i % 2]}), question(1, 1, dataset="other")):
        check(s.chat(body)[0] == 200, "an answer of a label, and one of another dataset")
check(rounds() == [one for i in range(6) for one in (("letters", "ab"[i % 2], i // 2 + 1), ("other", "", i + 1))],
      "rounds: %s" % rounds())
before = s.chat(question(1, 1), key="before")
check(before[0] == 200 and s.chat(question(1, 1), key="before") == before, "an answer with a key")
os.mkdir("links")
for name in ("ledger", "ledger.answers"):
    os.symlink("../" + name, "links/" + name)
refused("another server has it", ["--dataset", OTHER, "--ledger", "links/ledger"], 1)
s.stop()
n_rows = len(rounds())
for statement in ("DROP INDEX rounds", "ALTER TABLE answer DROP COLUMN round", "ALTER TABLE answer DROP COLUMN label",
                  "PRAGMA user_version = 1"):
    rows("ledger.answers", statement)
s = serve("--dataset", OTHER, more=OF_UNITS)
check(s.chat(question(1, 1), key="before") == before, "an answer that an earlier program kept")
check(s.chat(question(1, 1))[0] == 200, "an answer after those of an earlier program")
check(rounds()[-1][2] == n_rows + 1, "its round")
s.stop()

# ---- Rows whose end the disk did not take ----------------------------------------------------------------------------
s = serve_anew()
check(s.chat(key="model")[0] == 200, "an answer")
for key, name in (("lost", "chatcmpl-0"), ("free", "chatcmpl-1")): # as if the disk had been full
    rows("ledger.answers", "INSERT INTO answer(id, principal, dataset, key, hash, state, amount, charge, created, label, round) "
         "SELECT '%s', principal, dataset, '%s', hash, 1, amount, 0, created, label, round + 1 FROM answer "
         "WHERE key = 'model'" % (name, key))
check(run("ledger", "charge", "ledger", "--rho", "1e-4", "--note", "answer chatcmpl-0 over HTTP: x").returncode == 0,
      "a charge")
for again in range(2):
    code, reply = s.chat(key="lost")
    check(code == 409 and reply["error"]["code"] == "answer_lost" and "was lost" in reply["error"]["message"] and
          s.headers["X-Should-Retry"] == "false", "a charge without an answer: %s" % reply)
check("protects   one line of a .jsonl file; replace-by-null" in run("ledger", "show", "ledger").stdout, "whom it protects")
check(s.chat(key="free")[0] == 200, "a row without a charge is no answer")
# A client that retries by itself pays once: it is told not to, and a retry that it counts needs a key.
code, reply = s.chat(again=1)
check(code == 400 and reply["error"]["code"] == "idempotency_key_needed", "a retry without a key: %s" % reply)
check(s.chat(key="free", again=1)[0] == 200, "a retry with its key")
rows("ledger.answers", "CREATE TRIGGER full BEFORE UPDATE OF text ON answer BEGIN SELECT RAISE(ABORT, 'full'); END")
code, reply = s.chat(again=0)
check(code == 500 and "its charge is spent" in reply["error"]["message"] and s.headers["X-Should-Retry"] == "false",
      "an answer that was charged and not kept: %s %s" % (reply, s.headers))
rows("ledger.answers", "DROP TRIGGER full")
links = ["report" in c for c in s.budget()["history"]]
check(links == [False, True, False, True], "reports of what is released: %s" % links)
s.stop()

# ---- Keys of requests that wait --------------------------------------------------------------------------------------
s = serve_anew("--parallel", "1", epsilon=1000)
replies = {}


def ask(name, key, n_tokens):
    replies[name] = s.chat(question(1, n_tokens), key=key)


threads = []
for name, key, n_tokens, state in (("long", "k1", 300, "answers_drawn"), ("first", "k2", 6, "answers_waiting")):
    threads.append(threading.Thread(target=ask, args=(name, key, n_tokens)))
    threads[-1].start()
    wait_until(lambda: s.metric(state) >= 1, "%s: %s" % (state, replies))
ask("again", "k2", 6)
ask("other", "k2", 7)
join(threads)
check(replies["again"][0] == 409 and replies["again"][1]["error"]["code"] == "answer_in_progress", "a key that waits")
check(replies["other"][0] == 422, "another request with a key that waits: %s" % (replies["other"],))
check(replies["long"][0] == replies["first"][0] == 200, "what waited is answered")
ask("then", "k2", 6)
check(replies["then"] == replies["first"] and len(charges()) == 2, "and sent again")

# ---- Bodies that are too long, paths that end early, a dataset that is closed -----------------------------------------
for n_bytes in (2 << 20, 8 << 20):
    code, reply = s.chat(question(user="x" * n_bytes))
    check(code == 413 and "bytes, allowed 1048576" in reply["error"]["message"], "a long body: %s" % code)
for path, code in (("/health%00zz", 404), ("/metrics%00", 404), (BUDGET + "/letters%00", 404), ("/health%", 404),
                   ("/he%61lth", 200)):
    check(s.get(path)[0] == code, path)
check(s.plan()["answers_left"] > 0, "a plan")
check(run("ledger", "close", "ledger").returncode == 0, "a dataset is closed")
plan = s.plan()
check(plan["answers_left"] == 0 and plan["remaining"] == 0, "the plan of a closed dataset: %s" % plan)
check(s.chat()[0] == 403, "a closed dataset")
s.stop()

# ---- kill -9 --------------------------------------------------------------------------------------------------------
def outcome(s):
    """What one request came to: its reply, or None where the server died."""
    try:
        return s.chat(key="k")
    except (OSError, http.client.HTTPException, ValueError):
        return None


def serve_until(at):
    """A server that dies before that call, and counts calls."""
    write("count", "\0" * 8)
    return serve_anew(LD_PRELOAD=preload, DPI_KILL_AT=str(at), DPI_KILL_LOG=os.path.abspath("count"))


def n_calls():
    with open("count", "rb") as f:
        return struct.unpack("q", f.read())[0]


def is_answer(reply):
    return reply is not None and reply[0] == 200


def kill_at(at):
    """What a server comes to that is killed before a call: nothing of an answer is there, or its charge alone (lost), or
    it is kept, or was even sent."""
    s = serve_until(at)
    seen = outcome(s) if s.port else None
    s.kill()
    s = serve()
    before = charges()
    again = outcome(s)
    after = charges()
    what = "call %d: seen %s, then %s, %d and %d charges" % (at, seen, again, len(before), len(after))
    kind = "sent" if is_answer(seen) else "lost" if not is_answer(again) else "kept" if before else "nothing"
    check(len(after) == 1 and len(before) == (kind != "nothing"), what)
    check(kind != "sent" or again == seen, "an answer that was seen: " + what)
    check(kind != "lost" or again[0] == 409 and "lost" in again[1]["error"]["message"], what)
    for _ in range(2):
        check(outcome(s) == again, "the same again: " + what)
    s.stop()
    return kind


s = serve_until(0)
started = n_calls()
check(is_answer(outcome(s)), "an answer that nothing stops")
last = n_calls() + 1
s.kill()
check(last > started + 21, "only %d calls change files" % (last - 1 - started))
kinds = {at: kill_at(at) for at in [*range(1, last, every), last]}
gaps = list(zip(list(kinds), list(kinds)[1:]))
while gaps: # between two places that come to different ends there is the one where it changes
    low, high = gaps.pop()
    middle = (low + high) // 2
    if kinds[low] != kinds[high] and middle > low:
        kinds[middle] = kill_at(middle)
        gaps += [(low, middle), (middle, high)]
check(set(kinds.values()) >= {"nothing", "lost", "kept", "sent"}, "phases that were met: %s" % kinds)

# ---- Side by side, a copy of the ledger meanwhile, and SIGTERM ------------------------------------------------------
s = serve_anew("--waiting", "2000", epsilon=1000)
results, threads = side_by_side(s, 12, .5, 20)
while not any(results):
    with closing(sqlite3.connect("ledger")) as source, closing(sqlite3.connect("copy")) as copy:
        source.backup(copy)
    check(rows("copy", "PRAGMA integrity_check") == [("ok",)], "a copy")
join(threads)
check(all(r[0] == 200 for r in results), "answers side by side: %s" % [r for r in results if r[0] != 200][:2])
check(len(charges()) == len(results), "a charge for each")
check(len(charges("copy")) <= len(results), "the copy")
s.stop()
s = serve_anew("--waiting", "2000", "--parallel", "4", epsilon=1000)
results, threads = side_by_side(s, 12, .5, 20)
wait_until(lambda: s.budget()["charges"] >= 2, "two charges: %s" % results)
s.stop()
join(threads)
done = [r for r in results if r[0] == 200]
check(2 <= len(done) and all(r[0] in (0, 200, 503) for r in results), "SIGTERM: %s" % sorted({r[0] for r in results}))
check(len(charges()) == len(done), "SIGTERM: %d charges, %d answers" % (len(charges()), len(done)))

# ---- Memory at rest -------------------------------------------------------------------------------------------------
def planned_memory(s):
    return s.metric("memory_idle_bytes") / 1024


s = serve_anew("--record-cache", "0", epsilon=1000)
results, threads = side_by_side(s, 8, .5, 10)
join(threads)
check(all(r[0] == 200 for r in results), "eight at once: %s" % results)
planned = planned_memory(s)
wait_until(lambda: s.memory() < 1.15 * planned, "more than %d KiB at rest" % planned) # once nothing has been drawn for a moment
check(s.memory() > .85 * planned, "%d KiB at rest, and %d are planned" % (s.memory(), planned))
s.stop()
os.rename("refs.jsonl", "short.jsonl")
# The plan begins with what the process has, which differs by some MiB from start to start on a busy machine; the records are
# four times that.
write("refs.jsonl", (json.dumps({"text": "word " * 20000}) + "\n") * 160)
s = serve_anew("--record-cache", "0", epsilon=1000)
check(abs(planned_memory(s) - planned) < 4096, "a plan of memory depends on how long records are")
s.stop()
os.rename("short.jsonl", "refs.jsonl")

# ---- A thousand connections -----------------------------------------------------------------------------------------
s = serve_anew("--waiting", "5", epsilon=1000, more=",batch=4")
body = json.dumps(question(.3, 3)).encode()
whole = request(body, CHAT)
connections = []
for i in range(1000):
    connections.append(s.connect())
    connections[-1].sendall(whole[:-len(body)])
check(s.get("/health")[0] == 200, "health among a thousand")
for c in connections:
    c.sendall(body)
codes = []
for c in connections:
    reply = http.client.HTTPResponse(c)
    reply.begin()
    codes.append(reply.status)
    reply.read()
    c.close()
check(set(codes) <= {200, 503} and codes.count(200) >= 6, "a thousand: %s" % set(codes))
check(len(charges()) == codes.count(200), "a charge for each answer of a thousand")
s.stop()
passed(", kills at %s" % sorted(kinds.items()))
