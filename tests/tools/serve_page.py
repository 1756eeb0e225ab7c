#!/usr/bin/env python3
"""The page of `dpinfer serve` in Chromium, without a display: a question by keyboard alone, its answer, the budget, the
report; a token; widths of 320 to 1600 pixels, light and dark; what the policy of the page refuses.
    serve_page.py path/to/dpinfer MODEL [FOLDER]     pictures go to FOLDER"""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

from serve_support import LIMIT, Server, check, children, enter_folder, passed, verify, write, write_records

pictures = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
chromium = shutil.which("chromium") or shutil.which("chromium-browser")
if not chromium:
    print("skipped: no chromium")
    sys.exit(77)
STILL = {"name": "prefers-reduced-motion", "value": "reduce"} # the bar has its width at once
ANSWERED = "The answer is there."


class Browser:
    """The DevTools protocol over two pipes: JSON that ends in a NUL byte."""

    def __init__(self):
        to_read, self.to_write = os.pipe()
        self.to_read, to_write = os.pipe()

        def connect():
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        children.append(subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
             "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + tempfile.mkdtemp(dir="."), "about:blank"],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        os.close(to_read)
        os.close(to_write)
        self.rest, self.n, self.session, self.events = b"", 0, None, []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.to_read, 1 << 16)
            check(part, "the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.n += 1
        message = {"id": self.n, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while (reply := self.receive()).get("id") != self.n:
            self.events.append(reply)
        check("error" not in reply, "%s: %s" % (method, reply.get("error")))
        return reply["result"]

    def event(self, method):
        """Waits for the next one."""
        for i, event in enumerate(self.events):
            if event.get("method") == method:
                return self.events.pop(i)
        while (event := self.receive()).get("method") != method:
            self.events.append(event)
        return event

    def run(self, code):
        reply = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        check("exceptionDetails" not in reply, "%s: %s" % (code, reply.get("exceptionDetails")))
        return reply["result"].get("value")

    def of(self, selector, what="textContent"):
        return self.run("document.querySelector('%s').%s" % (selector, what))

    def until(self, selector, condition, what):
        """Waits in the page, at each change of it, until that of an element holds."""
        held = self.run("""new Promise(done => { const look = () => { if (document.querySelector('%s').%s) {
                watch.disconnect(); done(true); } };
            const watch = new MutationObserver(look);
            document.addEventListener('focusin', look);
            watch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
            setTimeout(() => done(false), %d); look(); })""" % (selector, condition, 1000 * LIMIT))
        check(held, what + ": " + self.run("document.body.innerText")[:600])

    def until_has(self, selector, words, what):
        self.until(selector, "textContent.includes('%s')" % words, what)

    def until_answered(self, what):
        self.until("#status", "textContent === '%s'" % ANSWERED, what)

    def open(self, address):
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.event("Page.loadEventFired")

    def press(self, key, text=None):
        code = {"Tab": 9, "Enter": 13, " ": 32}[key]
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def enter(self):
        self.press("Enter", "\r")

    def focus_by_keyboard(self, name):
        for _ in range(40):
            if self.run("document.activeElement.id") == name:
                return
            self.press("Tab")
        check(False, "the keyboard does not reach " + name)

    def write(self, name, text):
        """Into a field that the keyboard reaches, in place of what it has."""
        self.focus_by_keyboard(name)
        self.run("document.activeElement.select()")
        self.call("Input.insertText", text=text)

    def fill(self, **fields):
        for name, value in fields.items():
            self.of("#" + name, "value = '%s'" % value)

    def submit(self):
        self.run("say(''); document.querySelector('#form').requestSubmit()")

    def picture(self, name):
        if pictures:
            data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            with open(os.path.join(pictures, name + ".png"), "wb") as f:
                f.write(base64.b64decode(data))


def start(*options):
    """A server, and its page."""
    server = Server("-c", "1024", *options)
    browser.open(server.address + "/")
    return server


enter_folder()
write_records("refs.jsonl", n_units=20)
DATASETS = ["--dataset", "letters=refs.jsonl,label=dept,epsilon=8,delta=1e-6,batch=8", "--ledger", "ledger"]
browser = Browser()
browser.call("Emulation.setEmulatedMedia", features=[STILL])
server = start(*DATASETS)

# ---- A question, by keyboard alone ----------------------------------------------------------------------------------
browser.until_has("#left", "0 charges", "a budget")
check(browser.run("document.activeElement === document.body"), "the focus at the beginning")
browser.press("Tab")
check(browser.run("document.activeElement.className") == "skip", "the first link skips to the question")
browser.enter()
browser.write("question", "Which problem do people have?")
browser.write("epsilon", "2")
browser.write("tokens", "40")
browser.focus_by_keyboard("plan")
browser.press(" ", " ")
browser.until_has("#status", "such answers are left", "a plan")
check("will hardly differ from one without" in browser.of("#status"), "a plan in which records are not heard")
check(browser.of("#left").startswith("0.0 % spent"), "a plan costs nothing")
browser.of("#epsilon", "focus()")
browser.enter() # in a field: the form is sent
browser.until_answered("an answer")
check(browser.run("document.activeElement.id") == "answer-title", "the focus goes to the answer")
check(len(browser.of("#answer")) > 20, "the answer's text")
check("PRIVATE" in browser.of("#facts"), "what it says of privacy")
browser.until_has("#left", "1 charge", "the charge")
check(float(browser.of("#bar", "getAttribute('aria-valuenow')")) > 5, "the bar")
check(browser.of("#bar > div", "getBoundingClientRect().width") > 5, "the bar is seen")
check(browser.run("document.querySelectorAll('#history tr').length") == 1, "the history")


# ---- The report ------------------------------------------------------------------------------------------------------
def reports():
    return [n for n in os.listdir() if n.startswith("chatcmpl-") and n.endswith(".json")]


browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=os.getcwd())
browser.focus_by_keyboard("report")
for what, begin in (("the report", browser.enter),
                    ("the report of a charge", lambda: browser.of("#history button", "click()"))):
    for name in reports():
        os.unlink(name)
    browser.run("say('')")
    begin()
    browser.until_has("#status", "is downloaded", what)
    while browser.event("Page.downloadProgress")["params"]["state"] != "completed":
        pass
    verify(reports()[0])

# ---- What a screen reader has ----------------------------------------------------------------------------------------
for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
    role = node.get("role", {}).get("value")
    if role in ("textbox", "spinbutton", "combobox", "button", "link", "meter", "region") and not node.get("ignored"):
        check(node.get("name", {}).get("value"), "a %s without a name" % role)
check(browser.of("#status", "getAttribute('aria-live')") == "polite", "the live region")
check(browser.run("document.querySelectorAll('h1').length") == 1, "one heading")

# ---- Widths, light and dark ------------------------------------------------------------------------------------------
for scheme in ("light", "dark"):
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}, STILL])
    for width in (320, 800, 1600):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        check(browser.run("document.documentElement.scrollWidth") <= width, "%d pixels are too few" % width)
        check(browser.run("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.scroll'))"),
              "the table of charges is cut at %d pixels" % width)
        lines = browser.run("""[...document.querySelectorAll('td.date span')].map(e => e.getClientRects().length)
            .concat(innerWidth < 640 ? [] : [new Set([...document.querySelectorAll('td.date span')].map(e =>
            e.getBoundingClientRect().top)).size])""")
        check(lines and all(n == 1 for n in lines), "a date in parts at %d pixels: %s" % (width, lines))
        small = browser.run("""[...document.querySelectorAll('button, input, select, textarea')].filter(e =>
            e.getClientRects().length && e.getBoundingClientRect().height < 43).length""")
        check(small == 0, "a control that is too small at %d pixels" % width)
        # Contrast of text, WCAG 2: at least 4.5.
        low = browser.run("""(() => { const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => {
            x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; });
            return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
          const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
            if (!/, 0\\)$/.test(c) && c !== 'transparent') return c; } return 'rgb(255, 255, 255)'; };
          return [...document.querySelectorAll('h1, h2, p, label, span, dt, dd, td, th, button, input')].filter(e => {
            if (!e.getClientRects().length || e.disabled) return false;
            const a = light(getComputedStyle(e).color), b = light(back(e));
            return (Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5; }).map(e => e.outerHTML.slice(0, 80)); })()""")
        check(low == [], "contrast, %s: %s" % (scheme, low))
        browser.picture("%s-%d" % (scheme, width))

# ---- What the policy refuses, and nothing else is fetched -----------------------------------------------------------
browser.run("const s = document.createElement('script'); s.textContent = 'window.bad = 1'; document.body.append(s)")
check(browser.run("window.bad") is None, "a script that is put in")
check(browser.run("fetch('http://127.0.0.1:1/').then(() => 1, () => 0)") == 0, "a request elsewhere")
asked = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
check(asked and all(u.startswith((server.address, "data:", "blob:", "http://127.0.0.1:1/")) for u in asked),
      "requests: %s" % asked)
errors = [e for e in browser.events if e.get("method") == "Runtime.exceptionThrown"]
check(not errors, "exceptions: %s" % errors)
server.stop()

# ---- A server that is away; one with tokens --------------------------------------------------------------------------
browser.submit()
browser.until_has("#status", "does not answer", "a server that is away")
write("tokens", "alice %s letters=0.5\n" % hashlib.sha256(b"secret").hexdigest())
server = start(*DATASETS, "--tokens", "tokens", "--allow-stream")
browser.until("#login", "hidden === false", "a page that wants a token")
browser.write("token", "secret")
browser.enter()
browser.until("#login", "hidden", "a token that is known")
browser.until("#question", "matches(':focus')", "the focus after the token")
browser.write("question", "Which problem do people have?")
browser.fill(label="a")
browser.submit()
browser.until_answered("an answer that is streamed")
browser.until_has("#spenders", "alice", "by whom")
browser.fill(epsilon=7)
browser.submit()
browser.until("#status", "className === 'bad'", "a budget that does not allow it")
check("in parts of the budget: it costs" in browser.of("#status").lower(), "what was refused, in words")
browser.picture("refused")
browser.fill(dataset="")
browser.of("#dataset", "dispatchEvent(new Event('change'))")
browser.submit()
browser.until_answered("a plain answer")
check("none" in browser.of("#facts"), "a plain answer says that it is one")
server.stop()

# ---- A budget for each unit; no dataset at all ----------------------------------------------------------------------
server = start("--dataset", "letters=refs.jsonl,unit=who,scope=unit,epsilon=2,delta=1e-6,batch=8", "--ledger", "units")
browser.until_has("#left", "Each unit (who) has a budget of its own", "units")
check(browser.of("#bar", "hidden"), "a bar of units")
check(browser.of("label[for=batch]").startswith("Units"), "units that answer")
browser.fill(question="Which problem?", tokens=10)
for i in range(6):
    browser.submit()
    browser.until_answered("an answer of units")
    browser.until("#history", "querySelectorAll('tr').length === %d" % (i + 1), "the charges of units")
check("epsilon 2 at delta 1e-6" in browser.of("#left"), "what a new unit has")
check("%" not in browser.of("#left") + browser.of("#spenders"), "nothing is spent of a unit")
check("Units" in browser.of("#facts"), "how many units")
browser.picture("units")
browser.of("#plan", "click()")
browser.until_has("#status", "A new unit can pay for 3 such answers.", "a plan")
browser.fill(epsilon="100")
browser.of("#plan", "click()")
browser.until_has("#status", "All of them together, where they agree: ", "a plan in which they are heard")
server.stop()
server = start()
browser.until("#dataset", "options.length === 1", "no dataset")
check(browser.run("[...document.querySelectorAll('.private, #books, #plan')].every(e => e.hidden)"), "fields without datasets")
check(browser.of("#status") == "", "nothing is wrong")
browser.fill(question="Ticket", tokens=10)
browser.submit()
browser.until_answered("a plain answer")
check(browser.of("#answer"), "the text of a plain answer")
browser.picture("plain")
server.stop()
passed()
