"""A user of the official Python client, 1.x or 2.x: person.py JOB, where JOB is JSON.

target: a command, or a URL. mode: of the 2.x client. calls: [tool, arguments, a text in the
result]. name: with it the tools of demo_server.py are tried."""

import asyncio
import json
import sys

try:
    from mcp import Client, StdioServerParameters
    IS_NEW = True
except ImportError:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client
    IS_NEW = False

from mcp import types

job = json.loads(sys.argv[1])


async def answer(_context, params):
    text = f"{job['name']}, {params.message}"
    return types.ElicitResult(action="accept", content={"value": text})


def expect(condition, what):
    if not condition:
        raise SystemExit(f"{job}: {what}")


async def work(client):
    tools = [tool.name for tool in (await client.list_tools()).tools]
    for tool, arguments, wanted in job.get("calls", []):
        expect(tool in tools, f"no tool {tool} in {tools}")
        result = await client.call_tool(tool, arguments)
        text = "".join(part.text for part in result.content)
        expect(wanted in text, f"{tool}: {text}")
    if job.get("name"):
        await demo(client, job["name"])


async def demo(client, name):
    heard = []

    async def progress(done, total, message):
        heard.append((done, total, message))

    for _ in range(3):
        result = await client.call_tool("steps", {"name": name}, progress_callback=progress)
        expect(result.content[0].text == name, result)
    expect(heard == [(i % 3 + 1.0, 3.0, f"{name} {i % 3}") for i in range(9)], heard)
    results = await asyncio.gather(*(client.call_tool("echo", {"text": f"{name}{i}"})
                                     for i in range(20)))
    for i, result in enumerate(results):
        expect(result.content[0].text.startswith(f"{name}{i} from "), result)
    resource = await client.read_resource("demo://text")
    expect(resource.contents[0].text == "a text of the demo", resource)
    prompt = await client.get_prompt("greeting", {"name": name})
    expect(prompt.messages[0].content.text == f"Greet {name}.", prompt)
    if job.get("asks"):
        result = await client.call_tool("ask", {"question": "who?"})
        expect(result.content[0].text == f"accept: {name}, who?", result)


async def main():
    target = job["target"]
    if isinstance(target, list):
        target = StdioServerParameters(command=target[0], args=target[1:], env=job.get("env"))
    if IS_NEW:
        async with Client(target, mode=job["mode"], elicitation_callback=answer) as client:
            await work(client)
        return
    transport = streamablehttp_client(target) if isinstance(target, str) else stdio_client(target)
    async with transport as (read, write, *_):
        async with ClientSession(read, write, elicitation_callback=answer) as client:
            await client.initialize()
            await work(client)


asyncio.run(asyncio.wait_for(main(), 120))
