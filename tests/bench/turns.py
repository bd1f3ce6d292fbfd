#!/usr/bin/env python3
"""How long a client of one address waits while connections of another one flood the same worker.

Usage: turns.py STDIO_BUS WORKER [SECONDS]

For 1, 10, 100 and 900 flooding connections, the median and the 99th percentile of the honest
client's requests, one after the other, and the median's ratio to that with one connection. Fails
above a ratio of 3. The flood sends without a pause, and reads its answers."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

FLOODS = (1, 10, 100, 900)
RATIO_MAX = 3
FLOOD_ADDRESS, HONEST_ADDRESS = "127.0.0.1", "127.0.0.2"


def start(program, worker, directory):
    """The daemon on a free port of the loopback; returns its process and port."""
    config = os.path.join(directory, "config.json")
    log = os.path.join(directory, "log")
    with open(config, "w") as file:
        json.dump({"pools": [{"id": "p", "command": worker, "instances": 1}],
                   "limits": {"max_pending_requests": 1000000}}, file)
    daemon = subprocess.Popen([program, "--config", config, "--tcp", "127.0.0.1:0", "--log-file",
                               log])
    for _ in range(500):
        time.sleep(0.01)
        found = os.path.exists(log) and re.search(r"listening on 127.0.0.1:(\d+)", open(log).read())
        if found:
            return daemon, int(found.group(1))
    sys.exit("turns.py: the daemon does not listen: " + log)


def connect(address, port):
    client = socket.socket()
    client.bind((address, 0))
    client.connect(("127.0.0.1", port))
    return client


def requests(number, count):
    """As echo_worker knows them; it answers each."""
    return b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"echo","params":{"text":"%s"}}\n'
                    % (i, b"x" * 100) for i in range(number, number + count))


def flood(port, count):
    """Never returns. No id is in flight twice."""
    poll, clients, number = select.epoll(), {}, 1
    for _ in range(count):
        client = connect(FLOOD_ADDRESS, port)
        client.setblocking(False)
        clients[client.fileno()] = [client, b""]
        poll.register(client.fileno(), select.EPOLLIN | select.EPOLLOUT)
    while True:
        for fd, events in poll.poll():
            entry = clients[fd]
            try:
                if events & select.EPOLLIN and not entry[0].recv(1 << 18):
                    os._exit(1)
                if events & select.EPOLLOUT:
                    if not entry[1]:
                        entry[1] = requests(number, 200)
                        number += 200
                    entry[1] = entry[1][entry[0].send(entry[1]):]
            except BlockingIOError:
                pass


def measure(port, seconds):
    """The times of the honest client's requests in milliseconds, sorted."""
    client, times, number = connect(HONEST_ADDRESS, port), [], 1 << 52
    answers = client.makefile("rb")
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 5:
        number += 1
        begun = time.monotonic()
        client.sendall(requests(number, 1))
        answer = json.loads(answers.readline())
        times.append((time.monotonic() - begun) * 1000)
        if answer["id"] != number or "error" in answer:
            sys.exit("turns.py: not the answer: %s" % answer)
    return sorted(times)


def main():
    program, worker = sys.argv[1], sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 5
    first = worst = None
    print("%12s %10s %10s %7s" % ("connections", "median ms", "p99 ms", "ratio"))
    for count in FLOODS:
        with tempfile.TemporaryDirectory() as directory:
            daemon, port = start(program, worker, directory)
            child = os.fork()
            if child == 0:
                flood(port, count)
            try:
                time.sleep(2)
                times = measure(port, seconds)
            finally:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                daemon.terminate()
                daemon.wait()
        median, last = times[len(times) // 2], times[len(times) * 99 // 100]
        first = first or median
        worst = median / first
        print("%12d %10.2f %10.2f %7.2f" % (count, median, last, worst), flush=True)
    if worst > RATIO_MAX:
        sys.exit("turns.py: with %d connections the median is more than %d times that with one"
                 % (FLOODS[-1], RATIO_MAX))


if __name__ == "__main__":
    main()
