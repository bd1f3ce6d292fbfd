#!/usr/bin/env python3
"""rmp_writer: an agent of the topic bus, as a worker in Python.

Gets each request on agent/writer as the method agent/execute, and answers with the ports of its
node. An error's data.retryable says whether the executor may try again.
"""

import json
import sys


def draft(params):
    to = params.get("inputs", {}).get("to")
    if to is None:
        raise ValueError("inputs.to is missing")
    return {"schema_id": 221, "type": "artifact.draft.email.v1",
            "value": {"to": to, "text": f"Dear {to}, attempt {params.get('attempt', 1)}."}}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") != "agent/execute" or "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"], "sessionId": message["sessionId"]}
        try:
            answer["result"] = {"ports": {"out": [draft(message["params"])]}}
        except ValueError as error:
            answer["error"] = {"code": 1, "message": str(error), "data": {"retryable": False}}
        print(json.dumps(answer), flush=True)


main()
