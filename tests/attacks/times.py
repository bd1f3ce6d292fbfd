"""Against time: honest clients wait, memory and CPU grow, or a clock tells a secret."""
import os
import statistics
import time

from attempt import Attempt
from world import ATTACKER, TOKEN, FACTOR, Line, need


def connections(world, count, address=None):
    found = []
    for _ in range(count):
        try:
            found.append(Line(address or world.tcp, ATTACKER))
        except OSError:
            break
    return found


def each(world, stop, found, data, pause=0.0):
    """Sends the data on each connection, again and again."""
    for connection in found:
        connection.socket.setblocking(False)
    while not stop.is_set():
        for connection in found:
            try:
                connection.socket.send(data)
                connection.socket.recv(65536)
            except OSError:
                pass
        time.sleep(pause)
    for connection in found:
        connection.close()


def busy(world, count, data, pause=0.0, address=None):
    address = getattr(world, address) if address else None
    return world.during(lambda stop: each(world, stop, connections(world, count, address), data,
                                          pause))


def notifications(world):
    """They have no answer that would be waited for: the queue of the worker fills, and others wait
    until it has read that."""
    return world.during(lambda stop: each(world, stop, connections(world, 20),
                                          b'{"method":"n","pool":"plain"}\n' * 50), 1, 3000)


def churn(world, data, address=None):
    """Connects, sends and leaves, as fast as it goes."""
    def run(stop):
        while not stop.is_set():
            connection = Line(getattr(world, address or "tcp"), ATTACKER)
            connection.raw(data)
            connection.close()
    return world.during(run)


def unread(world):
    """Asks for much, and reads nothing."""
    def run(stop):
        found = connections(world, 20)
        for connection in found:
            for _ in range(40):
                connection.raw(b'{"id":1,"method":"big","params":60000,"pool":"mcp"}\n')
        stop.wait()
        for connection in found:
            connection.close()
    return world.during(run, 3)


def subscriptions(world):
    """Many subscriptions of many clients, in a process that others use."""
    def run(stop):
        found = connections(world, 30)
        for number, connection in enumerate(found):
            connection.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                          "clientInfo": {"name": "a", "version": "1"}}, pool="mcp")
            for uri in range(250):
                connection.send({"id": uri, "method": "resources/subscribe", "pool": "mcp",
                                 "params": {"uri": "x:%d/%d" % (number, uri)}})
        stop.wait()
        for connection in found:
            connection.close()
    return world.during(run, 3)


def topics(world):
    """Subscriptions of one RMP client, each on a topic of its own."""
    def run(stop):
        client = Line(world.rmp)
        number = 0
        while not stop.is_set() and number < 20000:
            text = b'{"Subscribe":{"id":%d,"topic":"t/%d","sub_id":%d}}' % ((number,) * 3)
            client.raw(len(text).to_bytes(4, "big") + text)
            number += 1
            if number % 100 == 0:
                client.fill(1)
        client.close()
    return world.during(run, 2)


def grows(world, count, data, bound, address=None):
    """The memory that these connections take."""
    before = world.rss()
    found = connections(world, count, getattr(world, address) if address else None)
    for connection in found:
        connection.raw(data)
    time.sleep(0.5)
    grown = max(world.rss() - before, 0)
    for connection in found:
        connection.close()
    if "TEST_NO_RSS" in os.environ:  # a sanitizer keeps what was freed
        return "%d connections, memory is not measured" % len(found)
    need(grown <= bound, "%.1f MiB more" % (grown / 1048576))
    return "%.1f MiB more with %d connections" % (grown / 1048576, len(found))


def idle_cpu(world, data):
    """Half messages and silence must not make the daemon turn."""
    found = connections(world, 50)
    for connection in found:
        connection.raw(data)
    time.sleep(0.3)
    before = world.cpu()
    time.sleep(1)
    used = world.cpu() - before
    for connection in found:
        connection.close()
    need(used < 0.2 * FACTOR, "%.2f s of CPU in a second" % used)
    return "%.2f s of CPU in a second" % used


def timed(ask, guesses):
    """The median time of each guess; they take turns, so that noise is the same for all."""
    times = {guess: [] for guess in guesses}
    for _ in range(60):
        for guess in guesses:
            began = time.perf_counter()
            ask(guess)
            times[guess].append(time.perf_counter() - began)
    return [statistics.median(times[guess]) * 1e6 for guess in guesses]


def expect_alike(ask, guesses):
    """What differs is seen each time; what the machine does beside it, is not."""
    for _ in range(5):
        medians = timed(ask, guesses)
        spread = (max(medians) - min(medians)) / min(medians)
        if spread < 0.5 * FACTOR:
            return "medians differ by %.0f %%" % (100 * spread)
    need(False, "medians in us, those of the last of five tries: %r" % medians)


def token_clock(world):
    """A token that begins rightly must not take longer to be refused."""
    def ask(guess):
        client = Line(world.token_http)
        client.raw(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
                   % guess.encode())
        client.fill()
        client.close()
    return expect_alike(ask, ["x" * len(TOKEN), TOKEN[:14] + "x" * (len(TOKEN) - 14),
                              TOKEN[:-1] + "x"])


def pool_clock(world):
    """What another client has in flight must not be seen in the time of an answer."""
    victim = world.client()
    victim.send({"id": "guess", "method": "never", "pool": "mcp"})
    thief = world.other()
    result = expect_alike(lambda guess: thief.ask("echo", ident=guess, pool="mcp"),
                          ["guess", "other"])
    victim.close()
    thief.close()
    return result


def crashes(world):
    """A process of its own, crashed again and again: others of the pool go on."""
    def run(stop):
        while not stop.is_set():
            client = world.other()
            client.send({"id": 1, "method": "exit", "pool": "solo"})
            client.message(0.3)
            client.close()
    world.during(run, 2)
    client = world.client()
    reply = client.ask("echo", pool="solo")
    client.close()
    need(reply is not None and "result" in reply, "another client gets no process: %r" % reply)


def full_table(world):
    """All pending requests are the attacker's; another origin has its share."""
    found = connections(world, 20)
    for connection in found:
        for number in range(60):
            connection.send({"id": number, "method": "never", "pool": "mcp"})
    time.sleep(0.3)
    waited = max(world.honest() for _ in range(20)) * 1000
    for connection in found:
        connection.close()
    need(waited < 500 * FACTOR, "an honest client waits %.0f ms" % waited)
    return "longest %.0f ms" % waited


def all_connections(world):
    """As many connections as there may be; another origin connects all the same."""
    found = connections(world, 450)
    waited = world.honest() * 1000
    for connection in found:
        connection.close()
    return "%d connections, an answer after %.0f ms" % (len(found), waited)


ECHO = b'{"id":1,"method":"echo","pool":"plain"}\n'


def attempts():
    for count in (1, 50, 300):
        yield Attempt("time", "%d connections that flood" % count, busy, count, ECHO * 20)
    yield Attempt("time", "malformed lines without an end", churn, b"x\n" * 100)
    yield Attempt("time", "connections that come and go", churn, b"")
    yield Attempt("time", "requests given up at once", churn,
                  b'{"id":1,"method":"never","pool":"mcp"}\n' * 20)
    yield Attempt("time", "sessions that are begun and left", churn,
                  b"".join(b'{"id":%d,"method":"echo","sessionId":"s%d","pool":"plain"}\n' % (n, n)
                           for n in range(50)))
    yield Attempt("time", "processes that are begun and left", churn,
                  b'{"id":1,"method":"echo","pool":"solo"}\n')
    yield Attempt("time", "a byte now and then", busy, 200, b"{", 0.05)
    yield Attempt("time", "half a head of HTTP now and then", busy, 60, b"X", 0.05, "http")
    yield Attempt("time", "connections that read nothing", unread)
    yield Attempt("time", "subscriptions", subscriptions)
    yield Attempt("time", "topics", topics)
    yield Attempt("time", "pings of WebSocket", busy, 20,
                  b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                  b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
                  + b"\x89\x80\0\0\0\0" * 500, 0, "http")
    yield Attempt("time", "sessions of HTTP", churn,
                  b"POST /mcp/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Accept: application/json, text/event-stream\r\nContent-Length: 131\r\n\r\n"
                  + b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
                    b'"2025-06-18","capabilities":{},"clientInfo":{"name":"a"}}}', "http")
    yield Attempt("time", "crashes", crashes)
    yield Attempt("share", "all pending requests", full_table)
    yield Attempt("share", "all connections", all_connections)
    yield Attempt("memory", "announced frames", grows, 100, b"Content-Length: 9999999\r\n\r\n{",
                  8 << 20, "frames")
    yield Attempt("memory", "announced bodies of HTTP", grows, 60,
                  b"POST /rpc/plain HTTP/1.1\r\nHost: localhost\r\n"
                  b"Content-Type: application/json\r\nContent-Length: 60000000\r\n\r\n{", 8 << 20,
                  "http")
    yield Attempt("memory", "lines without an end", grows, 60,
                  b'{"x":"' + b"x" * 900000, 100 << 20)
    yield Attempt("memory", "half a line each", grows, 200, b'{"x":"', 16 << 20)
    yield Attempt("cpu", "half a message each", idle_cpu, b'{"id":1,')
    yield Attempt("cpu", "held requests", idle_cpu, b'{"id":1,"method":"never","pool":"plain"}\n')
    yield Attempt("clock", "of a token that begins rightly", token_clock)
    yield Attempt("clock", "of an id that another has in flight", pool_clock)
    # Last: the worker has much to read afterwards.
    yield Attempt("time", "notifications without an end", notifications)
