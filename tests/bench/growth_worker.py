"""The MCP server of growth.py: answers every request at once with an empty result, and initialize
with its own protocol version. `growth/exit` ends it, `growth/never` gets no answer; `growth/late`
gets it when it was cancelled; the answer to `growth/task` is a task of its `name`. Before the
answer to `growth/ask` come as many questions as its `count` says; before that to `growth/tell` as
many notifications of the progress of the last `growth/stream`, which is not answered."""

import itertools
import os
import re

ID = re.compile(rb'"id":("[^"]*"|[0-9]+)')
RESULT = (b'{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},'
          b'"serverInfo":{"name":"growth","version":"1"}}')


COUNT = re.compile(rb'"count":([0-9]+)')
QUESTION = b'{"jsonrpc":"2.0","id":"q%d","method":"roots/list"}\n'
NAME = re.compile(rb'"name":"([^"]*)"')
TOKEN = re.compile(rb'"progressToken":([0-9]+)')
PROGRESS = (b'{"jsonrpc":"2.0","method":"notifications/progress",'
            b'"params":{"progressToken":%s,"progress":%d}}\n')
CANCELLED = re.compile(rb'"requestId":([0-9]+)')
ANSWER = b'{"jsonrpc":"2.0","id":%s,"result":%s}\n'
numbers = itertools.count()
late = set()
streams = [b'0']


def before_answer(line):
    if b'"growth/ask"' in line:
        return b''.join(QUESTION % next(numbers) for _ in range(int(COUNT.search(line).group(1))))
    if b'"growth/tell"' in line:
        return b''.join(PROGRESS % (streams[0], next(numbers))
                        for _ in range(int(COUNT.search(line).group(1))))
    return b''


def result_of(line):
    if b'"initialize"' in line:
        return RESULT
    if b'"growth/task"' in line:
        return b'{"task":{"taskId":"%s","status":"working"}}' % NAME.search(line).group(1)
    return b'{}'


def is_unanswered(line, number):
    if b'"growth/late"' in line:
        late.add(number)
    elif b'"growth/stream"' in line:
        streams[0] = TOKEN.search(line).group(1)
    else:
        return b'"growth/never"' in line
    return True


def cancelled(line):
    found = CANCELLED.search(line)
    if found is None or found.group(1) not in late:
        return b''
    late.remove(found.group(1))
    return ANSWER % (found.group(1), b'{}')


def answer(line):
    if b'"growth/exit"' in line:
        os._exit(1)
    if b'"notifications/cancelled"' in line:
        return cancelled(line)
    found = ID.search(line)
    if found is None or b'"method"' not in line or is_unanswered(line, found.group(1)):
        return b''
    return before_answer(line) + ANSWER % (found.group(1), result_of(line))


def write(data):
    while data:
        data = data[os.write(1, data):]


def main():
    rest = b''
    while True:
        data = os.read(0, 65536)
        if not data:
            return
        *lines, rest = (rest + data).split(b'\n')
        write(b''.join(map(answer, lines)))


main()
