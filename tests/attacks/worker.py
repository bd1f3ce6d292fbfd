"""The worker of the attacks: reads lines as Python's libraries do, also at carriage returns."""
import json
import os
import sys

marks, held, secrets = [], [], {}


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(message, result):
    if message.get("id") is not None:
        say({"jsonrpc": "2.0", "id": message["id"], "result": result})


def initialize(message):
    answer(message, {"protocolVersion": message["params"]["protocolVersion"],
                     "capabilities": {"resources": {"subscribe": True}},
                     "serverInfo": {"name": "w", "version": "1"}})


def take(message):
    method, params = message.get("method"), message.get("params")
    if method is None:
        marks.append("reply " + json.dumps(message))
    elif method == "mark":
        marks.append(str(params))
        answer(message, 0)
    elif method == "marks":
        answer(message, marks)
    elif method == "hold":
        held.append(message)
    elif method == "release":
        for other in held:
            answer(other, other.get("params"))
        held.clear()
        answer(message, 0)
    elif method == "never":
        pass
    elif method == "ask":
        say({"jsonrpc": "2.0", "id": params["id"], "method": "question", **params.get("more", {})})
        answer(message, 0)
    elif method == "say":
        say(params)
        answer(message, 0)
    elif method == "big":
        answer(message, "x" * params)
    elif method == "exit":
        os._exit(1)
    elif method == "initialize":
        initialize(message)
    else:
        answer(message, {"pid": os.getpid(), "params": params})


for line in sys.stdin:
    try:
        read = json.loads(line)
    except ValueError:
        marks.append("bad " + line)
        continue
    if isinstance(read, dict):
        take(read)
