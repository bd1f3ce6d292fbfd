"""Clients of the Python library websockets, 20 at once: each begins an MCP session, sends whole
messages and such in fragments, pings, and closes. Argument: the URL."""

import asyncio
import json
import sys

import websockets

CLIENTS = 20
CALLS = 50


def request(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


async def person(url, name):
    async with websockets.connect(url, subprotocols=["mcp"], max_size=1 << 24) as socket:
        assert socket.subprotocol == "mcp", socket.subprotocol
        await socket.send(request(0, "initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": name, "version": "1"}}))
        server = json.loads(await socket.recv())["result"]["serverInfo"]["name"]
        await socket.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        for number in range(1, CALLS + 1):
            text = (name + "\u20ac") * number * 20
            message = request(number, "tools/call", {"name": "size", "arguments": {"text": text}})
            if number % 3 == 0:
                await socket.send(message[i:i + 1000] for i in range(0, len(message), 1000))
            else:
                await socket.send(message)
            if number % 7 == 0:
                await asyncio.wait_for(await socket.ping(), 30)
            answer = json.loads(await socket.recv())
            assert answer["id"] == number, answer
            assert answer["result"]["content"][0]["text"] == str(len(text)), answer
    return server, socket.close_code


async def main(url):
    ends = await asyncio.gather(*(person(url, f"person{i}") for i in range(CLIENTS)))
    assert len(set(ends)) == 1, ends
    server, code = ends[0]
    print(f"{server} {CLIENTS} x {CALLS} answers, {code} closed")


asyncio.run(main(sys.argv[1]))
