#!/usr/bin/env python3
"""An adversary of the program, from outside: models, adapters, vectors, records, folders, options, reports, ledgers, servers, signals and limits.

adversary.py path/to/dpinfer [CASES] [SEED]

Each case is one run of the program, drawn from a generator of pseudo-random numbers. Whatever it is given:
it ends in time, by itself or by the signal that it was sent; its exit code is one of the README's, with a
reason on stderr; no input and no file that was there before is changed; no temporary file stays that it
has not told of; no message holds words of a record.
"""
import glob
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.realpath(sys.argv[1])
CASES = int(sys.argv[2]) if len(sys.argv) > 2 else 250
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)
SECRET = b"Zylberquist"
SECONDS = 300  # a case takes less than one on an idle machine
draw = random.Random(SEED)
failures = 0


def program(*words, **more):
    return subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False, **more)


def prepare():
    """What every case begins with: a small model, records, a report, a ledger, a file to keep."""
    program("make-model", "--layers", "1", "--embd", "32", "--ff", "32", "--heads", "2", "--vocab-size", "300",
            "-o", "m.gguf")
    with open("r.jsonl", "wb") as f:
        for i in range(6):
            f.write(b'{"who": "p%d", "text": "Record %d of %s."}\n' % (i // 2, i, SECRET))
    with open("r.csv", "wb") as f:
        f.write(b"who,text\n")
        for i in range(6):
            f.write(b'p%d,"Record %d, of %s."\n' % (i // 2, i, SECRET))
    os.mkdir("refs")
    for i in range(4):
        with open("refs/%d.txt" % i, "wb") as f:
            f.write(b"Record %d of %s." % (i, SECRET))
    program("run", "m.gguf", "r.jsonl", "--rho", "1", "-n", "3", "-q", "--report", "ok.json")
    program("ledger", "init", "year", "--dataset", "all", "--epsilon", "20", "--delta", "1e-6")
    job = ("r.jsonl", "--rho", "1", "-B", "2", "-n", "3", "-t", "1", "-q")
    program("run", "m.gguf", *job, "--job", "job", "-o", "job.txt")
    program("plan", "m.gguf", *job, "--job", "shards")
    program("run", "m.gguf", *job, "--job", "shards", "--shard", "0/2")
    shutil.copytree("shards", "drawn")
    program("run", "m.gguf", *job, "--job", "drawn", "--shard", "1/2")
    program("finetune", "m.gguf", "r.jsonl", "--delta", "1e-3", "--steps", "2", "--units", "8", "--sigma", "2", "--rank", "2", "--positions", "16", "-t", "1", "-q",
            "--checkpoint", "state", "--checkpoint-steps", "1", "-o", "a.gguf")
    with open("vectors.txt", "wb") as f:
        f.write(b"the 0 0\nrecord 1 0\nof 1 .5\nsat 0 2\nran .25 2\n")
    program("perturb", "--vectors", "vectors.txt", "r.jsonl", "--distances", "distances", "-o", "words.jsonl")
    program("augpe", "m.gguf", "r.jsonl", "--rho", "1", "--num", "1", "-n", "2", "--rounds", "1", "-t", "1", "-q", "-o", "votes.jsonl", "--report", "votes.json")
    with open("keep", "wb") as f:
        f.write(b"what was there before\n")
    assert all(os.path.exists(x) for x in ("m.gguf", "ok.json", "year", "job/tokens", "job.txt", "a.gguf", "state", "distances", "votes.json"))


def damage(data, tokens=()):
    """Bytes that were changed, cut, inserted, repeated."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        at = draw.randrange(len(data) + 1)
        what = draw.randrange(7)
        if what == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif what == 1:
            data[at:at + 8] = draw.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)).to_bytes(8, "little")
        elif what == 2:
            del data[at:]
        elif what == 3:
            del data[at:at + draw.randrange(1, 40)]
        elif what == 4:
            data[at:at] = draw.choice(tuple(tokens) or (b"\0",))
        elif what == 5:
            data[at:at] = data[at:at + draw.randrange(1, 200)] * draw.choice((1, 2, 50))
        else:
            data[at:at] = draw.randbytes(draw.randrange(1, 30))
    return bytes(data)


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def content(path):
    with open(path, "rb") as f:
        return f.read()


# ---- What a case is --------------------------------------------------------------------------------

TOKENS = (b'"', b'""', b"\n", b"\r", b"\r\n", b",", b";", b"\t", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"{", b"[" * 3000,
          b'"text": "x"', b"\\u0000", b"\\ud800", b"1e999", b"-0", b"null", b"x" * 100000, b'"\n' * 2000)
VALUES = ("0", "-1", "1", "3", "1e-6", "0.5", "nan", "inf", "-inf", "1e308", "1e-308", "99999999999999999999", "0x10", "",
          " 1", "1 ", "1,5", "-", "--", "a", "\x1b[2J", "\xff", "%s%n", "../keep", "/dev/null", "/dev/full", "/dev/zero", ".",
          "keep", "r.jsonl", "no/such", "x" * 5000, "2147483648", "4294967296", "who", "text", ";", "\t", '"', "latin1", "utf-8",
          "add-remove", "zcdp", "br", "filter", "svt", "amin", "plain", "unit", "dataset")


def options_of(command):
    words = program("help", command).stdout.decode("utf-8", "replace").split()
    return sorted({w.rstrip(",") for w in words if w.startswith("-") and len(w) > 1 and w.rstrip(",").lstrip("-").replace("-", "").isalnum()})


def records_case():
    kind = draw.choice(("jsonl", "csv", "folder", "odd"))
    base = ["run", "m.gguf", "bad", "--rho", "1", "-n", "2", "-t", "1"]
    if kind == "folder":
        os.mkdir("bad")
        for i in range(draw.randrange(5)):
            name = b"bad/" + draw.choice((b"%d.txt" % i, b"\xff%d.txt" % i, b"a\nb%d.txt" % i, b"-%d.txt" % i, b" %d.TXT" % i))
            what = draw.randrange(7)
            if what == 0:
                os.mkfifo(name)
            elif what == 1:
                os.symlink(b"nowhere" if draw.randrange(2) else os.path.basename(name), name)
            elif what == 2:
                os.mkdir(name)
            elif what == 3:
                os.symlink(b"/dev/zero", name)
            else:
                write(name, damage(b"Record of " + SECRET, TOKENS))
    elif kind == "odd":
        draw.choice((lambda: os.mkfifo("bad.csv"), lambda: os.symlink("/dev/zero", "bad.jsonl"), lambda: os.symlink("bad.csv", "bad.csv"),
                     lambda: write("bad.csv", b""), lambda: write("bad.jsonl", b"\n" * 100)))()
        base[2] = glob.glob("bad*")[0] if glob.glob("bad*") else "bad.csv"
    else:
        base[2] = write("bad." + kind, damage(content("r." + kind), TOKENS))
    for more in (("--unit-field", "who"), ("--delimiter", draw.choice((";", "\t", ","))), ("--encoding", draw.choice(("latin1", "windows-1252", "utf16", "utf16be"))),
                 ("--text-field", draw.choice(("text", "who", "")),), ("--num", "2", "-B", "2"), ("--parallel", "2"), ("--jsonl",)):
        if draw.randrange(4) == 0 and not (more[0] == "--unit-field" and kind == "folder"):
            base += more
    return base


def model_case():
    write("bad.gguf", damage(content("m.gguf"), TOKENS))
    return draw.choice((["inspect", "bad.gguf", "--check"], ["run", "bad.gguf", "r.jsonl", "--rho", "1", "-n", "2", "-t", "1"],
                        ["quantize", "bad.gguf", "q.gguf", draw.choice(("Q8_0", "Q4_0", "F32"))], ["tokenize", "bad.gguf"],
                        ["plan", "bad.gguf", "r.jsonl", "--rho", "1"], ["verify", "ok.json", "--model", "bad.gguf"],
                        ["make-model", "--layers", "1", "--embd", "32", "--ff", "32", "--heads", "2", "--vocab", "bad.gguf", "-o", "q.gguf"]))


def report_case():
    data = content("ok.json")
    if draw.randrange(2):
        tree = json.loads(data)
        section = tree[draw.choice(sorted(k for k in tree if isinstance(tree[k], dict) and tree[k]))]
        for _ in range(draw.randrange(1, 3)):
            section[draw.choice(sorted(section))] = draw.choice((0, -1, 2**63, 1e308, 1e-308, None, True, "x" * 9999, [], {}, "zcdp", "br", 10240, 1 << 20))
        data = json.dumps(tree).encode()
    else:
        data = damage(data, TOKENS)
    write("bad.json", data)
    return ["verify", "bad.json"] + draw.choice(([], ["--json"], ["--model", "m.gguf"]))


def ledger_case():
    shutil.copy("year", "bad.year")
    if draw.randrange(3):
        write("bad.year", damage(content("year")))
    if draw.randrange(4) == 0:
        write("bad.year-journal", draw.randbytes(600))
    action = draw.choice(("show", "budget", "charge", "close", "init", "run"))
    if action == "run":
        return ["run", "m.gguf", "r.jsonl", "--rho", "1", "-n", "2", "-t", "1", "--ledger", "bad.year"]
    more = {"charge": ["--rho", draw.choice((".1", "1e6", "1e-300"))], "init": ["--dataset", draw.choice(("all", "b", "x" * 300)), "--epsilon", "1", "--delta", "1e-6"]}
    return ["ledger", action, "bad.year"] + more.get(action, [])


def job_case():
    """A folder of a job or of shards, of which files were changed, cut, lost, or are something else."""
    kind = draw.choice(("job", "shards", "drawn"))
    shutil.copytree(kind, "badjob")
    files = sorted(x for x in glob.glob("badjob/**", recursive=True) if os.path.isfile(x))
    for path in draw.sample(files, min(len(files), draw.randrange(3))):
        what = draw.randrange(5)
        if what <= 1:
            write(path, damage(content(path), TOKENS))
        else:
            os.remove(path)
            if what == 3:
                os.mkfifo(path)
            elif what == 4:
                os.symlink(draw.choice(("/dev/zero", "../keep", "nowhere", os.path.basename(path))), path)
    words = ["run", "m.gguf", "r.jsonl", "--rho", "1", "-B", "2", "-n", "3", "-t", "1", "-q", "--job", "badjob"]
    if kind == "job":
        return draw.choice((["resume", "badjob", "-q", "--overwrite"], ["resume", "badjob", "-o", draw.choice(("keep", "badjob/tokens", "new"))],
                            words))
    more = draw.choice(([], ["--partial"], ["--report", draw.choice(("keep", "badjob/key", "new.html", "new.json"))]))
    return draw.choice((words + ["--shard", draw.choice(("0/2", "1/2", "0/1", "2/2", "-1/2", "0/0", "1/99999999999", "x"))],
                        ["merge", draw.choice(("-", "new", "new.jsonl", "keep", "badjob/x", "r.jsonl")), "badjob"] + more,
                        ["merge", "new", "badjob", draw.choice(("drawn", "badjob", "job", "refs", "keep"))] + more))


def meta_case():
    """Fields of a report, and prompts, of any kind; a report beside its texts."""
    texts = ("<script>alert(1)</script>", "\"><img src=x onerror=y>", "|a|b|\n# c", "\x1b[2J", "\u202e", "x" * 70000, "{reference}", "")
    write("bad.json", damage(json.dumps({draw.choice(("organisation", "purpose") + texts): draw.choice(texts)}).encode(), TOKENS)
          if draw.randrange(2) else json.dumps({draw.choice(("organisation", texts[0])): draw.choice(texts[:5])}).encode())
    if draw.randrange(4) == 0:
        return ["verify", "ok.json", "--output", draw.choice(("keep", "job.txt", "refs", "/dev/zero", "no/such", "bad.json"))]
    return ["run", "m.gguf", "r.jsonl", "--rho", "1", "-n", "2", "-t", "1", "-q", "--meta", "bad.json", "--report",
            draw.choice(("new.html", "new.md", "new.json", "bad.json", "keep")), "--public-prompt", draw.choice(texts[:6])]


def adapter_case():
    """An adapter that was changed, wherever one is read; its claim too."""
    write("bad.gguf", damage(content("a.gguf"), TOKENS))
    return draw.choice((["generate", "m.gguf", "--lora", "bad.gguf", "--num", "2", "-n", "3", "-t", "1"], ["inspect", "m.gguf", "--lora", "bad.gguf"], ["verify", "bad.gguf"],
                        ["run", "m.gguf", "r.jsonl", "--rho", "1", "-n", "2", "-t", "1", "-q", "--lora", "bad.gguf"], ["quantize", "m.gguf", "q.gguf", "Q8_0", "--lora", "bad.gguf"],
                        ["generate", "m.gguf", "--lora", "a.gguf", "--num", draw.choice(VALUES), "-n", "2", "-t", "1", "--lora-scale", draw.choice(VALUES)]))


def votes_case():
    """Private evolution on records of any kind; its report, changed."""
    if draw.randrange(2):
        write("bad.json", damage(content("votes.json"), TOKENS))
        return ["verify", "bad.json"] + draw.choice(([], ["--json"], ["--model", "m.gguf"], ["--output", draw.choice(("votes.jsonl", "keep", "no/such"))]))
    return ["augpe", "m.gguf", write("bad.jsonl", damage(content("r.jsonl"), TOKENS)), "--rho", "1", "--num", "1", "-n", "2", "--rounds", "1", "-t", "1", "-q",
            "-o", draw.choice(("new.jsonl", "keep", "bad.jsonl", "/dev/full", "m.gguf")), "--report", draw.choice(("new.json", "keep", "ok.json", "new.jsonl"))]


def tune_case():
    """Fine-tuning that goes on from a file that was changed, or on records of any kind."""
    words = ["finetune", "m.gguf", "r.jsonl", "--delta", "1e-3", "--steps", "2", "--units", "8", "--sigma", "2", "--rank", "2", "--positions", "16", "-t", "1", "-q", "-o", "new.gguf"]
    what = draw.randrange(4)
    if what == 0:
        words += ["--checkpoint", write("bad.state", damage(content("state"), TOKENS))]
        os.rename("bad.state", "state.bad")  # it may be replaced
        words[-1] = "state.bad"
    elif what == 1:
        words[2] = write("bad.jsonl", damage(content("r.jsonl"), TOKENS))
    elif what == 2:
        words += [draw.choice(("--rank", "--alpha", "--targets", "--clip", "--lr", "--optimizer", "--expected", "--units", "--instruction", "--merge", "--held-out")), draw.choice(VALUES)]
    else:
        shutil.copy("year", "bad.year")
        write("bad.year", damage(content("year")))
        words += ["--ledger", "bad.year"]
    return words


def words_case():
    """Words that are replaced: vectors, distances and documents of any kind."""
    vectors, distances, documents = "vectors.txt", [], "r.jsonl"
    what = draw.randrange(4)
    if what == 0:
        vectors = write("bad.txt", damage(content("vectors.txt"), TOKENS + (b"nan", b"1e39", b" ", b"the 0 0\n")))
    elif what == 1:
        write("near", damage(content("distances")))
        distances = ["--distances", "near"]
    elif what == 2:
        documents = write("bad.jsonl", damage(content("r.jsonl"), TOKENS))
    command = draw.choice((["perturb"], ["perturb", "--json"], ["attack", "--no-language"], ["infer", "m.gguf", "--remote-model", "x", "--dry-run"], ["infer", "m.gguf", "--remote", "http://127.0.0.1:1", "--remote-model", "x", "--retries", "0"]))
    if what == 3:
        command = command + [draw.choice(("--mechanism", "--epsilon", "--vocabulary", "--rare", "--replaced", "--group-size", "--text-field")), draw.choice(VALUES)]
    return command + [documents, "--vectors", vectors] + distances


def eval_case():
    """Texts, vectors and options of an evaluation."""
    if draw.randrange(4) == 0:
        for name in ("bad.f32", "ok.f32"):
            write(name, draw.randbytes(4 * draw.choice((0, 1, 8, 64, 400))) if name == "bad.f32" or draw.randrange(2) else bytes(4 * 64))
        return ["eval", "bad.f32", "ok.f32", "--features", "--dim", draw.choice(("1", "4", "8", "3") + VALUES[:14]), "--clusters", draw.choice(("2", "3") + VALUES[:14])]
    words = ["eval", write("bad.jsonl", damage(content("r.jsonl"), TOKENS)), "--real", "r.jsonl", "-o", draw.choice(("-", "new.html", "new.json", "new.csv", "keep", "bad.jsonl", "no/new"))]
    write("bad.gbnf", damage(b'root ::= "a" [0-9]{1,3} | root root\n', TOKENS))
    for more in (("--model", "m.gguf"), ("--train", "r.csv"), ("--label-field", "who"), ("--json",), ("--grammar", "bad.gbnf"), ("--canaries", "r.csv", "--controls", "bad.jsonl"),
                 ("--prompts", "bad.jsonl"), ("--dp-epsilon", draw.choice(VALUES)), ("--ledger", "year"), ("--overwrite",), ("--text-field", draw.choice(VALUES))):
        if draw.randrange(3) == 0:
            words += more
    return [w for w in words if w != "--overwrite" or "keep" not in words]


def serve_case():
    """A server whose datasets, tokens, ledger or options are of any kind; it is told to end."""
    shutil.copy("year", "bad.year")
    if draw.randrange(3) == 0:
        write("bad.year", damage(content("year")))
    source = draw.choice(("r.jsonl", "r.csv", "refs", "no/such", "/dev/zero", write("bad.jsonl", damage(content("r.jsonl"), TOKENS))))
    spec = "all=%s%s" % (source, draw.choice(("", ",epsilon=20,delta=1e-6", ",unit=who,epsilon=2,delta=1e-6", ",label=who", ",batch=-1", ",epsilon=nan", ",=,", ",batch=" + draw.choice(VALUES).replace("\0", ""))))
    words = ["serve", "m.gguf", "--port", "0", "-t", "1", "--dataset", damage(spec.encode()).replace(b"\0", b"").decode("latin1") if draw.randrange(4) == 0 else spec, "--ledger", "bad.year"]
    if draw.randrange(3) == 0:
        words += ["--tokens", write("bad.tokens", damage(b"clerk " + b"0" * 64 + b"\n", TOKENS))]
    if draw.randrange(4) == 0:
        words += [draw.choice(("--host", "--port", "--parallel", "--waiting", "--max-tokens", "--template")), draw.choice(VALUES)]
    return words


def options_case():
    command, first = draw.choice((("run", ["m.gguf", "r.jsonl", "--rho", "1", "-n", "2"]), ("plan", ["m.gguf", "r.csv", "--rho", "1"]), ("account", ["--rho", "1"]),
                                  ("ledger", ["show", "year"]), ("merge", ["-", "drawn"]), ("resume", ["job", "-q"]),
                                  ("make-model", ["-o", "q.gguf", "--layers", "1", "--embd", "32", "--ff", "32", "--heads", "2"]), ("verify", ["ok.json"]), ("tokenize", ["m.gguf"]), ("logits", ["m.gguf"]),
                                  ("quantize", ["m.gguf", "q.gguf", "Q8_0"]), ("inspect", ["m.gguf"]), ("completion", ["bash"]),
                                  ("finetune", ["m.gguf", "r.jsonl", "--delta", "1e-3", "--steps", "1", "--units", "8", "--sigma", "2", "-o", "new.gguf"]), ("generate", ["m.gguf", "--lora", "a.gguf", "-n", "2"]),
                                  ("eval", ["r.jsonl", "--real", "r.csv"]), ("records", ["r.csv", "--unit-field", "who"]), ("augpe", ["m.gguf", "r.jsonl", "--rho", "1", "--num", "1", "-n", "2", "--rounds", "1", "-o", "new.jsonl"]), ("perturb", ["--vectors", "vectors.txt", "r.jsonl"]), ("attack", ["--vectors", "vectors.txt", "r.jsonl", "--no-language"]),
                                  ("infer", ["m.gguf", "r.jsonl", "--vectors", "vectors.txt", "--remote-model", "x", "--dry-run"])))
    words = [command] + [w for w in first if draw.randrange(12)]
    if command not in KNOWN:
        KNOWN[command] = options_of(command)
    for _ in range(draw.randrange(1, 5)):
        words.append(draw.choice(KNOWN[command]))
        if draw.randrange(4):
            words.append(draw.choice(VALUES))
    return words


def output_case():
    """Outputs over what is there, over inputs, into nowhere."""
    words = ["run", "m.gguf", draw.choice(("r.jsonl", "r.csv", "refs")), "--rho", "1", "-n", "3", "-t", "1", "-q"]
    for option in ("-o", "--report", "--report"):
        if draw.randrange(3):
            words += [option, draw.choice(("keep", "./keep", "r.jsonl", "refs/1.txt", "refs/../m.gguf", "new", "new.md", "new.html", "no/new", "/dev/full",
                                           "/dev/null", "-", "refs", "", "new/", "year", "../" + os.path.basename(os.getcwd()) + "/r.csv"))]
    return words


KNOWN = {}
KINDS = (records_case, model_case, report_case, ledger_case, options_case, output_case, job_case, meta_case, adapter_case, tune_case, words_case, eval_case, serve_case, votes_case)


# ---- A run of it -----------------------------------------------------------------------------------

def limits():
    """What the machine gives: often little."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    which = LIMIT[0]
    if which:
        resource.setrlimit(which[0], (which[1], which[1]))


LIMIT = [None]
LIMITS = ((resource.RLIMIT_AS, 60 << 20), (resource.RLIMIT_AS, 150 << 20), (resource.RLIMIT_NOFILE, 5), (resource.RLIMIT_NOFILE, 9),
          (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_FSIZE, 1000), (resource.RLIMIT_STACK, 1 << 20))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGSEGV, signal.SIGABRT, signal.SIGXCPU, signal.SIGALRM)


def fingerprint(path):
    if not os.path.isfile(path) or os.path.islink(path):
        return "not a file"
    return hashlib.sha256(content(path)).hexdigest()


def end_server(child):
    """Once it has told its address, a request of any kind, and the signal to end. What was sent."""
    until = time.monotonic() + SECONDS
    while child.poll() is None and not content("out").endswith(b"\n") and time.monotonic() < until:
        time.sleep(.005)
    address = re.match(rb"http://([^:/]*):(\d+)", content("out"))
    if child.poll() is not None or not address:
        return None
    try:
        with socket.create_connection((address[1].decode(), int(address[2])), 1) as s:
            s.sendall(damage(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 70\r\n\r\n"
                             b'{"prompt": "A", "dataset": "all", "privacy": {"epsilon": 1}, "max_tokens": 2}', TOKENS))
    except OSError:
        pass
    child.send_signal(signal.SIGTERM)
    return signal.SIGTERM


def run(words):
    """Exit code, stderr, what was sent."""
    sent = None
    with open("out", "wb") as out:
        child = subprocess.Popen([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, preexec_fn=limits)
    try:
        if words[0] == "serve":  # it ends by itself only if something is wrong
            sent = end_server(child)
        elif LIMIT[0] is None and draw.randrange(4) == 0:
            try:
                child.communicate(timeout=draw.choice((.001, .003, .01, .03)))
            except subprocess.TimeoutExpired:
                sent = draw.choice(SIGNALS)
                child.send_signal(sent)
        err = child.communicate(timeout=SECONDS)[1]
    except subprocess.TimeoutExpired:
        child.kill()
        return "hangs", child.communicate()[1], sent
    except ValueError:  # it ended within the first wait
        err = b"?"
    return child.returncode, err, sent


def complain(number, words, what, err):
    global failures
    failures += 1
    print("FAILED: case %d of seed %d: dpinfer %s%s: %s" % (number, SEED, " ".join(repr(w) if not w.isprintable() or " " in w else w[:80] for w in words),
                                                          " under %s" % (LIMIT[0],) if LIMIT[0] else "", what))
    print("  stderr: %r" % err[-300:])


def case(number):
    LIMIT[0] = draw.choice(LIMITS) if draw.randrange(5) == 0 else None
    words = draw.choice(KINDS)()
    given = ["m.gguf", "r.jsonl", "r.csv", "ok.json", "keep", "drawn/key"] + sorted(glob.glob("refs/*")) + [x for x in glob.glob("bad*") if not x.startswith("bad.year")]
    may_replace = "--overwrite" in words
    before = {path: fingerprint(path) for path in given}
    code, err, sent = run(words)
    allowed = set(range(8)) | ({128 + sent, -sent} if sent else set())
    # An allocation of the loader or of the shell fails before the program begins.
    if LIMIT[0] and code == 127 and b"error while loading shared libraries" in err:
        allowed.add(127)
    if code not in allowed:
        complain(number, words, "exit code %s%s" % (code, " after signal %d" % sent if sent else ""), err)
    if code in range(1, 8) and not err:
        complain(number, words, "exit code %d without a reason" % code, err)
    if SECRET in err:
        complain(number, words, "a record is in a message", err)
    for path, sum_ in before.items():
        if fingerprint(path) != sum_ and not (path == "keep" and may_replace):
            complain(number, words, "%s was changed" % path, err)
    for part in glob.glob("**/*part*", recursive=True):
        if os.fsencode(os.path.basename(part)) not in err:
            complain(number, words, "%s is left" % part, err)
    if code == 0 and not sent and "-o" not in words and words[0] == "run" and len(words) < 9 and os.path.getsize("out") == 0 and "-h" not in words:
        complain(number, words, "it succeeded without a text", err)


def main():
    top = tempfile.mkdtemp(prefix="adversary-")
    try:
        os.mkdir(top + "/first")
        os.chdir(top + "/first")
        prepare()
        os.chdir(top)
        for number in range(CASES):
            shutil.copytree("first", "case")
            os.chdir("case")
            case(number)
            os.chdir(top)
            shutil.rmtree("case")
    finally:
        os.chdir("/")
        shutil.rmtree(top, ignore_errors=True)
    print("adversary: %d cases of seed %d, %d failures" % (CASES, SEED, failures))
    return failures > 0


sys.exit(main())
