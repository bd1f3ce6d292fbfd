"""Servers written in Python around the daemon, for official Python clients of both eras. Arguments
are words in the names of the tests to be run. The last lines are counts, as node's test runner has
them."""

import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = os.path.abspath(os.environ["PYTHON_WORK"])
DAEMON = os.path.abspath(os.environ["STDIO_BUS"])
PAGE = "A page of the interop test, with a word: serendipity."

# The clients: the environment that has the library, and the mode of the library 2.x.
CLIENTS = [("handshake", None), ("both", "legacy"), ("both", "auto"), ("both", "2026-07-28")]


def program(kind, name):
    return os.path.join(WORK, kind, "bin", name)


DEMO = [program("both", "python"), "-B", os.path.join(HERE, "demo_server.py")]


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = PAGE.encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        pass


class Bus:
    """The daemon with these pools, each of one process that all clients share."""

    def __init__(self, folder, pools):
        config = os.path.join(folder, "config.json")
        self.socket = os.path.join(folder, "bus.sock")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"pools": [{"id": name, "command": command[0], "args": command[1:],
                                  "protocol": "mcp", "instances": 2,
                                  "busy_timeout_sec": 60, **keys}
                                 for name, (command, keys) in pools.items()]}, file)
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [DAEMON, "--config", config, "--unix", self.socket, "--http", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.port = None
        for line in self.process.stderr:
            self.log.write(line)
            found = re.search(rb"HTTP at http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        threading.Thread(target=self.read_log, daemon=True).start()

    def read_log(self):
        for line in self.process.stderr:
            self.log.write(line)

    def ways(self, pool):
        url = f"http://127.0.0.1:{self.port}/mcp/{pool}"
        return {"socket": [DAEMON, "--connect", self.socket, "--pool", pool],
                "remote": [DAEMON, "--connect", url], "url": url}

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)


def start(client, **job):
    kind, mode = client
    return subprocess.Popen([program(kind, "python"), "-B", os.path.join(HERE, "person.py"),
                             json.dumps({"mode": mode, **job})],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stdio_bus_python.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def serve(self, **pools):
        bus = Bus(self.folder, pools)
        self.addCleanup(bus.process.kill)
        self.assertIsNotNone(bus.port, "the daemon has ended")
        return bus

    def succeed(self, people):
        """All of these processes end with 0."""
        failed = []
        for person in people:
            output, _ = person.communicate(timeout=150)
            if person.returncode != 0:
                failed.append(output[-2000:])
        self.assertEqual(failed, [], "\n".join(failed))

    def each_way(self, command, calls, clients=CLIENTS, **keys):
        """Each client in each way, all at once."""
        bus = self.serve(pool=(command, {"clients": "sticky", **keys}))
        self.succeed([start(client, target=way, calls=calls)
                      for way in bus.ways("pool").values() for client in clients])
        self.assertEqual(bus.stop(), 0)

    def test_fetch(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_address[1]}/page"
        self.each_way([program("both", "mcp-server-fetch"), "--allow-private-ips"],
                      [["fetch", {"url": url}, PAGE]])

    def test_git(self):
        try:
            subprocess.run(["git", "init", "-q", self.folder], check=True)
        except FileNotFoundError:
            self.skipTest("git is not installed")
        self.each_way([program("both", "mcp-server-git"), "--repository", self.folder],
                      [["git_status", {"repo_path": self.folder}, "config.json"]])

    def test_time(self):
        self.each_way([program("both", "mcp-server-time"), "--local-timezone", "UTC"],
                      [["get_current_time", {"timezone": "UTC"}, '"timezone": "UTC"']])

    def test_sqlite(self):
        bus = self.serve(pool=([program("handshake", "mcp-server-sqlite"), "--db-path",
                                os.path.join(self.folder, "data.db")], {"clients": "sticky"}))
        ways = bus.ways("pool")
        self.succeed([start(CLIENTS[0], target=ways["socket"], calls=[
            ["create_table", {"query": "CREATE TABLE t (name TEXT)"}, "created"],
            ["list_tables", {}, "'t'"]])])
        handshake = CLIENTS[:3]  # the last one pins what the server does not know
        self.succeed([start(client, target=way, calls=[
            ["write_query", {"query": f"INSERT INTO t VALUES ('{name}-{i}')"}, "affected_rows"]])
            for name, way in ways.items() for i, client in enumerate(handshake)])
        self.succeed([start(CLIENTS[0], target=ways["url"], calls=[
            ["read_query", {"query": "SELECT count(*) AS n FROM t"}, f"'n': {3 * len(ways)}"]])])
        self.assertEqual(bus.stop(), 0)

    def test_demo_in_each_way(self):
        """Progress, resources, prompts and many calls at once, of one process."""
        bus = self.serve(pool=(DEMO, {"clients": "sticky"}))
        self.succeed([start(client, target=way, name=f"{name}{i}")
                      for name, way in bus.ways("pool").items()
                      for i, client in enumerate(CLIENTS)])
        self.assertEqual(bus.stop(), 0)

    def test_demo_asks_its_user(self):
        """One client after the other: a question of the handshake era names no client."""
        bus = self.serve(pool=(DEMO, {"clients": "sticky", "instances": 1}))
        for name, way in bus.ways("pool").items():
            for client in CLIENTS[:2]:
                self.succeed([start(client, target=way, name=name, asks=True)])
        self.assertEqual(bus.stop(), 0)

    def test_demo_is_shared(self):
        env = {"PATH": os.environ["PATH"], "HOME": self.folder, "XDG_RUNTIME_DIR": self.folder}
        target = [DAEMON, "--share", "--idle-exit", "1", "--", *DEMO]
        self.succeed([start(client, target=target, env=env, name=f"person{i}")
                      for i, client in enumerate(CLIENTS)])


def main():
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{word}*" for word in sys.argv[1:]] or None
    result = unittest.TextTestRunner(verbosity=2).run(loader.loadTestsFromTestCase(Interop))
    failed = len(result.failures) + len(result.errors)
    print(f"# pass {result.testsRun - failed - len(result.skipped)}")
    print(f"# fail {failed}")
    print(f"# skipped {len(result.skipped)}")
    return failed > 0


sys.exit(main())
