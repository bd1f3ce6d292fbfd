"""Requests in sessions through contrib/python/stdio_bus_embed.py: each gets its own answer.

    STDIO_BUS_LIBRARY=... embedded_host.py REQUESTS TEST_WORKER
"""

import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../contrib/python"))
import stdio_bus_embed

SESSIONS = 16


async def session(bus, number, count):
    pids = set()
    for i in range(count):
        wanted = {"session": number, "i": i}
        result = await bus.request("echo", wanted, sessionId=f"s{number}")
        assert result["params"] == wanted, result
        pids.add(result["pid"])
    assert len(pids) == 1, pids


async def main(requests, worker):
    events = []
    config = {"pools": [{"id": "echo", "command": worker, "instances": 4}]}
    async with stdio_bus_embed.Bus(config, on_worker=lambda *event: events.append(event)) as bus:
        assert bus.workers == 4 and bus.state == "running"
        await asyncio.gather(*(session(bus, n, requests // SESSIONS) for n in range(SESSIONS)))
        assert bus.stats.messages_in == bus.stats.messages_out == requests // SESSIONS * SESSIONS
        try:
            await bus.request("die", {"code": 1})
        except stdio_bus_embed.RequestError as error:
            assert error.code == -32000
        while not any(event == "restarting" for _, event in events):
            await asyncio.sleep(0.01)
        try:
            await bus.request("echo", pool="none")
            raise AssertionError("a pool that is not there has answered")
        except stdio_bus_embed.BusError as error:
            assert error.code == -12
    try:
        stdio_bus_embed.Bus({"pools": []})
        raise AssertionError("a configuration without pools was taken")
    except stdio_bus_embed.BusError as error:
        assert error.code == -10


asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
print("ok")
