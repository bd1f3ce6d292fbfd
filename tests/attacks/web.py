"""A page in a browser, a proxy that is led astray, and whoever has no token."""
import json
import re

from attempt import Attempt, mark
from framing import expect_unmarked
from world import TOKEN, Line, need

BODY = '{"jsonrpc":"2.0","id":1,"method":"mark","params":"%s","pool":"plain"}'
JSON = "Content-Type: application/json\r\n"

# Fields of a POST to /rpc/plain that must not be served.
REFUSED = [
    ("a name that was made to point here", "Host: evil.example\r\n", 403),
    ("a Host that begins with localhost", "Host: localhost.evil.example\r\n", 403),
    ("a Host with a user", "Host: localhost@evil.example\r\n", 400),
    ("no Host", "", 400),
    ("two Hosts", "Host: localhost\r\nHost: evil.example\r\n", 400),
    ("a page of another origin", "Host: localhost\r\nOrigin: https://evil.example\r\n", 403),
    ("a page of a file", "Host: localhost\r\nOrigin: null\r\n", 403),
    ("a page of another port", "Host: localhost:1\r\nOrigin: http://localhost:2\r\n", 403),
    ("an origin of which ours is a part",
     "Host: localhost\r\nOrigin: http://localhost.evil\r\n", 403),
    ("two lengths", "Host: localhost\r\nContent-Length: 2\r\n", 400),
    ("a length and chunks", "Host: localhost\r\nTransfer-Encoding: chunked\r\n", 400),
    ("chunks that are spelled oddly", "Host: localhost\r\nTransfer-Encoding: xchunked\r\n", None),
    ("a blank before the colon", "Host: localhost\r\nX : y\r\n", 400),
    ("a folded line", "Host: localhost\r\nX: y\r\n z\r\n", 400),
    ("a carriage return alone", "Host: localhost\r\nX: y\rOrigin: z\r\n", 400),
    ("a NUL in a field", "Host: localhost\r\nX: \0\r\n", 400),
    ("a text as its type", "Host: localhost\r\nX: y\r\n", None),
    ("500 fields", "Host: localhost\r\n" + "X: y\r\n" * 500, 431),
    ("a field of 100 KB", "Host: localhost\r\nX: " + "y" * 100000 + "\r\n", 431),
]

TOKENS = [
    ("no token", "", 401),
    ("a wrong token", "Authorization: Bearer wrong\r\n", 401),
    ("the beginning of the token", "Authorization: Bearer %s\r\n" % TOKEN[:-1], 401),
    ("the token and more", "Authorization: Bearer %sx\r\n" % TOKEN, 401),
    ("the token as a password", "Authorization: Basic %s\r\n" % TOKEN, 401),
    ("the token in a cookie", "Cookie: token=%s\r\n" % TOKEN, 401),
    ("an empty token", "Authorization: Bearer \r\n", 401),
    ("two tokens", "Authorization: Bearer %s\r\nAuthorization: Bearer x\r\n" % TOKEN, None),
]

TARGETS = [
    ("a path with dots", "POST /rpc/../rpc/plain HTTP/1.1"),
    ("an escaped slash", "POST /rpc%2fplain HTTP/1.1"),
    ("two slashes", "POST //rpc/plain HTTP/1.1"),
    ("the pool of another path", "POST /rpc/solo HTTP/1.1"),
    ("CONNECT", "CONNECT localhost:80 HTTP/1.1"),
    ("TRACE", "TRACE /rpc/plain HTTP/1.1"),
    ("HTTP/0.9", "POST /rpc/plain"),
    ("HTTP/2.0 in words", "POST /rpc/plain HTTP/2.0"),
    ("a small letter", "post /rpc/plain HTTP/1.1"),
    ("a NUL in the path", "POST /rpc/plain\0 HTTP/1.1"),
    ("a tab in place of a blank", "POST\t/rpc/plain HTTP/1.1"),
]


def answers(data):
    return len(re.findall(rb"HTTP/1\.1 \d\d\d ", data))


def exchange(address, head, body):
    client = Line(address)
    client.raw(("%s\r\nContent-Length: %d\r\n\r\n%s" % (head, len(body), body)).encode())
    answer = client.rest(0.4)
    client.close()
    words = answer.split(b" ", 2)
    status = int(words[1]) if answer.startswith(b"HTTP/1.1 ") else 0
    return status, answer


def expect_refused(world, address, head, expected):
    text = mark()
    status, answer = exchange(address, head, BODY % text)
    expect_unmarked(world, text)
    need(status == 0 or status >= 400, "the status is %d" % status)
    need(expected is None or status == expected, "the status is %d, not %d" % (status, expected))
    need(b"Access-Control-Allow-Origin" not in answer, "a page may read the answer")
    need(TOKEN.encode() not in answer, "the token is in the answer")
    return "%d" % status if status else "closed"


def refused(world, fields, expected):
    if expected is None:
        fields = fields.replace("X: y", "Content-Type: text/plain")
        return served_or_refused(world, fields)
    return expect_refused(world, world.http, "POST /rpc/plain HTTP/1.1\r\n" + JSON +
                          fields.rstrip("\r\n"), expected)


def served_or_refused(world, fields):
    """The specification leaves it open; but the connection must not be read in two ways."""
    status, answer = exchange(world.http, "POST /rpc/plain HTTP/1.1\r\n" + fields.rstrip("\r\n"),
                              '{"jsonrpc":"2.0","id":1,"method":"echo"}')
    need(answers(answer) <= 1, "one request has two answers")
    return "%d" % status


def token(world, fields, expected):
    head = "POST /rpc/plain HTTP/1.1\r\nHost: localhost\r\n" + JSON + fields
    return expect_refused(world, world.token_http, head.rstrip("\r\n"), expected)


def target(world, line):
    text = mark()
    body = BODY % text
    status, answer = exchange(world.http, line + "\r\nHost: localhost\r\n" + JSON.rstrip(), body)
    expect_unmarked(world, text)
    need(answers(answer) <= 1, "one request has two answers")
    return "%d" % status if status else "closed"


def token_paths(world, path):
    client = Line(world.token_http)
    client.raw(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path).encode())
    answer = client.rest(0.4)
    client.close()
    need(b"stdio_bus_" not in answer and b"/rpc" not in answer, "it is told something")
    need(answer.startswith(b"HTTP/1.1 4"), "the answer is %r" % answer[:40])
    return answer[9:12].decode()


def smuggled(world, body_of):
    """A second request in the body of the first: it must be no request."""
    text = mark()
    inner = BODY % text
    second = "POST /rpc/plain HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s" % (
        JSON, len(inner), inner)
    client = Line(world.http)
    client.raw(body_of(second).encode())
    answer = client.rest(0.4)
    client.close()
    expect_unmarked(world, text)
    return "%d answers" % answers(answer)


def in_a_get(second):
    return "GET /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: %d\r\n\r\n%s" % (
        len(second), second)


def in_a_refused_post(second):
    return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (
        len(second), second)


def in_a_chunk(second):
    return ("POST /rpc/plain HTTP/1.1\r\nHost: localhost\r\n%sTransfer-Encoding: chunked\r\n\r\n"
            "%x;x=\"\r\n%s\r\n0\r\n\r\n" % (JSON, len(second), second))


def after_a_long_chunk(second):
    return ("POST /rpc/plain HTTP/1.1\r\nHost: localhost\r\n%sTransfer-Encoding: chunked\r\n\r\n"
            "ffffffffffffffff1\r\n%s" % (JSON, second))


def answer_to(world, request):
    client = Line(world.http)
    client.raw(request)
    answer = client.rest(0.4)
    client.close()
    return answer


def websocket_of_a_page(world):
    answer = answer_to(world, b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                       b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                       b"Origin: https://evil.example\r\n"
                       b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    need(b" 101 " not in answer, "the page has a WebSocket")
    return answer[9:12].decode()


def preflight(world):
    answer = answer_to(world, b"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n"
                       b"Origin: https://evil.example\r\n"
                       b"Access-Control-Request-Method: POST\r\n"
                       b"Access-Control-Request-Headers: x,Set-Cookie\r\n\r\n")
    need(b"Access-Control-Allow" not in answer, "the page is let in")
    return answer[9:12].decode()


def begin_session(world):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"}}})
    _, answer = exchange(world.http, "POST /mcp/mcp HTTP/1.1\r\nHost: localhost\r\n" + JSON +
                         "Accept: application/json, text/event-stream", body)
    for field in answer.split(b"\r\n"):
        if field.lower().startswith(b"mcp-session-id:"):
            return field.split(b":")[1].strip().decode()
    return None


def foreign_session(world, change):
    session = begin_session(world)
    need(session is not None, "there is no session")
    text = mark()
    status, _ = exchange(world.http, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s"
                         "Accept: application/json, text/event-stream\r\nMcp-Session-Id: %s"
                         % (change(session)[0], JSON, change(session)[1]),
                         BODY.replace(',"pool":"plain"', "") % text)
    need(not any(text in seen for seen in world.marks("mcp")), "a worker has got it")
    need(status >= 400, "the status is %d" % status)
    return "%d" % status


def attempts():
    for name, fields, expected in REFUSED:
        yield Attempt("page", name, refused, fields, expected)
    for name, fields, expected in TOKENS:
        if expected is not None:
            yield Attempt("token", name, token, fields, expected)
    for name, line in TARGETS:
        yield Attempt("proxy", name, target, line)
    for path in ("/metrics", "/", "/mcp", "/mcp?token=" + TOKEN, "/.well-known/x"):
        yield Attempt("token", "GET %s without a token" % path.split("=")[0], token_paths, path)
    for name, body_of in (("a request in a refused GET", in_a_get),
                          ("a request in a refused POST", in_a_refused_post),
                          ("a request in a chunk", in_a_chunk),
                          ("a request after an endless chunk", after_a_long_chunk)):
        yield Attempt("proxy", name, smuggled, body_of)
    yield Attempt("page", "a WebSocket of another origin", websocket_of_a_page)
    yield Attempt("page", "a preflight of another origin", preflight)
    yield Attempt("session", "of HTTP, on the path of another pool", foreign_session,
                  lambda session: ("/mcp/solo", session))
    yield Attempt("session", "of HTTP, one digit off", foreign_session,
                  lambda session: ("/mcp/mcp", session[:-1] + ("0" if session[-1] != "0" else "1")))
    yield Attempt("session", "of HTTP, in capital letters", foreign_session,
                  lambda session: ("/mcp/mcp", session.upper() + " "))
    yield Attempt("session", "of HTTP, all zeros", foreign_session,
                  lambda session: ("/mcp/mcp", "0" * len(session)))
