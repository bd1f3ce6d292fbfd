"""A server as FastMCP's examples are: tools that report progress and ask the user."""

import asyncio
import os

from fastmcp import Context, FastMCP

mcp = FastMCP("demo")


@mcp.tool
def echo(text: str) -> str:
    return f"{text} from {os.getpid()}"


@mcp.tool
async def steps(name: str, ctx: Context) -> str:
    for step in range(3):
        await ctx.report_progress(step + 1, 3, f"{name} {step}")
        await asyncio.sleep(0.01)
    return name


@mcp.tool
async def ask(question: str, ctx: Context) -> str:
    answer = await ctx.elicit(question, response_type=str)
    return f"{answer.action}: {answer.data}" if answer.action == "accept" else answer.action


@mcp.resource("demo://text")
def text() -> str:
    return "a text of the demo"


@mcp.prompt
def greeting(name: str) -> str:
    return f"Greet {name}."


if __name__ == "__main__":
    mcp.run(show_banner=False)
