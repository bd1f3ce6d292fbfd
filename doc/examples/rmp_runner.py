#!/usr/bin/env python3
"""rmp_runner: the runner of the topic bus, as a worker in Python.

Gets each run that is submitted on rlp/ctrl as the method run/submit and accepts it at once. Then
each step of the YAML becomes an event, and an event of the kind status ends the run: completed,
failed or cancelled.
"""

import json
import sys


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def event(trace_id, kind, message, level="info"):
    say({"method": "run/event", "params": {"trace_id": trace_id, "kind": kind, "level": level,
                                           "message": message}})


def name_of(yaml):
    for line in yaml.splitlines():
        if line.startswith("name:"):
            return line[5:].strip()
    raise ValueError("the opening has no name")


def submit(request):
    params = request["params"]
    answer = {"id": request["id"], "sessionId": request["sessionId"]}
    try:
        name = name_of(params["opening_yaml"])
    except ValueError as error:
        say({**answer, "error": {"code": 1, "message": str(error)}})
        return
    say({**answer, "result": {"opening_id": params["request_id"], "opening_name": name}})
    event(params["request_id"], "status", "started")
    steps = [line[4:] for line in params["opening_yaml"].splitlines() if line.startswith("  - ")]
    for step in steps:
        event(params["request_id"], "log", step)
    event(params["request_id"], "status", "failed" if "fail" in steps else "completed")


def cancel(request):
    say({"id": request["id"], "sessionId": request["sessionId"], "result": {}})
    event(request["params"]["trace_id"], "status", "cancelled")


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "run/submit":
            submit(message)
        elif message.get("method") == "run/cancel":
            cancel(message)


main()
