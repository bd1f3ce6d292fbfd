"""What `make bench-http` needs beside wrk, of HTTP/1.1 and MCP's handshake era. One of:

    session HOST:PORT                  begins a session and prints its id
    kept HOST:PORT PATH SESSION        asks a hundred times on one connection; "": in no session;
                                       fails unless it stays and all answers are right
    streams HOST:PORT COUNT PID        opens so many sessions, each with its GET stream, and prints
                                       the bytes of memory that each takes in the process
    uploads HOST:PORT SECONDS BYTES    sends requests of that length, one after the other
    look HOST:PORT SECONDS             asks for the figures of the page each second, as a browser
                                       does that has it open, and prints how often
"""

import http.client
import json
import os
import resource
import socket
import sys
import time

ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def post(connection, message, session=None):
    headers = dict(ACCEPT)
    if session:
        headers.update({"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"})
    connection.request("POST", "/mcp", json.dumps(message), headers)
    response = connection.getresponse()
    body = response.read()
    assert response.status in (200, 202), (response.status, body)
    return response


def begin(connection):
    answer = post(connection, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"}}})
    session = answer.getheader("Mcp-Session-Id")
    post(connection, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    return session


def session(address):
    print(begin(http.client.HTTPConnection(address)))


def result_of(response, body):
    """The answer in the body, which is JSON or a stream with one event."""
    text = body.decode()
    if response.getheader("Content-Type", "").startswith("text/event-stream"):
        text = "".join(line[5:] for line in text.splitlines() if line.startswith("data:"))
    return json.loads(text)["result"]["content"][0]["text"]


def kept(address, path, name=""):
    connection = http.client.HTTPConnection(address)
    connection.connect()
    first = connection.sock
    headers = dict(ACCEPT)
    if name:
        headers.update({"Mcp-Session-Id": name, "MCP-Protocol-Version": "2025-11-25"})
    for number in range(100):
        connection.request("POST", path, json.dumps(
            {"jsonrpc": "2.0", "id": 1000000 + number, "method": "tools/call",
             "params": {"name": "next", "arguments": {}}}), headers)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, (response.status, body)
        assert result_of(response, body).startswith("number "), body
        assert connection.sock is first, f"the connection ended after {number + 1} requests"


def memory(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def streams(address, count, pid):
    count = int(count)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, port = address.split(":")
    first = begin(http.client.HTTPConnection(address))
    before = memory(pid)
    kept = []
    for _ in range(count):
        connection = http.client.HTTPConnection(address)
        name = begin(connection)
        connection.close()
        stream = socket.create_connection((host, int(port)))
        stream.sendall((f"GET /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n"
                        f"Mcp-Session-Id: {name}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n"
                        ).encode())
        head = stream.recv(4096)
        assert head.startswith(b"HTTP/1.1 200"), head
        kept.append(stream)
    time.sleep(1)
    print(round((memory(pid) - before) / count))
    assert first


def uploads(address, seconds, length):
    end = time.monotonic() + float(seconds)
    connection = http.client.HTTPConnection(address)
    name = begin(connection)
    text = "0123456789abcde\n" * (int(length) // 16)
    count = 0
    while time.monotonic() < end:
        count += 1
        post(connection, {"jsonrpc": "2.0", "id": count, "method": "tools/call", "params": {
            "name": "next", "arguments": {"text": text}}}, name)
    print(count)


def look(address, seconds):
    end = time.monotonic() + float(seconds)
    connection = http.client.HTTPConnection(address)
    count = 0
    while time.monotonic() < end:
        connection.request("GET", "/page.json", headers={"Sec-Fetch-Site": "same-origin"})
        response = connection.getresponse()
        assert response.status == 200 and "now" in json.loads(response.read())
        count += 1
        time.sleep(1)
    print(count)


COMMANDS = {"session": session, "kept": kept, "streams": streams, "uploads": uploads,
            "look": look}
COMMANDS[sys.argv[1]](*sys.argv[2:])
