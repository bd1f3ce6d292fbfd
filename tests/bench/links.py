#!/usr/bin/env python3
"""links.py: memory and time of links without messages, over nats-server.

Asking daemons have a remote pool with up to 1000 processes each, since all pools of a
configuration have 4096 at most; a client asks each of these once, so that each is a link. One
daemon serves all links, those of a pool by one process. Prints, for the asking daemons together,
and for the serving one: bytes of anonymous memory for each link (those with all links minus those
with one for each pool, so that what a daemon has anyway does not count; memory of the system for
sockets is not in it), and, for some seconds in which nothing is asked: how often they woke up in
a second, and their CPU time in a second.

Run by `make bench-links`, which sets STDIO_BUS and BUILD_DIR; status 77 without nats-server.
Linux. Each daemon has two descriptors for a link: with a hard limit that is lower, there are
fewer links. In the environment:

  BENCH_LINKS    number of links                                (10000)
  BENCH_SECONDS  of the time in which nothing is asked          (5)
  BENCH_PORT     of 127.0.0.1, for NATS                         (41886)
"""

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

LINKS = int(os.environ.get("BENCH_LINKS", "10000"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
PORT = int(os.environ.get("BENCH_PORT", "41886"))
INSTANCES_MAX = 1000  # of a pool
WINDOW = 64
BUS = os.environ["STDIO_BUS"]
ECHO = os.path.join(os.environ["BUILD_DIR"], "tests/bench/echo_worker")
REQUEST = (b'{"jsonrpc":"2.0","id":%d,"method":"echo","params":{"text":"0123456789"}}\n')


def possible_links():
    """Each daemon has two descriptors for a link, and a few others."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 2 * LINKS + 200:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (2 * LINKS + 200, 2 * LINKS + 200))
            return LINKS
        except ValueError:
            pass
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(LINKS, (hard - 200) // 2)


def config(work, name, pools, limits):
    path = os.path.join(work, name + ".json")
    with open(path, "w", encoding="ascii") as file:
        json.dump({"pools": pools, "limits": limits,
                   "nats": {"servers": ["127.0.0.1:%d" % PORT], "node": name}}, file)
    return path


def wait_for(path, words):
    for _ in range(200):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if words in file.read():
                    return
        time.sleep(0.05)
    sys.exit("links.py: no '%s' in %s" % (words, path))


class Daemon:
    def __init__(self, work, name, pools, more_limits=None):
        limits = {"max_connections": LINKS + 100, "max_pending_requests": LINKS + 100}
        limits.update(more_limits or {})
        self.socket = os.path.join(work, name)
        self.log = os.path.join(work, name + ".log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [BUS, "--config", config(work, name, pools, limits), "--unix", self.socket],
                stdout=log, stderr=log)
        wait_for(self.log, "connected to")

    def status(self, *names):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return sum(int(fields[name].split()[0]) for name in names)

    def anonymous(self):
        return self.status("RssAnon") * 1024

    def wakes(self):
        return self.status("voluntary_ctxt_switches")

    def cpu_ns(self):
        with open("/proc/%d/schedstat" % self.process.pid, encoding="ascii") as file:
            return int(file.read().split()[0])

    def check(self):
        with open(self.log, encoding="utf-8") as file:
            bad = [line for line in file if " WARN " in line or " ERROR " in line]
        if bad:
            sys.exit("links.py: %s" % bad[0])

    def stop(self):
        self.process.terminate()
        self.process.wait()


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    return client


def ask(path, count):
    """So many requests, each for the next link."""
    client = connect(path)
    reader = client.makefile("rb")
    sent = answered = 0
    while answered < count:
        more = min(WINDOW - (sent - answered), count - sent)
        client.sendall(b"".join(REQUEST % (sent + i) for i in range(more)))
        sent += more
        line = reader.readline()
        if b'"result"' not in line:
            sys.exit("links.py: an answer: %r" % line)
        answered += 1
    return client


class Sum:
    """What daemons have together."""

    def __init__(self, daemons):
        self.daemons = daemons
        self.before = [(one.wakes(), one.cpu_ns()) for one in daemons]

    def row(self):
        wakes = sum(one.wakes() - before[0] for one, before in zip(self.daemons, self.before))
        cpu_ns = sum(one.cpu_ns() - before[1] for one, before in zip(self.daemons, self.before))
        return (sum(one.anonymous() for one in self.daemons), wakes / SECONDS,
                cpu_ns / SECONDS / 1e6)


def measure(work, pool_count, instances):
    names = ["echo%d" % i for i in range(pool_count)]
    serving = Daemon(work, "a", [{"id": name, "command": ECHO, "export": True} for name in names])
    asking = [Daemon(work, "b%d" % i, [{"id": name, "remote": True, "instances": instances}])
              for i, name in enumerate(names)]
    began = time.monotonic()
    clients = [ask(one.socket, instances) for one in asking]
    took = time.monotonic() - began
    time.sleep(2.5)
    sums = {"asking": Sum(asking), "serving": Sum([serving])}
    time.sleep(SECONDS)
    rows = {name: one.row() for name, one in sums.items()}
    for client in clients:
        client.close()
    for one in asking + [serving]:
        one.check()
        one.stop()
    return rows, took


def main():
    path = os.environ["PATH"] + ":/usr/sbin"
    server = shutil.which("nats-server", path=path)
    if server is None:
        print("skipped: nats-server is not installed")
        return 77
    links = possible_links()
    pool_count = (links + INSTANCES_MAX - 1) // INSTANCES_MAX
    instances = links // pool_count
    count = pool_count * instances
    with tempfile.TemporaryDirectory(dir="/tmp") as work:
        log = os.path.join(work, "nats.log")
        with open(log, "w", encoding="utf-8") as file:
            nats = subprocess.Popen([server, "-a", "127.0.0.1", "-p", str(PORT)], stdout=file,
                                    stderr=file)
        try:
            wait_for(log, "Server is ready")
            few, _ = measure(work, pool_count, 1)
            many, took = measure(work, pool_count, instances)
        finally:
            nats.terminate()
            nats.wait()
    print("%d links, opened in %.1f s" % (count, took))
    print("%-8s %16s %16s %16s" % ("daemon", "bytes for a link", "wakes a second",
                                   "CPU ms a second"))
    for name, row in many.items():
        print("%-8s %16.0f %16.1f %16.2f" % (name, (row[0] - few[name][0]) / (count - pool_count),
                                             row[1], row[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
