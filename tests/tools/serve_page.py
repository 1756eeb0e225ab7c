#!/usr/bin/env python3
"""The page of `dpinfer serve` in Chromium, without a display: a question by keyboard alone, its answer, the budget, the
report; a token; widths of 320 to 1600 pixels, light and dark; what the policy of the page refuses.
    serve_page.py path/to/dpinfer MODEL [FOLDER]     pictures go to FOLDER"""
import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

program, model = (os.path.abspath(p) for p in sys.argv[1:3])
pictures = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
chromium = shutil.which("chromium") or shutil.which("chromium-browser")
if not chromium:
    print("skipped: no chromium")
    sys.exit(77)
n_passed = 0
children = []


def check(holds, what):
    global n_passed
    if not holds:
        for child in children:
            child.kill()
        sys.exit("FAILED: " + what)
    n_passed += 1


class Browser:
    """The DevTools protocol over two pipes: JSON that ends in a NUL byte."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        to_read, self.to_write = os.pipe()
        self.to_read, to_write = os.pipe()

        def connect():
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
             "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + self.folder, "about:blank"],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children.append(self.process)
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
        while True:
            reply = self.receive()
            if reply.get("id") == self.n:
                check("error" not in reply, "%s: %s" % (method, reply.get("error")))
                return reply["result"]
            self.events.append(reply)

    def event(self, method):
        """Waits for the next one."""
        for i, event in enumerate(self.events):
            if event.get("method") == method:
                return self.events.pop(i)
        while True:
            event = self.receive()
            if event.get("method") == method:
                return event
            self.events.append(event)

    def run(self, code):
        reply = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        check("exceptionDetails" not in reply, "%s: %s" % (code, reply.get("exceptionDetails")))
        return reply["result"].get("value")

    def until(self, condition, what):
        """Waits in the page, at each change of it."""
        held = self.run("""new Promise(done => { const look = () => { if (%s) { watch.disconnect(); done(true); } };
            const watch = new MutationObserver(look);
            document.addEventListener('focusin', look);
            watch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
            setTimeout(() => done(false), 60000); look(); })""" % condition)
        check(held, what + ": " + self.run("document.body.innerText")[:600])

    def open(self, address):
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.event("Page.loadEventFired")

    def press(self, key, text=None, shift=False):
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        more = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=codes.get(key, 0),
                  modifiers=8 if shift else 0, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes.get(key, 0))

    def write(self, text):
        self.call("Input.insertText", text=text)

    def focus_by_keyboard(self, name):
        for _ in range(40):
            if self.run("document.activeElement.id") == name:
                return
            self.press("Tab")
        check(False, "the keyboard does not reach " + name)

    def picture(self, name):
        if pictures:
            data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            open(os.path.join(pictures, name + ".png"), "wb").write(base64.b64decode(data))

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start(*options):
    server = subprocess.Popen([program, "serve", model, "--port", "0", "-t", "1", "-c", "1024", *options],
                              stdout=subprocess.PIPE)
    children.append(server)
    address = server.stdout.readline().decode().strip()
    check(address, "the server begins")
    return server, address


work = tempfile.mkdtemp()
os.chdir(work)
with open("refs.jsonl", "w") as f:
    for i in range(40):
        f.write(json.dumps({"text": "Ticket %d: the printer does not print." % i, "dept": "ab"[i % 2], "who": "p%d" % (i % 20)}) + "\n")
datasets = ["--dataset", "letters=refs.jsonl,label=dept,epsilon=8,delta=1e-6,batch=8", "--ledger", "ledger"]
server, address = start(*datasets)
browser = Browser()

still = {"name": "prefers-reduced-motion", "value": "reduce"} # the bar has its width at once
browser.call("Emulation.setEmulatedMedia", features=[still])

# ---- A question, by keyboard alone ----------------------------------------------------------------------------------
browser.open(address + "/")
browser.until("document.querySelector('#left').textContent.includes('0 charges')", "a budget")
check(browser.run("document.activeElement === document.body"), "the focus at the beginning")
browser.press("Tab")
check(browser.run("document.activeElement.className") == "skip", "the first link skips to the question")
browser.press("Enter", "\r")
browser.focus_by_keyboard("question")
browser.write("Which problem do people have?")
browser.focus_by_keyboard("epsilon")
browser.run("document.activeElement.select()")
browser.write("2")
browser.focus_by_keyboard("tokens")
browser.run("document.activeElement.select()")
browser.write("40")
browser.focus_by_keyboard("plan")
browser.press(" ", " ")
browser.until("document.querySelector('#status').textContent.includes('such answers are left')", "a plan")
check(browser.run("document.querySelector('#left').textContent").startswith("0.0 % spent"), "a plan costs nothing")
browser.run("document.querySelector('#epsilon').focus()")
browser.press("Enter", "\r") # in a field: the form is sent
browser.until("document.querySelector('#status').textContent === 'The answer is there.'", "an answer")
check(browser.run("document.activeElement.id") == "answer-title", "the focus goes to the answer")
check(len(browser.run("document.querySelector('#answer').textContent")) > 20, "the answer's text")
check("PRIVATE" in browser.run("document.querySelector('#facts').textContent"), "what it says of privacy")
browser.until("document.querySelector('#left').textContent.includes('1 charge')", "the charge")
check(float(browser.run("document.querySelector('#bar').getAttribute('aria-valuenow')")) > 5, "the bar")
check(browser.run("document.querySelector('#bar > div').getBoundingClientRect().width") > 5, "the bar is seen")
check(browser.run("document.querySelectorAll('#history tr').length") == 1, "the history")

# ---- The report ------------------------------------------------------------------------------------------------------
browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=work)
browser.focus_by_keyboard("report")
def download(start, what):
    """What `start` brings: a report that verify accepts; the name of its file."""
    for name in reports():
        os.unlink(name)
    start()
    browser.until("document.querySelector('#status').textContent.includes('is downloaded')", what)
    while browser.event("Page.downloadProgress")["params"]["state"] != "completed":
        pass
    verified = subprocess.run([program, "verify", reports()[0], "--ledger", "ledger"], capture_output=True)
    check(verified.returncode == 0, "verify: %s" % verified.stderr)


def reports():
    return [n for n in os.listdir(work) if n.startswith("chatcmpl-") and n.endswith(".json")]


download(lambda: browser.press("Enter", "\r"), "the report")
browser.run("say('')")
download(lambda: browser.run("document.querySelector('#history button').click()"), "the report of a charge")

# ---- What a screen reader has ----------------------------------------------------------------------------------------
tree = browser.call("Accessibility.getFullAXTree")["nodes"]
for node in tree:
    role = node.get("role", {}).get("value")
    if role in ("textbox", "spinbutton", "combobox", "button", "link", "meter", "region") and not node.get("ignored"):
        check(node.get("name", {}).get("value"), "a %s without a name" % role)
check(browser.run("document.querySelector('#status').getAttribute('aria-live')") == "polite", "the live region")
check(browser.run("document.querySelectorAll('h1').length") == 1, "one heading")

# ---- Widths, light and dark ------------------------------------------------------------------------------------------
for scheme in ("light", "dark"):
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}, still])
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
check(asked and all(u.startswith((address, "data:", "blob:", "http://127.0.0.1:1/")) for u in asked), "requests: %s" % asked)
errors = [e for e in browser.events if e.get("method") == "Runtime.exceptionThrown"]
check(not errors, "exceptions: %s" % errors)
server.send_signal(signal.SIGTERM)
check(server.wait(60) == 0, "the server's end")

# ---- A server that is away; one with tokens --------------------------------------------------------------------------
browser.run("document.querySelector('#form').requestSubmit()")
browser.until("document.querySelector('#status').textContent.includes('does not answer')", "a server that is away")
open("tokens", "w").write("alice %s letters=0.5\n" % hashlib.sha256(b"secret").hexdigest())
server, address = start(*datasets, "--tokens", "tokens", "--allow-stream")
browser.open(address + "/")
browser.until("!document.querySelector('#login').hidden", "a page that wants a token")
browser.focus_by_keyboard("token")
browser.write("secret")
browser.press("Enter", "\r")
browser.until("document.querySelector('#login').hidden", "a token that is known")
browser.until("document.activeElement.id === 'question'", "the focus after the token")
browser.write("Which problem do people have?")
browser.run("document.querySelector('#label').value = 'a'")
browser.run("document.querySelector('#form').requestSubmit()")
browser.until("document.querySelector('#status').textContent === 'The answer is there.'", "an answer that is streamed")
browser.until("document.querySelector('#spenders').textContent.includes('alice')", "by whom")
browser.run("document.querySelector('#epsilon').value = 7")
browser.run("document.querySelector('#form').requestSubmit()")
browser.until("document.querySelector('#status').className === 'bad'", "a budget that does not allow it")
check("in parts of the budget: it costs" in browser.run("document.querySelector('#status').textContent").lower(),
      "what was refused, in words")
browser.picture("refused")
browser.run("document.querySelector('#dataset').value = ''; document.querySelector('#dataset').dispatchEvent(new Event('change'))")
browser.run("document.querySelector('#form').requestSubmit()")
browser.until("document.querySelector('#status').textContent === 'The answer is there.'", "a plain answer")
check("none" in browser.run("document.querySelector('#facts').textContent"), "a plain answer says that it is one")
server.send_signal(signal.SIGTERM)
check(server.wait(60) == 0, "the server's end")

# ---- A budget for each unit; no dataset at all ----------------------------------------------------------------------
server, address = start("--dataset", "letters=refs.jsonl,unit=who,scope=unit,epsilon=2,delta=1e-6,batch=8", "--ledger", "units")
browser.open(address + "/")
browser.until("document.querySelector('#left').textContent.includes('Each unit (who) has a budget of its own')", "units")
check(browser.run("document.querySelector('#bar').hidden"), "a bar of units")
check(browser.run("document.querySelector('label[for=batch]').textContent").startswith("Units"), "units that answer")
browser.run("document.querySelector('#question').value = 'Which problem?'; document.querySelector('#tokens').value = 10")
for i in range(6):
    browser.run("say(''); document.querySelector('#form').requestSubmit()")
    browser.until("document.querySelector('#status').textContent === 'The answer is there.'", "an answer of units")
    browser.until("document.querySelectorAll('#history tr').length === %d" % (i + 1), "the charges of units")
check("epsilon 2 at delta 1e-6" in browser.run("document.querySelector('#left').textContent"), "what a new unit has")
check("%" not in browser.run("document.querySelector('#left').textContent +"
                             "document.querySelector('#spenders').textContent"), "nothing is spent of a unit")
check("Units" in browser.run("document.querySelector('#facts').textContent"), "how many units")
browser.picture("units")
browser.run("document.querySelector('#plan').click()")
browser.until("document.querySelector('#status').textContent.includes('A new unit can pay for 3 such answers.')", "a plan")
server.send_signal(signal.SIGTERM)
check(server.wait(60) == 0, "the server's end")
server, address = start()
browser.open(address + "/")
browser.until("document.querySelector('#dataset').options.length === 1", "no dataset")
check(browser.run("[...document.querySelectorAll('.private, #books, #plan')].every(e => e.hidden)"), "fields without datasets")
check(browser.run("document.querySelector('#status').textContent") == "", "nothing is wrong")
browser.run("document.querySelector('#question').value = 'Ticket'; document.querySelector('#tokens').value = 10")
browser.run("document.querySelector('#form').requestSubmit()")
browser.until("document.querySelector('#status').textContent === 'The answer is there.'", "a plain answer")
check(browser.run("document.querySelector('#answer').textContent"), "the text of a plain answer")
browser.picture("plain")
server.send_signal(signal.SIGTERM)
check(server.wait(60) == 0, "the server's end")
browser.close()
shutil.rmtree(work)
print("serve_page: %d passed" % n_passed)
