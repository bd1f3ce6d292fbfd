"""The clients of chaos.py on sockets: what each kind asks, and what it must hear."""
import asyncio
import json
import time

ANSWER_S = 60  # a request without an answer or error is lost
ERA = {'io.modelcontextprotocol/protocolVersion': '2026-07-28',
       'io.modelcontextprotocol/clientInfo': {'name': 'chaos', 'version': '1'},
       'io.modelcontextprotocol/clientCapabilities': {}}
HELLO = {'protocolVersion': '2025-06-18', 'capabilities': {'sampling': {}},
         'clientInfo': {'name': 'chaos', 'version': '1'}}


class Ledger:
    def __init__(self):
        self.counts = {}
        self.violations = []
        self.acts = 0  # of the misfortune, and their ends
        self.homes = {}  # by session: what answered last, the acts before it was asked, its moves
        self.misdeeds = None  # the log of a server at fault
        self.is_calm = False  # all is well, and has been for a while
        self.owners = {}  # by process: the client that it has, where none is shared

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def violation(self, text):
        self.violations.append(text)
        print(f'VIOLATION: {time.strftime("%T")} {text}', flush=True)

    def count_misdeeds(self):
        """Each is in the log before its message is sent."""
        if self.misdeeds is not None:
            more = len(self.misdeeds.readlines())
            self.counts['misdeeds'] = self.counts.get('misdeeds', 0) + more
            self.acts += more

    def note_asked(self, session):
        """What goes wrong before the first answer can already put a session on two nodes."""
        if session not in self.homes:
            self.count_misdeeds()
            self.homes[session] = None, self.acts, 0

    def note_session(self, session, pid):
        """Each act moves a session once at most: one on two nodes moves with each request."""
        self.note_asked(session)
        home, began, moves = self.homes[session]
        if home != pid:
            self.count_misdeeds()
        if home not in (None, pid):
            moves += 1
            if self.is_calm:
                self.violation(f'session {session} has moved without a reason, to {pid}')
            if moves > self.acts - began + 1:
                self.violation(f'session {session} has moved {moves} times since {began} acts of '
                               f'{self.acts}, from {home} to {pid}')
        self.homes[session] = pid, began, moves

    def note_process(self, client, pid):
        """A process that no others share: it ends with its client."""
        owner = self.owners.setdefault(pid, client)
        if owner is not client and owner.process == pid:
            self.violation(f'{client.name} has the process {pid} of {owner.name}')
        self.owners[pid] = client
        client.process = pid
        self.note_session(f'{client.name}-{client.lives}', pid)


class Client:
    """Has several lives, in each of which it asks one request after the other."""

    kind = pool = ''
    acts = ('echo',)
    most = 4  # requests at once
    whole_life = 20  # seconds, at most

    def __init__(self, fleet, ledger, dice, number, node='a'):
        self.fleet, self.ledger, self.dice, self.node = fleet, ledger, dice, node
        self.number = number
        self.name = f'{self.kind}{number}{node}'
        self.last = self.lives = 0
        self.served = 0.0
        self.ends = False

    def count(self, what):
        self.ledger.count(f'{self.kind}: {what}')

    def violation(self, text):
        self.ledger.violation(f'{self.name}: {text}')

    def next_request(self):
        self.last += 1
        return f'{self.name}-{self.last}'

    def params_of(self, act, request):
        params = {'n': request}
        if act == 'progress':
            params['_meta'] = {'progressToken': request}
        elif act == 'ask':
            params.update(id=request, params={'n': request})
        return params

    def note_answer(self, request, act, message, heard):
        """`heard`: messages of the worker in the course of the request."""
        if 'error' in message:
            error = message['error']
            self.count(f"error {error.get('code')} {error.get('message', '')[:50]}")
            return None
        result = message['result']
        self.count(f'answer to {act}')
        self.served = time.monotonic()
        if said_in(act, result) != request:
            self.violation(f'{result} is not for {request}')
        if act in ('progress', 'ask') and heard != 1:
            self.violation(f'{heard} messages came before the answer to {request}')
        return result

    def is_own(self, params):
        return str(params.get('n', '')).startswith(f'{self.name}-')

    async def rest(self):
        await asyncio.sleep(self.dice.random() * self.fleet.options.pause)


def said_in(act, result):
    if act == 'ask':  # the reply to the question
        return result.get('result', {}).get('n')
    if act == 'session/prompt':
        return result['n'] if result['n'] == result['reply'] else None
    return result['params']['n']


class Wait:
    def __init__(self, act):
        self.act = act
        self.done = asyncio.get_running_loop().create_future()
        self.heard = 0


class LineClient(Client):
    """On a Unix socket."""

    closes = ()  # how the error begins that comes before the end of the connection

    def __init__(self, *words):
        super().__init__(*words)
        self.waits = {}  # by id
        self.writer = None
        self.sessions = []
        self.is_over = False  # this life

    def send(self, **message):
        self.writer.write(json.dumps({'jsonrpc': '2.0', 'pool': self.pool, **message}).encode()
                          + b'\n')

    def ask(self, act, params, **members):
        request = self.next_request()
        self.waits[request] = wait = Wait(act)
        self.send(id=request, method=act, params={**self.params_of(act, request), **params},
                  **members)
        return request, wait

    def hear(self, message):
        """A notification or question of a worker."""
        params = message.get('params', {})
        wait = self.waits.get(params.get('n'))
        if not self.is_own(params):
            self.violation(f'a message for another client: {message}')
        elif wait is None:
            self.count('a message after the answer')
        if message['method'] == 'notifications/progress' and \
                params['progressToken'] != params['n']:
            self.violation(f'another token: {message}')
        if params.get('sessionId') is not None and params['sessionId'] not in self.sessions:
            self.violation(f'a message of another session: {message}')
        if wait is not None:
            wait.heard += 1
        if 'id' in message:
            self.count('question')
            self.send(id=message['id'], result={'n': params.get('n')})

    def take(self, line):
        message = json.loads(line)
        if 'method' in message:
            self.hear(message)
            return
        request = message.get('id')
        wait = self.waits.pop(request, None)
        if wait is not None:
            wait.done.set_result(self.note_answer(request, wait.act, message, wait.heard))
        elif message.get('error', {}).get('message', '').startswith(self.closes):
            self.count('closed for another node')
        elif 'id' in message:
            self.violation(f'an answer to no request: {line[:200]}')

    async def read(self, reader):
        while line := await reader.readline():
            self.take(line)
        for wait in self.waits.values():
            if not wait.done.done():
                wait.done.set_result(None)
        self.count('closed')
        if self.waits and not self.ends:
            self.count('closed before it had read all requests')
        self.waits.clear()

    async def answer_to(self, asked):
        request, wait = asked
        try:
            return await asyncio.wait_for(asyncio.shield(wait.done), ANSWER_S)
        except asyncio.TimeoutError:
            self.violation(f'no answer to {request}')
            return None

    async def begin(self):
        """The handshake. False: it was refused."""
        return True

    def one_request(self):
        return self.ask(self.dice.choice(self.acts), {})

    def note_result(self, _asked, _result):
        pass

    async def talk(self, reading):
        end = time.monotonic() + self.whole_life * self.dice.random()
        if not await self.begin():
            return
        while not (time.monotonic() > end or self.ends or self.is_over or reading.done()):
            all_asked = [self.one_request() for _ in range(self.dice.randint(1, self.most))]
            for asked in all_asked:
                result = await self.answer_to(asked)
                if result is not None:
                    self.note_result(asked, result)
            await self.rest()

    async def live(self):
        while not self.ends:
            try:
                reader, self.writer = await asyncio.open_unix_connection(
                    self.fleet.socket(self.node, 'bus'), limit=1 << 24)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            self.lives += 1
            self.is_over = False
            reading = asyncio.ensure_future(self.read(reader))
            try:
                await self.talk(reading)
            except (ConnectionError, RuntimeError):
                pass
            if self.waits:  # all that was asked was waited for
                self.violation(f'{len(self.waits)} requests are left')
            self.writer.close()
            await reading
            await self.rest()


class Plain(LineClient):
    kind = pool = 'plain'


class InSession(LineClient):
    """With more than one asking node, the clients of a number have the same sessions, and stay: a
    session ends with the client that was its first."""

    kind, pool = 'session', 'plain'

    def __init__(self, *words):
        super().__init__(*words)
        if self.fleet.options.askers > 1:
            self.whole_life = 1e9

    def one_request(self):
        owner = self.number if self.fleet.options.askers > 1 else f'{self.name}-{self.lives}'
        session = f'{owner}-{self.dice.randint(1, 5)}'
        self.ledger.note_asked(session)
        asked = self.ask('echo', {}, sessionId=session)
        asked[1].session = session
        return asked

    def note_result(self, asked, result):
        self.ledger.note_session(asked[1].session, result['pid'])


class Exclusive(LineClient):
    kind, pool = 'mcp', 'tools'
    acts = ('echo', 'progress', 'ask')
    process = None

    async def begin(self):
        self.process = None
        done = self.ask('initialize', HELLO)
        done[1].act = 'echo'
        result = await self.answer_to(done)
        if result is None:
            return False
        self.note_result(done, result)
        self.send(method='notifications/initialized')
        return True

    def note_result(self, asked, result):
        if asked[1].act != 'ask':  # the answer to that is the reply
            self.ledger.note_process(self, result['pid'])


class Overflow(Exclusive):
    """Its node has too few processes: the others are reached by links. At a, the clients that d
    has sent may have less than their share of the processes."""

    kind, pool = 'overflow', 'spill'
    closes = 'another user or address is due its share'


class Stateless(LineClient):
    kind, pool = 'stateless', 'tools'
    acts = ('echo', 'progress')

    def params_of(self, act, request):
        params = super().params_of(act, request)
        params['_meta'] = {**params.get('_meta', {}), **ERA}
        return params


class Agent(LineClient):
    """ACP: a client begins again after an error, since the next agent has not its sessions."""

    kind, pool = 'acp', 'agents'
    acts = ('session/prompt',)
    most = 2
    hears_all = True

    def note_answer(self, request, act, message, heard):
        if act != 'session/prompt' and 'result' in message:
            return message['result']
        result = super().note_answer(request, act, message, heard)
        if result is None:
            self.is_over = True
        elif heard != 2 and self.hears_all:
            self.violation(f'{heard} messages came before the answer to {request}')
        return result

    def ask_for_session(self, method, **params):
        return self.answer_to(self.ask(method, {'cwd': '/', 'mcpServers': [], **params}))

    async def begin(self):
        self.sessions = []
        if await self.answer_to(self.ask('initialize', {'protocolVersion': 1})) is None:
            return False
        for _ in range(2):
            result = await self.ask_for_session('session/new')
            if result is None:
                return False
            self.sessions.append(result['sessionId'])
        return True

    def one_request(self):
        session = self.dice.choice(self.sessions)
        self.ledger.note_asked(session)
        asked = self.ask('session/prompt', {'sessionId': session})
        asked[1].session = session
        return asked

    def note_result(self, asked, result):
        if result['of'] != asked[1].session:
            self.violation(f'{result} is not for {asked[1].session}')
        self.ledger.note_session(asked[1].session, result['pid'])


class SharedAgent(Agent):
    """Clients of all nodes share the agents, and those of a number load the same sessions: what an
    agent says in one goes to the client that has loaded it last."""

    kind, pool = 'acp shared', 'common'
    hears_all = False
    whole_life = 1e9

    def is_own(self, params):
        return str(params.get('n', '')).startswith(f'{self.kind}{self.number}')

    async def begin(self):
        self.sessions = [f'{self.pool}-{self.number}-{i}' for i in range(2)]
        if await self.answer_to(self.ask('initialize', {'protocolVersion': 1})) is None:
            return False
        for session in self.sessions:
            if await self.ask_for_session('session/load', sessionId=session) is None:
                return False
        return True
