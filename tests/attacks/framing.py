"""Lines and frames: a message within a message, and texts that readers of JSON take differently.
Each carries a message of the method `mark`; none of them may reach a worker."""
from attempt import Attempt, mark
from world import need

MARK = '{"jsonrpc":"2.0","method":"mark","params":"%s","pool":"plain"}'

# What surrounds the mark, %s, in a line that is no good message, or is another one.
LINES = [
    ("a carriage return after a whole message", b'{"id":1,"method":"echo","pool":"plain"}\r%s\n'),
    ("a carriage return between tokens",
     b'{"id":1,"method":"echo","pool":"plain","params":\r%s\r}\n'),
    ("U+2028 between messages", b'{"id":1,"method":"echo"}\xe2\x80\xa8%s\n'),
    ("U+0085 between messages", b'{"id":1,"method":"echo"}\xc2\x85%s\n'),
    ("a form feed between messages", b'{"id":1,"method":"echo"}\x0c%s\n'),
    ("a NUL before a message", b"\0%s\n"),
    ("a NUL within white space", b'{"id":1,\0"x":%s}\n'),
    ("a byte order mark", b"\xef\xbb\xbf%s\n"),
    ("an overlong newline", b'{"x":"\xc0\x8a%s"}\n'),
    ("half a UTF-8 character", b'{"x":"\xe2\x80"}%s\n'),
    ("an array of messages in a plain pool", b"[%s]\n"),
    ("a comment", b"/* */%s\n"),
    ("an end of array first", b"]%s\n"),
    ("a message after a number", b"1 %s\n"),
    ("a control character in a string", b'{"x":"\x01"}%s\n'),
    ("an id that is an object", b'{"id":%s,"method":"echo"}\n'),
    ("an id of 129 bytes", b'{"id":"' + b"i" * 129 + b'","method":"mark","params":"%s"}\n'),
    ("an id beyond all doubles", b'{"id":1e400,"method":"mark","params":"%s"}\n'),
    ("a sessionId that is a number", b'{"sessionId":1,"method":"mark","params":"%s"}\n'),
    ("a sessionId of 257 bytes", b'{"sessionId":"' + b"s" * 257 + b'","method":"mark",'
     b'"params":"%s"}\n'),
    ("a pool that is an array", b'{"pool":["plain"],"method":"mark","params":"%s"}\n'),
    ("a pool that is not there", b'{"id":1,"pool":"x","method":"mark","params":"%s"}\n'),
    ("a number with a leading zero", b'{"id":01,"method":"mark","params":"%s"}\n'),
    ("NaN", b'{"x":NaN,"method":"mark","params":"%s"}\n'),
    ("a trailing comma", b'{"method":"mark","params":"%s",}\n'),
    ("single quotes", b"{'method':'mark','params':'%s'}\n"),
    ("2000 levels", b'{"x":' + b"[" * 2000 + b"]" * 2000 + b',"method":"mark","params":"%s"}\n'),
    ("a line without an end", b'{"method":"mark","params":"%s"}'),
    ("a request of HTTP", b"POST / HTTP/1.1\r\nHost: x\r\n\r\n%s\n"),
    ("the beginning of HTTP/2", b"PRI * HTTP/2.0\r\n\r\n%s\n"),
    ("a greeting of TLS", b"\x16\x03\x01\x02\x00\n%s\n"),
    ("a line of 2 MiB before it", b'{"id":1,"pool":"plain","x":"' + b"x" * 2000000 + b'\n%s\n'),
]

FRAMES = [
    ("two lengths", b"Content-Length: %d\r\nContent-Length: 2\r\n\r\n"),
    ("a negative length", b"Content-Length: -%d\r\n\r\n"),
    ("a length in hexadecimal", b"Content-Length: 0x%x\r\n\r\n"),
    ("a length beyond 64 bits", b"Content-Length: 18446744073709551616%d\r\n\r\n"),
    ("a length with a plus", b"Content-Length: +%d\r\n\r\n"),
    ("a length beyond max_message", b"Content-Length: 18446744073%d\r\n\r\n"),
    ("no length", b"Content-Type: application/json\r\nX: %d\r\n\r\n"),
    ("line feeds alone", b"Content-Length: %d\n\n"),
    ("a field of HTTP", b"Content-Length: %d\r\nHost: x\r\n\r\n"),
    ("chunks", b"Transfer-Encoding: chunked\r\n\r\n%x\r\n"),
    ("another charset", b"Content-Length: %d\r\n"
     b"Content-Type: application/json; charset=utf-16\r\n\r\n"),
    ("a length of nothing", b"Content-Length: \r\nX: %d\r\n\r\n"),
    ("65 headers", b"X: y\r\n" * 65 + b"Content-Length: %d\r\n\r\n"),
    ("headers of 9000 bytes", b"X: " + b"y" * 9000 + b"\r\nContent-Length: %d\r\n\r\n"),
]


def expect_unmarked(world, text):
    need(not any(text in seen for seen in world.marks()), "a worker has got it")


def line(world, data):
    text = mark()
    wanted = MARK % text if data.count(b"mark") == 0 else text
    client = world.other()
    client.raw(data.replace(b"%s", wanted.encode()))
    if not data.endswith(b"\n"):
        client.socket.shutdown(1)
    answer = client.rest(0.3)
    client.close()
    expect_unmarked(world, text)
    return "%d bytes of answer, %s" % (len(answer), "closed" if client.ended else "open")


def frame(world, head):
    text = mark()
    body = (MARK % text).encode()
    client = world.other(world.frames)
    client.raw(head % len(body) + body)
    answer = client.rest(6)  # skipped as it arrives, and late after frame_timeout_sec
    client.close()
    expect_unmarked(world, text)
    need(client.ended, "the first frame was wrong, and the connection is open")
    return "%d bytes of answer, closed" % len(answer)


def frame_in_frame(world):
    """The announced length is too small: the rest of the body is a frame of its own."""
    text = mark()
    inner = (MARK % text).encode()
    body = b'{"id":1,"method":"echo","pool":"plain"}'
    client = world.other(world.frames)
    client.raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    need(client.fill(), "no answer")
    rest = b'{"id":2,"params":"\r\nContent-Length: %d\r\n\r\n%s' % (len(inner), inner)
    rest = rest.replace(b"\r\n", b"\\r\\n") + b'"}'
    client.raw(b"Content-Length: %d\r\n\r\n%s" % (len(rest), rest))
    client.rest(0.3)
    client.close()
    expect_unmarked(world, text)


def newline_in_a_body(world):
    """A body may have newlines; a worker with lines gets one line."""
    text = mark()
    body = b'{"id":1,"method":"echo","pool":"plain","params":\n%s\n}' % (MARK % text).encode()
    client = world.other(world.frames)
    client.raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    need(client.fill(), "no answer")
    client.close()
    expect_unmarked(world, text)
    return "one line, answered"


def late_first_frame(world):
    client = world.other(world.frames)
    client.raw(b"Content-Length: 100\r\n\r\n{")
    client.rest(6)
    need(client.ended, "half a first frame keeps its connection")
    return "closed after frame_timeout_sec"


def attempts():
    for name, data in LINES:
        yield Attempt("line", name, line, data)
    for name, head in FRAMES:
        yield Attempt("frame", name, frame, head)
    yield Attempt("frame", "a frame in a string of another one", frame_in_frame)
    yield Attempt("frame", "newlines in a body, for a worker with lines", newline_in_a_body)
    yield Attempt("frame", "half a first frame, for ever", late_first_frame)
