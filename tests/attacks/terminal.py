"""Names that a terminal would obey, in what the operator looks at."""
import json
import subprocess
import time

from attempt import Attempt
from world import need

NAMES = [
    ("a title", "\x1b]0;owned\x07"), ("CSI of one byte", "\x9b31m"), ("DEL", "a\x7fb"),
    ("text turned around", "user\u202etxt.exe"), ("an isolate", "\u2066x\u2069"),
    ("a line of its own", "a\nWORKER 9"), ("a carriage return", "good\rbad"),
    ("a separator of lines", "a\u2028b"), ("letters", "\u00e9\u65e5\u05d0"),
]
OBEYED = set(range(0x20)) | set(range(0x7f, 0xa0)) | {0x61c, 0x200e, 0x200f} | set(
    range(0x2028, 0x202f)) | set(range(0x2066, 0x2070))


def session_name(world, name, words):
    client = world.other()
    client.ask("echo", sessionId=name, pool="plain")
    shown = subprocess.run([world.bus, "ctl", world.control, *words], capture_output=True,
                           check=False, timeout=20)
    client.close()
    text = (shown.stdout + shown.stderr).decode()
    bad = [ord(each) for each in text if ord(each) in OBEYED and each != "\n"]
    need(shown.returncode == 0, "ctl fails: " + text)
    need(not bad, "%r reaches the terminal" % bad)
    if "--json" in words:
        names = [each["session"] for each in json.loads(text)["sessions"]]
        need(name in names, "the name is another one: %r" % names)
    need(name != NAMES[-1][1] or name in text, "the letters are not shown: %r" % text)


def log_line(world, name):
    client = world.other()
    client.send({"id": name, "pool": name, "method": name})
    client.rest(0.2)
    client.close()
    time.sleep(0.05)
    with open(world.log, encoding="utf-8") as file:
        bad = [ord(each) for each in file.read() if ord(each) in OBEYED and each != "\n"]
    need(not bad, "%r is in the log" % bad)


def attempts():
    for name, text in NAMES:
        yield Attempt("terminal", "%s, in a table" % name, session_name, text,
                      ["sessions", "--table"])
        yield Attempt("terminal", "%s, in JSON" % name, session_name, text, ["sessions", "--json"])
        yield Attempt("terminal", "%s, in the log" % name, log_line, text)
