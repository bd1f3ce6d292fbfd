"""What an operation costs when a list that clients can make long is short, and when it is as long
as it gets; and how long another address waits meanwhile. Run by `make bench-growth`, which sets
STDIO_BUS (the daemon); Linux only. Arguments: names of lists (all), or `waiting` for the second
table alone. In the environment:

    BENCH_OPERATIONS  of each measurement, of which the least of three counts  (4000)
    BENCH_CLIENTS     of the second table                                      (400)

A list is a class: its name, `most`, the configuration, `fill(daemon, count)`, which makes the list
that long, and `operate(daemon, count)`, which carries out that number of operations. It is in
LISTS. The cost is the processor time of the daemon alone (/proc/PID/schedstat).
"""

import itertools
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

HERE = os.path.dirname(os.path.abspath(__file__))
OPERATIONS = int(os.environ.get("BENCH_OPERATIONS", "4000"))
CLIENTS = int(os.environ.get("BENCH_CLIENTS", "400"))
FEW = 10
IN_FLIGHT = 32  # of one connection
BOUND = 2.0  # of the ratio
PER_CLIENT = 256  # subscriptions
QUESTIONS = 20  # of a worker at once
NUMBERS = itertools.count(1)


def message(**members):
    return (json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")) + "\n").encode()


class Connection:
    """A client of lines, from an address of its own."""

    def __init__(self, port, source="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
        self.rest = b""
        self.last_id = 0

    def lines(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise EOFError("the daemon has closed the connection: " + self.rest.decode())
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [line for line in lines if b'"id":' in line]

    def request(self, method, **params):
        self.last_id += 1
        return message(id=self.last_id, method=method, params=params)

    def ask(self, method, **params):
        self.socket.sendall(self.request(method, **params))
        while True:
            for line in self.lines():
                return json.loads(line)

    def ask_all(self, requests):
        """Sends (method, params), IN_FLIGHT at once; returns how many got an error."""
        errors = sent = answered = 0
        requests = list(requests)
        while answered < len(requests):
            batch = requests[sent:answered + IN_FLIGHT]
            if batch:
                self.socket.sendall(b"".join(self.request(m, **p) for m, p in batch))
                sent += len(batch)
            for line in self.lines():
                answered += 1
                errors += b'"error":' in line
        return errors

    def greet(self):
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={},
                 clientInfo={"name": "growth", "version": "1"})
        return self


class Daemon:
    def __init__(self, config):
        self.directory = tempfile.TemporaryDirectory()
        self.path = self.directory.name
        with socket.create_server(("127.0.0.1", 0)) as first, \
                socket.create_server(("127.0.0.1", 0)) as second:
            self.port, self.http_port = first.getsockname()[1], second.getsockname()[1]
        if "rmp" in config:
            config = {**config, "rmp": {"socket_path": f"{self.path}/rmp"}}
        with open(f"{self.path}/config", "w", encoding="ascii") as file:
            json.dump(config, file)
        with open(f"{self.path}/log", "w", encoding="ascii") as log:
            self.process = subprocess.Popen(
                [os.environ["STDIO_BUS"], "--config", f"{self.path}/config", "--log-level", "error",
                 "--tcp", f"127.0.0.1:{self.port}", "--http", f"127.0.0.1:{self.http_port}",
                 "--control", f"{self.path}/control"],
                stdin=subprocess.DEVNULL, stderr=log)
        self.connections = []
        self.wait()

    def wait(self):
        for _ in range(200):
            try:
                Connection(self.port).socket.close()
                return
            except ConnectionRefusedError:
                time.sleep(0.05)
        raise TimeoutError("the daemon does not listen")

    def connect(self, source="127.0.0.1"):
        self.connections.append(Connection(self.port, source))
        return self.connections[-1]

    def busy_ns(self):
        with open(f"/proc/{self.process.pid}/schedstat", encoding="ascii") as stat:
            return int(stat.read().split()[0])

    def cost(self, operate):
        """The processor time of what `operate` makes the daemon do, until it sleeps again."""
        before = self.busy_ns()
        operate()
        after = self.busy_ns()
        while True:
            time.sleep(0.05)
            last, after = after, self.busy_ns()
            if after - last < 2000000: # what the probe costs
                return after - before

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def control(self, *words):
        return subprocess.run([os.environ["STDIO_BUS"], "ctl", f"{self.path}/control", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()


def mcp_pool(**keys):
    return {"id": "mcp", "command": sys.executable, "args": [f"{HERE}/growth_worker.py"],
            "protocol": "mcp", "clients": "sticky", "instances": 1, **keys}


# --- the lists ---

class Subscriptions:
    """resources/subscribe and unsubscribe, of clients that share a process."""

    config_for = None # or a function: another daemon for each length of the list
    name = "subscriptions of a process"
    most = 400 * PER_CLIENT
    config = {"pools": [mcp_pool()], "limits": {"max_memory": 1 << 30, "max_restarts": 100}}

    def __init__(self):
        self.operator = None
        self.held = 0

    @staticmethod
    def uri(number):
        return f"file:///srv/project/{number}.txt"

    def fill(self, daemon, count):
        while self.held < count:
            more = min(PER_CLIENT, count - self.held)
            client = daemon.connect("127.0.0.2").greet()
            errors = client.ask_all(("resources/subscribe", {"uri": self.uri(self.held + i)})
                                    for i in range(more))
            if errors:
                raise ValueError(f"{errors} of {more} subscriptions were refused")
            self.held += more

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3").greet()
        self.operator.ask_all((f"resources/{'un' if i % 2 else ''}subscribe",
                               {"uri": self.uri(f"own{i // 2}")}) for i in range(count))


class SharedUri(Subscriptions):
    """The same URI for all: the daemon answers by itself."""

    name = "subscribers of one URI"
    most = 900
    per_client = 1

    def fill(self, daemon, count):
        while self.held < count:
            daemon.connect("127.0.0.2").greet().ask_all([("resources/subscribe", {"uri": "x:/"})])
            self.held += 1

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3").greet()
        self.operator.ask_all((f"resources/{'un' if i % 2 else ''}subscribe", {"uri": "x:/"})
                              for i in range(count))


class Levels(SharedUri):
    """logging/setLevel: the most talkative level of all clients counts."""

    name = "clients with a log level"

    def fill(self, daemon, count):
        while self.held < count:
            daemon.connect("127.0.0.2").greet().ask_all([("logging/setLevel", {"level": "error"})])
            self.held += 1

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3").greet()
        self.operator.ask_all(("logging/setLevel", {"level": "info" if i % 2 else "alert"})
                              for i in range(count))


class Clients(SharedUri):
    """Requests of one client, beside others that are connected and silent."""

    name = "clients of a process"

    def fill(self, daemon, count):
        while self.held < count:
            daemon.connect("127.0.0.2").greet()
            self.held += 1

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3").greet()
        self.operator.ask_all(("tools/list", {}) for _ in range(count))


class Origins(Clients):
    """A client comes and leaves, beside others that are of an address each."""

    name = "addresses of clients"

    def fill(self, daemon, count):
        while self.held < count:
            daemon.connect(f"127.1.{self.held // 250}.{1 + self.held % 250}").ask("tools/list")
            self.held += 1

    def operate(self, daemon, count):
        for _ in range(count // 10):
            client = Connection(daemon.port, "127.0.0.3")
            client.ask("tools/list")
            client.socket.close()


class InFlight(Clients):
    """Requests of one client, beside others that the worker does not answer."""

    name = "requests in flight"
    most = 4000
    per_client = 200
    config = {"pools": [mcp_pool()], "limits": {"max_pending_requests": 8192}}

    def fill(self, daemon, count):
        while self.held < count:
            more = min(self.per_client, count - self.held)
            client = daemon.connect("127.0.0.2").greet()
            client.socket.sendall(b"".join(client.request("growth/never") for _ in range(more)))
            self.held += more


class GivenUp(InFlight):
    """Requests that are given up and answered too late, beside others that were given up and are
    not answered."""

    name = "requests that were given up"
    most = 4096
    config = {"pools": [mcp_pool()], "limits": {"max_pending_requests": 4096}}

    def fill(self, daemon, count):
        while self.held < count:
            more = min(self.per_client, count - self.held)
            self.give_up(daemon.connect("127.0.0.2").greet(), "growth/never", more)
            self.held += more

    @staticmethod
    def give_up(client, method, count):
        client.socket.sendall(b"".join(
            client.request(method)
            + message(method="notifications/cancelled", params={"requestId": client.last_id})
            for _ in range(count)))
        client.ask("tools/list")

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3").greet()
        for _ in range(count // IN_FLIGHT):
            self.give_up(self.operator, "growth/late", IN_FLIGHT)


class Tasks(InFlight):
    """Tasks of clients that come, make some, ask for them and leave, beside those of others."""

    name = "tasks of MCP"
    per_client = 200
    each = 10

    @staticmethod
    def make(client, count):
        """Returns their names."""
        names = [f"task {next(NUMBERS)}" for _ in range(count)]
        client.ask_all(("growth/task", {"task": {}, "name": name}) for name in names)
        return names

    def fill(self, daemon, count):
        while self.held < count:
            more = min(self.per_client, count - self.held)
            client = daemon.connect("127.0.0.2").greet()
            self.make(client, more)
            self.held += more

    def operate(self, daemon, count):
        for _ in range(count // self.each // 2):
            client = Connection(daemon.port, "127.0.0.3").greet()
            if client.ask_all(("tasks/get", {"taskId": name})
                              for name in self.make(client, self.each)):
                raise ValueError("a task is not known")
            client.socket.close()


class Sessions(Clients):
    """Requests in one session of a plain pool, beside others."""

    name = "sessions"
    most = 8000
    config = {"pools": [{"id": "plain", "command": sys.executable,
                         "args": [f"{HERE}/growth_worker.py"], "instances": 1}],
              "limits": {"max_sessions": 16384}}

    def fill(self, daemon, count):
        client = daemon.connect("127.0.0.2")
        while self.held < count:
            client.socket.sendall(message(id=1, method="m", sessionId=f"s{self.held}"))
            client.lines()
            self.held += 1

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3")
        for _ in range(count):
            self.operator.socket.sendall(message(id=1, method="m", sessionId="own"))
            self.operator.lines()


class Roaming(Clients):
    """Requests of one client, beside others that wait for an id which is in flight at each worker
    of their pool."""

    name = "clients that wait for an id"
    config = {"pools": [{"id": "plain", "command": sys.executable,
                         "args": [f"{HERE}/growth_worker.py"], "instances": 2}],
              "limits": {"backpressure_timeout_sec": 3600}}

    def fill(self, daemon, count):
        while self.held < count:
            client = daemon.connect("127.0.0.2")
            client.socket.sendall(message(id="taken", method="growth/never"))
            self.held += 1

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3")
        self.operator.ask_all(("tools/list", {}) for _ in range(count))


class Questions(Clients):
    """Questions of a worker that name nothing, while one of its two clients has requests in flight
    there."""

    name = "requests of one client"
    most = 4000
    config = {"pools": [mcp_pool()], "limits": {"max_pending_requests": 8192}}

    def fill(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3").greet()
            daemon.connect("127.0.0.2").greet()
        self.operator.socket.sendall(b"".join(self.operator.request("growth/never")
                                              for _ in range(count - self.held)))
        self.held = count

    def operate(self, daemon, count):
        for _ in range(count // QUESTIONS):
            self.operator.socket.sendall(self.operator.request("growth/ask", count=QUESTIONS))
            answered = False
            while not answered:
                for line in self.operator.lines():
                    answered = b'"method":' not in line
                    if not answered:
                        self.operator.socket.sendall(message(id=json.loads(line)["id"], result={}))


class MemoryWaiters(Clients):
    """Messages of 200 KB of one client, beside others of one address that wait for the memory of
    long messages."""

    name = "clients that wait for memory"
    share = 20
    config = {"pools": [{"id": "plain", "command": sys.executable,
                         "args": [f"{HERE}/growth_worker.py"], "instances": 1}],
              "limits": {"max_memory": 1 << 26, "frame_timeout_sec": 3600,
                         "backpressure_timeout_sec": 3600}}

    def fill(self, daemon, count):
        while self.held < count:
            daemon.connect("127.0.0.2").socket.sendall(b'{"id":1,"method":"m","x":"' + b"x" * 70000)
            self.held += 1

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = daemon.connect("127.0.0.3")
        for _ in range(count // self.share):
            self.operator.ask("tools/list", x="x" * 200000)


class HttpConnection:
    def __init__(self, port, source):
        self.socket = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
        self.session = ""

    def post(self, method, **params):
        body = message(id=next(NUMBERS), method=method, params=params)
        self.socket.sendall(
            ("POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
             f"Content-Type: application/json\r\n{self.session}"
             "Accept: application/json, text/event-stream\r\n"
             f"Content-Length: {len(body)}\r\n\r\n").encode() + body)

    def read(self):
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.socket.recv(1 << 16)
        head, body = data.split(b"\r\n\r\n", 1)
        length = int(re.search(rb"content-length: *([0-9]+)", head.lower()).group(1))
        while len(body) < length:
            body += self.socket.recv(1 << 16)
        return head

    def greet(self):
        self.post("initialize", protocolVersion="2025-11-25", capabilities={},
                  clientInfo={"name": "growth", "version": "1"})
        found = re.search(rb"(?i)mcp-session-id: *([^\r]*)", self.read())
        self.session = f"Mcp-Session-Id: {found.group(1).decode()}\r\n"
        return self


class HttpSessions(Clients):
    """Requests in one session of HTTP, beside others."""

    name = "sessions of HTTP"
    most = 3000
    config = {"pools": [mcp_pool()], "limits": {"max_connections": 8192, "session_idle_sec": 3600}}

    def fill(self, daemon, count):
        while self.held < count:
            HttpConnection(daemon.http_port, "127.0.0.2").greet().socket.close()
            self.held += 1

    def operate(self, daemon, count):
        if self.operator is None:
            self.operator = HttpConnection(daemon.http_port, "127.0.0.3").greet()
        for _ in range(count):
            self.operator.post("tools/list")
            self.operator.read()


class HttpStreams(HttpSessions):
    """The same, while other requests of the session are in flight."""

    name = "streams of an HTTP session"
    most = 250

    def fill(self, daemon, count):
        if self.operator is None:
            self.operator = HttpConnection(daemon.http_port, "127.0.0.3").greet()
            self.others = []
        while self.held < count:
            other = HttpConnection(daemon.http_port, "127.0.0.3")
            other.session = self.operator.session
            other.post("growth/never")
            self.others.append(other)
            self.held += 1


class StreamEvents(HttpSessions):
    """Events of one stream, of which as many are kept."""

    name = "events of a stream"
    most = 1000
    batch = 50

    @staticmethod
    def config_for(count):
        return {**HttpSessions.config,
                "limits": {**HttpSessions.config["limits"],
                           "max_resume": 1 << 20 if count > FEW else 2048}}

    def __init__(self):
        super().__init__()
        self.reader = self.teller = None

    @staticmethod
    def stream(daemon, source):
        connection = HttpConnection(daemon.http_port, source).greet()
        connection.post("growth/stream", _meta={"progressToken": 1})
        return connection

    def tell(self, daemon, reader, count):
        """The worker reports the progress of the last stream; returns after the client has it."""
        if self.teller is None:
            self.teller = daemon.connect("127.0.0.3").greet()
        told = b""
        self.teller.ask("growth/tell", count=count)
        while told.count(b"progressToken") < count:
            told += reader.socket.recv(1 << 16)

    def fill(self, daemon, count):
        self.reader = self.stream(daemon, "127.0.0.3")

    def operate(self, daemon, count):
        for _ in range(count // self.batch):
            self.tell(daemon, self.reader, self.batch)


class KeptEvents(StreamEvents):
    """The same, beside events that are kept for sessions of another address, which hold most: for
    each new event one of those is forgotten."""

    name = "events of all sessions"
    most = 60000
    per_session = 1000
    config = {**HttpSessions.config, "limits": {**HttpSessions.config["limits"],
                                                "max_resume_total": 10 << 20}}
    config_for = None

    def fill(self, daemon, count):
        while self.held < count:
            more = min(self.per_session, count - self.held)
            reader = self.stream(daemon, "127.0.0.2")
            self.tell(daemon, reader, more)
            reader.socket.close()
            self.held += more
        self.reader = self.stream(daemon, "127.0.0.3")


class RmpClient:
    """In the dialect of JSON."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)

    def ask_all(self, commands):
        """Returns how many got an error."""
        frames = [len(command).to_bytes(4, "big") + command for command in commands]
        errors, rest = 0, b""
        for at in range(0, len(frames), IN_FLIGHT):
            some = frames[at:at + IN_FLIGHT]
            self.socket.sendall(b"".join(some))
            answered = 0
            while answered < len(some):
                rest += self.socket.recv(1 << 16)
                while len(rest) >= 4 and len(rest) >= 4 + int.from_bytes(rest[:4], "big"):
                    end = 4 + int.from_bytes(rest[:4], "big")
                    errors += b'"Err"' in rest[4:end]
                    rest = rest[end:]
                    answered += 1
        return errors


class Topics(Clients):
    """Subscribe and Unsubscribe on the topic bus, beside other subscriptions."""

    name = "topics of RMP"
    most = 100000
    config = {"pools": [{"id": "plain", "command": sys.executable,
                         "args": [f"{HERE}/growth_worker.py"], "instances": 1}],
              "rmp": {"socket_path": "in the directory"}, "limits": {"max_memory": 1 << 30}}

    @staticmethod
    def subscribe(number):
        return b'{"Subscribe":{"id":%d,"topic":"topic/%d","sub_id":%d}}' % ((number,) * 3)

    def fill(self, daemon, count):
        if self.operator is None:
            self.operator = RmpClient(f"{daemon.path}/rmp")
            self.filler = RmpClient(f"{daemon.path}/rmp")
        if self.filler.ask_all(self.subscribe(i) for i in range(self.held, count)):
            raise ValueError("a subscription was refused")
        self.held = count

    def operate(self, daemon, count):
        self.operator.ask_all(self.subscribe(i // 2) if i % 2 == 0 else
                              b'{"Subscribe":{"id":1,"topic":"t","sub_id":%d}}' % (i // 2)
                              for i in range(count))


class Keys(Topics):
    """Publications on a topic, which knows those that it has seen."""

    name = "messages that a topic knows"
    most = 60000

    @staticmethod
    def publish(number):
        return (b'{"Publish":{"id":1,"topic":"t","message":{"header":{"header_version":0,'
                b'"header_len":64,"flags":0,"schema_id":3003,"body_len":0,"created_at_ms":%d,'
                b'"ttl_ms":600000,"trace_id":1,"msg_id":%d},"body":[129,164,116,121,112,101,171,'
                b'79,98,115,101,114,118,97,116,105,111,110]}}}' % (time.time() * 1000, number))

    def fill(self, daemon, count):
        if self.operator is None:
            self.operator = RmpClient(f"{daemon.path}/rmp")
            self.reader = RmpClient(f"{daemon.path}/rmp")
            self.reader.ask_all([b'{"Subscribe":{"id":1,"topic":"t","sub_id":1}}'])
        self.known = count
        self.operator.ask_all(self.publish(i) for i in range(self.held, count))
        self.held = count
        self.reader.socket.close()
        self.reader = RmpClient(f"{daemon.path}/rmp")
        self.reader.ask_all([b'{"Subscribe":{"id":1,"topic":"t","sub_id":1}}'])

    def operate(self, daemon, count):
        self.operator.ask_all(self.publish(i % self.known) for i in range(count))


LISTS = [Subscriptions, SharedUri, Levels, Clients, Origins, InFlight, GivenUp, Questions, Tasks,
         Sessions, Roaming, MemoryWaiters, HttpSessions, HttpStreams, StreamEvents, KeptEvents,
         Topics, Keys]


def measure(kind):
    """Prints the row of a list; returns whether it keeps to the bound."""
    daemon = Daemon(kind.config_for(FEW) if kind.config_for else kind.config)
    entries = kind()
    costs = []
    try:
        for count in (FEW, kind.most):
            if count != FEW and kind.config_for:
                daemon.end()
                daemon = Daemon(kind.config_for(count))
                entries = kind()
            entries.fill(daemon, count)
            entries.operate(daemon, OPERATIONS // 4)
            costs.append(min(daemon.cost(lambda: entries.operate(daemon, OPERATIONS))
                             for _ in range(3)) / OPERATIONS)
    finally:
        daemon.end()
    ratio = costs[1] / costs[0]
    print(f"{kind.name:32} {kind.most:8} {costs[0]:9.0f} {costs[1]:9.0f} {ratio:7.2f}"
          f"{'' if ratio <= BOUND else '  missed'}", flush=True)
    return ratio <= BOUND


# --- how long another address waits ---

def probe(port):
    """Asks one request after the other, and prints when it was asked and the milliseconds to the
    answer, until stdin ends."""
    client = Connection(int(port), "127.0.0.9").greet()
    out = []
    while not select.select([0], [], [], 0.002)[0]:
        asked = time.monotonic()
        client.ask("tools/list")
        out.append((asked, (time.monotonic() - asked) * 1000))
    print(json.dumps(out))


class Probe:
    def __init__(self, daemon):
        self.process = subprocess.Popen([sys.executable, __file__, "--probe", str(daemon.port)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)

    def end(self):
        return json.loads(self.process.communicate()[0])


def subscribe_at_once(clients, per_client):
    """Each client has one request in flight, all of them at the same time."""
    by_socket = {client.socket: client for client in clients}
    left = {client.socket: per_client for client in clients}
    waiting = select.epoll()
    numbers = {client.socket.fileno(): i for i, client in enumerate(clients)}
    sockets = {client.socket.fileno(): client.socket for client in clients}
    errors = 0

    def send(key):
        left[key] -= 1
        uri = f"file:///srv/project/{numbers[key.fileno()]}/{left[key]}.txt"
        key.sendall(by_socket[key].request("resources/subscribe", uri=uri))

    for key in by_socket:
        waiting.register(key.fileno(), select.EPOLLIN)
        send(key)
    while by_socket:
        for number, _ in waiting.poll():
            key = sockets[number]
            for line in by_socket[key].lines():
                errors += b'"error":' in line
                if left[key] > 0:
                    send(key)
                else:
                    waiting.unregister(number)
                    del by_socket[key]
                    break
    return errors


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def settle(daemon):
    """Until the daemon sleeps."""
    daemon.cost(lambda: None)


def waiting():
    daemon = Daemon(Subscriptions.config)
    probing = Probe(daemon)
    phases = []

    def phase(name, act):
        begun = time.monotonic()
        busy = daemon.cost(act)
        phases.append((name, begun, time.monotonic(), busy / 1e9))

    try:
        clients = [daemon.connect("127.0.0.2").greet() for _ in range(CLIENTS)]
        phase("nothing else", lambda: time.sleep(1))
        errors = []
        phase("subscribe", lambda: errors.append(subscribe_at_once(clients, PER_CLIENT)))
        resident = daemon.resident()
        phase("restart of the worker",
              lambda: clients[0].socket.sendall(message(method="growth/exit")) or time.sleep(1))
        phase("upgrade in place", lambda: daemon.control("upgrade") and time.sleep(1))
        phase("half of them leave", lambda: [client.socket.close() for client in clients[::2]])
        answers = probing.end()
    finally:
        daemon.end()
    print(f"{CLIENTS} clients of one address with {PER_CLIENT} subscriptions each "
          f"({errors[0]} refused), {resident >> 20} MB resident;\n"
          "milliseconds to the answer for another address\n")
    print(f"{'':24} {'CPU s':>7} {'asked':>7} {'median':>8} {'99 %':>8} {'most':>8}")
    for name, begun, ended, busy in phases:
        times = [ms for asked, ms in answers if begun <= asked < ended]
        row = [percentile(times, share) for share in (0.5, 0.99, 1)] if times else [0] * 3
        print(f"{name:24} {busy:7.2f} {len(times):7} {row[0]:8.2f} {row[1]:8.2f} {row[2]:8.2f}")


def main():
    if sys.argv[1:2] == ["--probe"]:
        probe(sys.argv[2])
        return 0
    wanted = sys.argv[1:]
    kinds = [kind for kind in LISTS if not wanted or kind.__name__.lower() in wanted]
    kept = True
    if kinds:
        print(f"{'':32} {'most':>8} {'ns, few':>9} {'ns, most':>9} {'ratio':>7}")
        kept = all([measure(kind) for kind in kinds])
    if not wanted or "waiting" in wanted:
        if kinds:
            print()
        waiting()
    return 0 if kept else 1


sys.exit(main())
