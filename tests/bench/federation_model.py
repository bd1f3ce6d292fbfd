#!/usr/bin/env python3
"""federation_model.py: what many nodes with links over NATS cost, from what two of them cost here.

Runs two daemons and a nats-server, and measures: bytes of a node's memory for a link and for a
session, at the asking and at the serving node; messages at the server for a request, and in a
second in which nothing is asked; and how long the asking node takes to notice that the other one
was killed. Then it computes the same for two nodes, to be compared, and for many nodes. The links
of each node go to nodes by chance: to any of them, or to those that serve. Run by hand, in a build
directory:

    make stdio_bus tests/bench/echo_worker
    STDIO_BUS=$PWD/stdio_bus BUILD_DIR=$PWD python3 ../tests/bench/federation_model.py

Constants that are given are not measured.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import links

POOLS = 4
INSTANCES = 1000  # links of each
TICK_S = 1.0  # NODES_TICK_MS of src/federation/nodes.h
CLAIMED_AGAIN_S = 30  # CLAIMED_AGAIN of places.c
SILENT_S = 3.5  # NODES_SILENT_MS
SESSION = (b'{"jsonrpc":"2.0","id":%d,"sessionId":"sess_%016x","method":"echo",'
           b'"params":{"text":"0123456789"}}\n')
CONSTANTS = {
    "link_asking_bytes": "memory of a link at the asking node",
    "link_serving_bytes": "the same at the serving node",
    "session_asking_bytes": "memory of a session at the asking node",
    "session_serving_bytes": "the same at the serving node",
    "node_bytes": "memory of a node without links",
    "request_messages": "messages at the server for a request and its answer",
}


# --- what two daemons cost ---

class Pair:
    """A nats-server, a daemon that serves a pool, and one that asks over some links."""

    def __init__(self, work, instances, sessions):
        log = os.path.join(work, "nats.log")
        server = shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")
        if server is None:
            sys.exit("federation_model.py: nats-server is not installed")
        with open(log, "w", encoding="utf-8") as file:
            self.nats = subprocess.Popen(
                [server, "-a", "127.0.0.1", "-p", str(links.PORT), "-m", str(links.PORT + 1)],
                stdout=file, stderr=file)
        links.wait_for(log, "Server is ready")
        limits = {"max_sessions": sessions + 100}
        names = ["echo%d" % i for i in range(POOLS)]
        self.serving = links.Daemon(
            work, "a", [{"id": name, "command": links.ECHO, "export": True} for name in names],
            limits)
        self.asking = links.Daemon(
            work, "b", [{"id": name, "remote": True, "instances": instances} for name in names],
            limits)

    def messages(self):
        url = "http://127.0.0.1:%d/varz" % (links.PORT + 1)
        with urllib.request.urlopen(url) as answer:
            return json.load(answer)["in_msgs"]

    def memory(self):
        return self.asking.anonymous(), self.serving.anonymous()

    def end(self):
        for process in (self.asking.process, self.serving.process, self.nats):
            process.kill()
            process.wait()


def ask_sessions(path, count):
    client = links.connect(path)
    reader = client.makefile("rb")
    for i in range(count):
        client.sendall(SESSION % (i, i))
        if b'"result"' not in reader.readline():
            sys.exit("federation_model.py: no answer")
    return client


def time_of_loss(pair):
    """Seconds from the end of the serving node until the other one has noticed."""
    began = time.time()
    pair.serving.process.send_signal(signal.SIGKILL)
    while time.time() < began + 20:
        with open(pair.asking.log, encoding="utf-8") as file:
            if re.search(r"is gone: \d+ link", file.read()):
                return time.time() - began
        time.sleep(0.02)
    sys.exit("federation_model.py: the end of a node was not noticed")


def measure(instances, sessions):
    found = {}
    with tempfile.TemporaryDirectory(dir="/tmp") as work:
        few = Pair(work, 1, sessions)
        links.ask(few.asking.socket, POOLS).close()
        time.sleep(1.5)
        base = few.memory()
        before = few.messages()
        ask_sessions(few.asking.socket, sessions).close()
        found["request_messages"] = (few.messages() - before) / sessions
        time.sleep(1.5)
        after = few.memory()
        few.end()
    found["session_asking_bytes"], found["session_serving_bytes"] = [
        (now - then) / sessions for now, then in zip(after, base)]
    found["node_bytes"] = sum(base) / 2
    with tempfile.TemporaryDirectory(dir="/tmp") as work:
        many = Pair(work, instances, sessions)
        links.ask(many.asking.socket, POOLS * instances).close()
        time.sleep(1.5)
        found["link_asking_bytes"], found["link_serving_bytes"] = [
            (now - then) / POOLS / (instances - 1) for now, then in zip(many.memory(), base)]
        time.sleep(2)
        before = many.messages()
        time.sleep(5)
        idle = (many.messages() - before) / 5
        lost = time_of_loss(many)
        many.end()
    return found, idle, lost


# --- the model ---

def pairs_of(nodes, count, serving, chance):
    """How many pairs of nodes have links."""
    pairs = set()
    for i in range(count):
        asking = i % nodes
        other = chance.randrange(serving)
        if other == asking:
            other = (other + 1) % nodes
        pairs.add((min(asking, other), max(asking, other)))
    return len(pairs)


def loss_times(count, chance):
    """When a node notices that another one has ended: the other one's last sign of life is up to a
    tick old, and a node looks once in a tick."""
    times = []
    for _ in range(count):
        heard = -chance.random() * TICK_S
        tick = chance.random() * TICK_S
        while tick - heard < SILENT_S:
            tick += TICK_S
        times.append(tick)
    return sorted(times)


def model(options, nodes, count, sessions, serving, chance):
    pairs = pairs_of(nodes, count, serving, chance)
    times = loss_times(20000, chance)
    links_here, sessions_here = count / nodes, sessions / nodes
    share = nodes / serving
    return {
        "pairs": pairs,
        "signs": 2 * pairs / TICK_S,
        "claims": sessions / CLAIMED_AGAIN_S,
        "requests": options.rate * sessions * options.request_messages,
        "asking": options.node_bytes + links_here * options.link_asking_bytes +
                  sessions_here * options.session_asking_bytes,
        "serving": options.node_bytes + share * (links_here * options.link_serving_bytes +
                                                 sessions_here * options.session_serving_bytes),
        "half": times[len(times) // 2],
        "last": times[-1],
    }


def show(title, row):
    print("%s\n  pairs of nodes with links             %12d" % (title, row["pairs"]))
    print("  messages a second: signs of life      %12.0f" % row["signs"])
    print("  messages a second: claims of sessions %12.0f" % row["claims"])
    print("  messages a second: requests, answers  %12.0f" % row["requests"])
    print("  memory of a node for what it asks     %9.1f MiB" % (row["asking"] / 2**20))
    print("  memory of a node for what it serves   %9.1f MiB" % (row["serving"] / 2**20))
    print("  a loss is noticed after               %8.1f s in half of all cases, at most %.1f s" %
          (row["half"], row["last"]))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--links", type=int, default=100000)
    parser.add_argument("--sessions", type=int, default=1000000)
    parser.add_argument("--serving", type=int, default=20, help="nodes that serve, if not all do")
    parser.add_argument("--rate", type=float, default=0.1, help="requests a second of a session")
    parser.add_argument("--seed", type=int, default=1)
    for name, text in CONSTANTS.items():
        parser.add_argument("--" + name.replace("_", "-"), type=float, help=text)
    return parser.parse_args()


def main():
    options = read_options()
    chance = random.Random(options.seed)
    links.possible_links()
    if any(getattr(options, name) is None for name in CONSTANTS):
        found, idle, lost = measure(INSTANCES, 20000)
        for name, value in found.items():
            if getattr(options, name) is None:
                setattr(options, name, value)
        two = model(options, 2, POOLS * INSTANCES, 0, 2, chance)
        print("two daemons, measured and as the model has it:")
        print("  messages a second with %d links, without requests: %.1f, %.1f" %
              (POOLS * INSTANCES, idle, two["signs"]))
        print("  a loss was noticed after %.1f s, %.1f s to %.1f s" %
              (lost, SILENT_S - TICK_S, two["last"]))
    for name, text in CONSTANTS.items():
        print("  %-52s %10.1f" % (text, getattr(options, name)))
    for serving in (options.nodes, options.serving):
        show("%d nodes, %d links, %d sessions, %g requests a second in each; %d nodes serve:" %
             (options.nodes, options.links, options.sessions, options.rate, serving),
             model(options, options.nodes, options.links, options.sessions, serving, chance))
    return 0


if __name__ == "__main__":
    sys.exit(main())
