#!/usr/bin/env python3
"""echo_worker: a minimal worker in Python.

Reads one JSON object per line from stdin and answers each request with its own process id and
the request itself. Diagnostics go to stderr, never to stdout. Ends at the end of its input or on
SIGTERM.
"""

import json
import os
import signal
import sys
import threading

answering = threading.Lock()


def answer_to(request):
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if "sessionId" in request:
        answer["sessionId"] = request["sessionId"]
    answer["result"] = {"pid": os.getpid(), "echo": request}
    return answer


def end_on_sigterm():
    signal.sigwait({signal.SIGTERM})
    with answering:  # no answer is cut
        os._exit(0)


def main():
    # A handler would wait for the next line if the signal came just before the read began.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=end_on_sigterm, daemon=True).start()
    print(f"echo_worker.py[{os.getpid()}]: ready", file=sys.stderr, flush=True)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        # A request has an id and a method; other messages get no answer.
        if message.get("id") is not None and "method" in message:
            text = json.dumps(answer_to(message), separators=(",", ":"))
            with answering:
                sys.stdout.buffer.write(text.encode() + b"\n")
                sys.stdout.buffer.flush()


main()
