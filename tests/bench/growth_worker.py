"""The MCP server of growth.py: answers every request at once with an empty result, and initialize
with its own protocol version. `growth/exit` ends it,
`growth/never` gets no answer; before the answer to `growth/ask` come as many questions as
its `count` says."""

import itertools
import os
import re

ID = re.compile(rb'"id":("[^"]*"|[0-9]+)')
RESULT = (b'{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},'
          b'"serverInfo":{"name":"growth","version":"1"}}')


COUNT = re.compile(rb'"count":([0-9]+)')
QUESTION = b'{"jsonrpc":"2.0","id":"q%d","method":"roots/list"}\n'
numbers = itertools.count()


def answer(line):
    if b'"growth/exit"' in line:
        os._exit(1)
    found = ID.search(line)
    if found is None or b'"method"' not in line or b'"growth/never"' in line:
        return b''
    asks = int(COUNT.search(line).group(1)) if b'"growth/ask"' in line else 0
    before = b''.join(QUESTION % next(numbers) for _ in range(asks))
    result = RESULT if b'"initialize"' in line else b'{}'
    return before + b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (found.group(1), result)


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
