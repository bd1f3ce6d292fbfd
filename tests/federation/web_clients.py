"""The clients of chaos.py that speak HTTP: sessions of MCP, requests of its stateless era, /rpc."""
import asyncio
import json
import time

from clients import ANSWER_S, ERA, HELLO, Client


class Ended(Exception):
    """The connection was closed before the end of an answer."""


class Answer:
    """The head of an answer; `messages` reads the rest."""

    def __init__(self, reader, status, fields):
        self.reader, self.status, self.fields = reader, status, fields

    async def body(self):
        if self.fields.get('transfer-encoding') != 'chunked':
            yield await self.reader.readexactly(int(self.fields.get('content-length', 0)))
            return
        while size := int(await self.reader.readline(), 16):
            yield await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()

    async def messages(self):
        is_stream = 'event-stream' in self.fields.get('content-type', '')
        text = b''
        async for piece in self.body():
            text += piece
            while is_stream and b'\n\n' in text:
                event, text = text.split(b'\n\n', 1)
                data = b''.join(line[5:] for line in event.split(b'\n')
                                if line.startswith(b'data:'))
                if data.strip():
                    yield json.loads(data)
        if text.strip() and not is_stream:
            yield json.loads(text)


class Connection:
    def __init__(self, path):
        self.path = path
        self.reader = self.writer = None

    async def send(self, method, path, body, fields):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_unix_connection(self.path,
                                                                          limit=1 << 24)
        text = json.dumps(body).encode() if body is not None else b''
        head = [f'{method} {path} HTTP/1.1', 'Host: localhost', f'Content-Length: {len(text)}',
                'Content-Type: application/json', 'Accept: application/json, text/event-stream',
                *(f'{key}: {value}' for key, value in fields.items())]
        self.writer.write('\r\n'.join(head).encode() + b'\r\n\r\n' + text)
        line = await self.reader.readline()
        if not line:
            raise Ended
        fields = {}
        while (field := (await self.reader.readline()).strip()):
            key, value = field.decode().split(':', 1)
            fields[key.lower()] = value.strip()
        return Answer(self.reader, int(line.split()[1]), fields)

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


class WebClient(Client):
    """One request at a time, on one connection; replies to questions on another one."""

    path = ''
    fields = {}

    def __init__(self, *words):
        super().__init__(*words)
        where = self.fleet.socket(self.node, 'http')
        self.line, self.side = Connection(where), Connection(where)

    async def hear(self, message, request):
        params = message.get('params', {})
        if params.get('n') != request:
            self.violation(f'{message} during {request}')
        if 'id' in message:
            self.count('question')
            reply = {'jsonrpc': '2.0', 'id': message['id'], 'result': {'n': params.get('n')}}
            answer = await self.side.send('POST', self.path, reply, self.fields)
            async for _ in answer.body():
                pass
            self.count(f'a reply has {answer.status}')

    async def ask(self, act, params):
        """The result, or None, and the head of the answer."""
        request = self.next_request()
        message = {'jsonrpc': '2.0', 'id': request, 'method': act,
                   'params': {**self.params_of(act, request), **params}}
        answer = await self.line.send('POST', self.path, message, self.fields_of(act))
        heard, last = 0, None
        async for each in answer.messages():
            if 'method' in each:
                heard += 1
                await self.hear(each, request)
            elif last is not None:
                self.violation(f'a second answer: {each}')
            else:
                last = each
        if answer.status != 200:
            self.count(f'status {answer.status}')
            return None, answer
        if last is None or last.get('id') != request:
            self.violation(f'{last} is the answer to {request}')
            return None, answer
        act = 'echo' if act == 'initialize' else act
        return self.note_answer(request, act, last, heard), answer

    def fields_of(self, _act):
        return self.fields

    async def begin(self):
        return True

    async def finish(self):
        pass

    async def talk(self):
        end = time.monotonic() + self.whole_life * self.dice.random()
        if not await self.begin():
            return
        while time.monotonic() < end and not self.ends:
            _, answer = await asyncio.wait_for(self.ask(self.dice.choice(self.acts), {}), ANSWER_S)
            if answer.status == 404:
                return  # the session has ended
            await self.rest()
        await self.finish()

    async def live(self):
        while not self.ends:
            try:
                await self.talk()
            except asyncio.TimeoutError:
                self.violation(f'no answer to {self.name}-{self.last}')
            except (Ended, asyncio.IncompleteReadError):
                self.violation(f'{self.name}-{self.last}: the connection has ended')
            except OSError:
                self.count('no connection')
            self.line.close()
            self.side.close()
            await self.rest()


class Web(WebClient):
    kind, path = 'web', '/mcp/tools'
    acts = ('echo', 'progress', 'ask')

    async def begin(self):
        self.fields = {}
        result, answer = await self.ask('initialize', HELLO)
        if result is None:
            return False
        self.fields = {'Mcp-Session-Id': answer.fields['mcp-session-id'],
                       'MCP-Protocol-Version': '2025-06-18'}
        answer = await self.line.send('POST', self.path, {
            'jsonrpc': '2.0', 'method': 'notifications/initialized'}, self.fields)
        async for _ in answer.body():
            pass
        return answer.status == 202

    async def finish(self):
        answer = await self.line.send('DELETE', self.path, None, self.fields)
        async for _ in answer.body():
            pass


class WebStateless(WebClient):
    kind, path = 'web stateless', '/mcp/tools'
    acts = ('echo', 'progress')

    def fields_of(self, act):
        return {'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': act}

    def params_of(self, act, request):
        params = super().params_of(act, request)
        params['_meta'] = {**params.get('_meta', {}), **ERA}
        return params


class Rpc(WebClient):
    kind, path = 'rpc', '/rpc/plain'
