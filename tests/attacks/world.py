"""A daemon to be attacked, its clients, and what an attempt may ask of them."""
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

FACTOR = float(os.environ.get("TEST_TIMEOUT_FACTOR", "1"))
TOKEN = "correct-horse-battery-staple"
ATTACKER = "127.0.0.2"  # another address than that of honest clients: another origin


class Broken(Exception):
    """The attempt did what it must not."""


def need(condition, text):
    if not condition:
        raise Broken(text)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Line:
    """A connection. Lines are read with a deadline; None is the end, or silence."""

    def __init__(self, address, source=None):
        kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(kind)
        if source is not None:
            self.socket.bind((source, 0))
        self.socket.settimeout(5 * FACTOR)
        self.socket.connect(address)
        self.input = b""
        self.ended = False

    def raw(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.ended = True

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def fill(self, wait=None):
        self.socket.settimeout(wait if wait is not None else 5 * FACTOR)
        try:
            data = self.socket.recv(1 << 16)
        except OSError as error:
            if not isinstance(error, TimeoutError):
                self.ended = True
            return False
        self.ended = self.ended or not data
        self.input += data
        return bool(data)

    def line(self, wait=None):
        while b"\n" not in self.input:
            if not self.fill(wait):
                return None
        line, self.input = self.input.split(b"\n", 1)
        return line

    def message(self, wait=None):
        line = self.line(wait)
        return json.loads(line) if line is not None else None

    def ask(self, method, params=None, ident=1, **more):
        self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params, **more})
        return self.message()

    def rest(self, wait=1.0):
        """All that comes until the end, or until nothing comes for so long."""
        while self.fill(wait):
            pass
        return self.input

    def close(self):
        self.socket.close()


class World:
    def __init__(self, bus):
        here = os.path.dirname(os.path.abspath(__file__))
        self.bus, self.dir = bus, tempfile.mkdtemp(prefix="attacks")
        self.unix, self.control, self.rmp = (os.path.join(self.dir, x) for x in "scr")
        self.ports = [free_port() for _ in range(5)]
        self.tcp, self.token_tcp, self.frames, self.http, self.token_http = (
            ("127.0.0.1", port) for port in self.ports)
        self.log = os.path.join(self.dir, "log")
        tokens, config = os.path.join(self.dir, "tokens"), os.path.join(self.dir, "config")
        self.write(tokens, TOKEN)
        program = {"command": sys.executable, "args": [os.path.join(here, "worker.py")]}
        self.write(config, json.dumps({
            "pools": [
                {"id": "plain", "instances": 1, **program},
                {"id": "mcp", "instances": 1, "protocol": "mcp", "clients": "sticky", **program},
                {"id": "solo", "instances": 4, "protocol": "mcp", "clients": "exclusive",
                 **program}],
            "listen": [
                {"unix": self.unix}, {"tcp": self.at(self.tcp)},
                {"tcp": self.at(self.token_tcp), "token_file": tokens},
                {"tcp": self.at(self.frames), "framing": "content-length"},
                {"http": self.at(self.http), "health": True},
                {"http": self.at(self.token_http), "token_file": tokens, "metrics": True}],
            "rmp": {"socket_path": self.rmp, "validate": False}, "control": self.control,
            "limits": {"max_connections": 400, "max_pending_requests": 512, "max_sessions": 256,
                       "frame_timeout_sec": 3, "slow_client_timeout_sec": 2,
                       "backpressure_timeout_sec": 5, "max_memory": 67108864}}))
        self.process = subprocess.Popen([bus, "--config", config, "--log-file", self.log],
                                        stdin=subprocess.DEVNULL)
        self.wait_ready()

    @staticmethod
    def at(address):
        return "%s:%d" % address

    @staticmethod
    def write(path, text):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(text)

    def wait_ready(self):
        until = time.monotonic() + 20 * FACTOR
        while time.monotonic() < until:
            try:
                if self.client().ask("echo", pool="plain") is not None:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit("the daemon does not start: see " + self.log)

    def client(self):
        return Line(self.unix)

    def other(self, address=None):
        """A client of another origin."""
        return Line(address or self.tcp, ATTACKER)

    def marks(self, pool="plain"):
        return self.client().ask("marks", pool=pool)["result"]

    def honest(self):
        """What an honest client sees: after each attempt, and while one lasts."""
        need(self.process.poll() is None, "the daemon has ended: %s" % self.process.returncode)
        began = time.monotonic()
        client = self.client()
        reply = client.ask("echo", "mine", ident="honest", pool="plain")
        client.close()
        need(reply is not None, "an honest client gets no answer")
        need(reply.get("id") == "honest" and reply["result"]["params"] == "mine",
             "an honest client got %r" % reply)
        return time.monotonic() - began

    def settle(self):
        """Waits until the attempt has no after-effects, which would be those of the next one."""
        until = time.monotonic() + 10 * FACTOR
        while self.honest() > 0.02 * FACTOR and time.monotonic() < until:
            time.sleep(0.05)

    def rss(self):
        with open("/proc/%d/statm" % self.process.pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def during(self, attack, seconds=1.0, bound_ms=100):
        """Honest waiting times while the attack goes on in a thread of its own."""
        stop, failed = threading.Event(), []

        def run():
            try:
                attack(stop)
            except OSError:
                pass  # it was cut: that is a defence
            except Exception as error:  # pylint: disable=broad-except
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        waits, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            waits.append(self.honest() * 1000)
            time.sleep(0.01)
        stop.set()
        thread.join()
        need(not failed, "the attempt itself failed: %r" % failed)
        waits.sort()
        text = "median %.1f ms, longest %.0f ms of %d" % (
            statistics.median(waits), waits[-1], len(waits))
        need(statistics.median(waits) <= bound_ms * FACTOR, "honest clients wait: " + text)
        return text

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20 * FACTOR)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
