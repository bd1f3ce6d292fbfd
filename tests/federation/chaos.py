#!/usr/bin/env python3
"""chaos.py STDIO_BUS TEST_WORKER [--seconds N] [--seed N] [--clients N]: many machines that fail.

Two nats-servers in a cluster and three daemons, each in a network namespace of its own. Daemon a
has clients and remote pools; b and c export the pools. At random they are killed, stopped or
upgraded in place, and their cables are cut or slowed. Each request is to be answered or refused
once, an answer is to be the client's own, a session is to be on one node at a time, a publication
arrives once at most, and when all is well again, clients are served within 5 s. Prints what
happened, and each violation.

Needs root, ip, tc and nats-server; without one of them it says so and exits with 77.
"""
import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

NET = '10.77.0.'
WHOLE_S = 5  # until clients are served again
ANSWER_S = 60  # a request without an answer or error is lost
STOPPED_S = 10
ARTIFACT = 5
BODY = b'\x82\xa4type\xb3artifact.generic.v1\xa7payload\x81\xa1n\x01'


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


class Machine:
    """A network namespace, with a cable to all the others."""

    def __init__(self, name, number):
        self.name = name
        self.space = f'sbus-{name}'
        self.near, self.far = f'sb{name}0', f'sb{name}1'
        self.address = f'{NET}{number}'
        self.process = None
        self.stopped = False
        run('ip', 'netns', 'add', self.space)
        run('ip', 'link', 'add', self.near, 'type', 'veth', 'peer', 'name', self.far)
        run('ip', 'link', 'set', self.far, 'netns', self.space)
        run('ip', 'link', 'set', self.near, 'master', 'sbus-br', 'up')
        run('ip', '-n', self.space, 'addr', 'add', f'{self.address}/24', 'dev', self.far)
        run('ip', '-n', self.space, 'link', 'set', self.far, 'up')
        run('ip', '-n', self.space, 'link', 'set', 'lo', 'up')

    def cable(self, is_cut=False, is_slow=False):
        """Slow: 1 Mbit/s out of the machine, and half a second of it waits."""
        run('ip', 'link', 'set', self.near, 'down' if is_cut else 'up')
        tc = ['ip', 'netns', 'exec', self.space, 'tc', 'qdisc']
        device = ['dev', self.far, 'root']
        subprocess.run([*tc, 'del', *device], check=False, stderr=subprocess.DEVNULL)
        if is_slow:
            run(*tc, 'add', *device, 'tbf', 'rate', '1mbit', 'burst', '16k', 'latency', '500ms')

    def start(self, *command, log):
        self.stopped = False
        with open(log, 'a', encoding='utf-8') as file:
            self.process = subprocess.Popen(['ip', 'netns', 'exec', self.space, *command],
                                            stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def signal(self, number):
        self.stopped = number == signal.SIGSTOP
        os.kill(self.process.pid, number)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def remove(self):
        self.kill()
        subprocess.run(['ip', 'netns', 'del', self.space], check=False)


class Fleet:
    def __init__(self, options, place):
        self.place = place
        self.options = options
        subprocess.run(['ip', 'link', 'del', 'sbus-br'], check=False, stderr=subprocess.DEVNULL)
        run('ip', 'link', 'add', 'sbus-br', 'type', 'bridge')
        run('ip', 'link', 'set', 'sbus-br', 'up')
        self.brokers = [Machine('s1', 1), Machine('s2', 2)]
        self.nodes = {name: Machine(name, 11 + i) for i, name in enumerate('abc')}
        for machine in self.brokers:
            self.start_broker(machine)
        for name in self.nodes:
            self.start_node(name)

    def machines(self):
        return [*self.brokers, *self.nodes.values()]

    def start_broker(self, machine):
        other = self.brokers[1 - self.brokers.index(machine)]
        path = f'{self.place}/{machine.name}.conf'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'listen: "{machine.address}:4222"\nping_interval: "1s"\nping_max: 2\n'
                       f'cluster {{ name: n, listen: "{machine.address}:6222",'
                       f' routes: ["nats://{other.address}:6222"] }}\n')
        machine.start('nats-server', '-c', path, log=f'{self.place}/{machine.name}.log')

    def socket(self, name, kind):
        return f'{self.place}/{name}-{kind}.sock'

    def start_node(self, name):
        served = {'command': self.options.worker, 'export': True}
        if name == 'a':
            served = {'remote': True}
        pools = [{'id': 'plain', 'instances': 2, **served},
                 {'id': 'tools', 'protocol': 'mcp', 'instances': 2 * self.options.clients,
                  **served}]
        servers = [f'{machine.address}:4222' for machine in self.brokers]
        config = {'nats': {'servers': servers if name != 'b' else servers[::-1], 'node': name,
                           'topics': True},
                  'limits': {'max_restarts': 1000, 'restart_window_sec': 1}, 'pools': pools}
        path = f'{self.place}/{name}.json'
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(config, file)
        for kind in ('bus', 'rmp'):
            if os.path.exists(self.socket(name, kind)):
                os.unlink(self.socket(name, kind))
        self.nodes[name].start(self.options.bus, '--config', path, '--unix',
                               self.socket(name, 'bus'), '--rmp', self.socket(name, 'rmp'),
                               log=f'{self.place}/{name}.log')

    def restart(self, machine):
        machine.kill()
        if machine in self.brokers:
            self.start_broker(machine)
        else:
            self.start_node(machine.name)

    def heal(self):
        for machine in self.machines():
            machine.cable()
            if machine.process is None or machine.process.poll() is not None:
                self.restart(machine)
            elif machine.stopped:
                machine.signal(signal.SIGCONT)

    def remove(self):
        for machine in self.machines():
            machine.remove()
        subprocess.run(['ip', 'link', 'del', 'sbus-br'], check=False)


class Ledger:
    def __init__(self):
        self.counts = {}
        self.violations = []
        self.pids = {}  # by session: the processes that have answered, in order

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def violation(self, text):
        self.violations.append(text)
        print(f'VIOLATION: {text}', flush=True)

    def note_session(self, session, pid):
        pids = self.pids.setdefault(session, [])
        if pid not in pids:
            pids.append(pid)
        elif pids[-1] != pid:
            self.violation(f'session {session} is at {pids} and again at {pid}')


class Client:
    """Asks one request after another, and sometimes two at once."""

    def __init__(self, fleet, ledger, dice, kind, number):
        self.fleet, self.ledger, self.dice = fleet, ledger, dice
        self.kind, self.name = kind, f'{kind}{number}'
        self.waits = {}  # by id: the number that the answer has to have
        self.last = self.lives = 0
        self.served = 0.0
        self.ends = False
        self.writer = None

    def send(self, message):
        message['jsonrpc'] = '2.0'
        message['pool'] = 'tools' if self.kind == 'mcp' else 'plain'
        self.writer.write(json.dumps(message).encode() + b'\n')

    def ask(self, method, params, **members):
        self.last += 1
        request = f'{self.name}-{self.last}'
        done = asyncio.get_running_loop().create_future()
        self.waits[request] = done
        self.send({'id': request, 'method': method, 'params': {'n': request, **params}, **members})
        return done

    def take(self, line):
        message = json.loads(line)
        done = self.waits.pop(message.get('id'), None)
        if done is None:
            if 'id' in message and 'method' not in message:
                self.ledger.violation(f'{self.name}: an answer to no request: {line[:200]}')
            return
        if 'error' in message:
            self.ledger.count(f"{self.kind}: error {message['error'].get('code')}")
            done.set_result(None)
            return
        self.ledger.count(f'{self.kind}: answer')
        self.served = time.monotonic()
        done.set_result(message['result'])

    async def read(self, reader):
        while line := await reader.readline():
            self.take(line)
        for done in self.waits.values():
            if not done.done():
                done.set_result(None)
        self.ledger.count(f'{self.kind}: closed')
        if self.waits and not self.ends:
            self.ledger.count(f'{self.kind}: closed before it had read all requests')
        self.waits.clear()

    async def wait(self, done, what):
        try:
            return await asyncio.wait_for(asyncio.shield(done), ANSWER_S)
        except asyncio.TimeoutError:
            self.ledger.violation(f'{self.name}: no answer to {what}')
            return None

    async def talk(self, reading):
        if self.kind == 'mcp':
            await self.wait(self.ask('initialize', {
                'protocolVersion': '2025-06-18', 'capabilities': {},
                'clientInfo': {'name': self.name, 'version': '1'}}), 'initialize')
            self.send({'method': 'notifications/initialized'})
        for _ in range(self.dice.randint(20, 200)):
            if self.ends or reading.done():
                return
            session = f'{self.name}-{self.lives}-{self.dice.randint(1, 5)}'
            more = {'sessionId': session} if self.kind == 'session' else {}
            all_done = [self.ask('echo', {}, **more) for _ in range(self.dice.randint(1, 4))]
            for done in all_done:
                name = next((key for key, value in self.waits.items() if value is done), '')
                result = await self.wait(done, name)
                if result is None:
                    continue
                if name and result['params']['n'] != name:
                    self.ledger.violation(f'{self.name}: {result} is not for {name}')
                if more:
                    self.ledger.note_session(session, result['pid'])
            await asyncio.sleep(self.dice.random() * 0.1)

    async def live(self):
        while not self.ends:
            try:
                reader, self.writer = await asyncio.open_unix_connection(
                    self.fleet.socket('a', 'bus'), limit=1 << 24)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            self.lives += 1
            reading = asyncio.ensure_future(self.read(reader))
            try:
                await self.talk(reading)
            except (ConnectionError, RuntimeError):
                pass
            if self.waits:  # all that was asked was waited for
                self.ledger.violation(f'{self.name}: {len(self.waits)} requests are left')
            self.writer.close()
            await reading


class Topics:
    """A client of the topic bus. Those at b and c have subscribed what that at a publishes: each
    publication comes once at most, and in order."""

    def __init__(self, fleet, ledger, name):
        self.fleet, self.ledger, self.name = fleet, ledger, name
        self.ends = False
        self.last = 0

    async def live(self):
        while not self.ends:
            try:
                reader, writer = await asyncio.open_unix_connection(
                    self.fleet.socket(self.name, 'rmp'))
                await send_command(writer, {'Hello': {'kind': 'Agent'}})
                if self.name == 'a':
                    await self.publish(reader, writer)
                else:
                    await self.listen(reader, writer)
                writer.close()
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.1)

    async def publish(self, reader, writer):
        await read_command(reader)
        while not self.ends:
            self.last += 1
            header = {'header_version': 0, 'header_len': 64, 'flags': 0, 'schema_id': ARTIFACT,
                      'body_len': 0, 'created_at_ms': int(time.time() * 1000), 'ttl_ms': 60000,
                      'trace_id': 1, 'msg_id': self.last}
            await send_command(writer, {'Publish': {
                'id': self.last, 'topic': 'chaos', 'message': {'header': header,
                                                               'body': [*BODY]}}})
            answer = await read_command(reader)
            self.ledger.count(f'topics: published {json.dumps(answer["PublishAck"]["result"])}')
            await asyncio.sleep(0.02)

    async def listen(self, reader, writer):
        await send_command(writer, {'Subscribe': {'id': 1, 'topic': 'chaos', 'sub_id': 1}})
        while not self.ends:
            message = await read_command(reader)
            if 'Message' not in message:
                continue
            number = message['Message']['message']['header']['msg_id']
            if number <= self.last:
                self.ledger.violation(f'{self.name}: publication {number} after {self.last}')
            self.last = number
            self.ledger.count(f'topics: received at {self.name}')


async def send_command(writer, command):
    text = json.dumps(command).encode()
    writer.write(struct.pack('>I', len(text)) + text)
    await writer.drain()


async def read_command(reader):
    (length,) = struct.unpack('>I', await reader.readexactly(4))
    return json.loads(await reader.readexactly(length))


async def misfortune(fleet, dice, ledger, seconds):
    """One thing after the other goes wrong, sometimes two at once."""
    end = time.monotonic() + seconds
    pending = []
    while time.monotonic() < end:
        machine = dice.choice([*fleet.brokers, fleet.nodes['b'], fleet.nodes['c']])
        act = dice.choice(['kill', 'kill', 'stop', 'cut', 'slow', 'upgrade'])
        if act == 'upgrade':
            machine = fleet.nodes[dice.choice('abc')]
        ledger.count(f'{act} {machine.name}')
        print(f'{time.strftime("%T")} {act} {machine.name}', flush=True)
        after = dice.random() * 4
        if act == 'kill':
            machine.kill()
        elif act == 'stop' and machine.process is not None:
            machine.signal(signal.SIGSTOP)
            after = STOPPED_S
        elif act == 'upgrade' and machine.process is not None and not machine.stopped:
            machine.signal(signal.SIGUSR2)
        elif act == 'cut':
            machine.cable(is_cut=True)
        elif act == 'slow':
            machine.cable(is_slow=True)
        await asyncio.sleep(after)
        if dice.random() < 0.3:  # another one before this one is well
            pending.append(machine)
            continue
        fleet.heal()
        pending.clear()
        await asyncio.sleep(dice.random() * 5)
    fleet.heal()


async def whole_again(clients):
    """Seconds until every client has been served after this moment."""
    begin = time.monotonic()
    while time.monotonic() < begin + 60:
        late = [client for client in clients if client.served < begin]
        if not late:
            return time.monotonic() - begin, []
        await asyncio.sleep(0.05)
    return 60.0, [client.name for client in late]


async def siege(options, fleet, ledger):
    dice = random.Random(options.seed)
    clients = [Client(fleet, ledger, random.Random(dice.random()), kind, i)
               for kind in ('plain', 'session', 'mcp') for i in range(options.clients)]
    topics = [Topics(fleet, ledger, name) for name in 'bca']
    tasks = [asyncio.ensure_future(each.live()) for each in [*clients, *topics]]
    took, late = await whole_again(clients)
    if late:
        ledger.violation(f'not served at the start: {late}')
        return
    print(f'all clients served, {took:.1f} s after the start', flush=True)
    await misfortune(fleet, dice, ledger, options.seconds)
    took, late = await whole_again(clients)
    print(f'whole again after {took:.1f} s', flush=True)
    if took > WHOLE_S:
        ledger.violation(f'whole again after {took:.1f} s; late: {late}')
    heard = {each.name: each.last for each in topics}
    await asyncio.sleep(1)
    for each in topics:
        if each.last <= heard[each.name]:
            ledger.violation(f'{each.name}: no publication in a second')
    for each in [*clients, *topics]:
        each.ends = True
    await asyncio.wait(tasks, timeout=ANSWER_S + 10)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('bus')
    parser.add_argument('worker')
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--seed', type=int, default=random.randrange(1 << 30))
    parser.add_argument('--clients', type=int, default=10, help='of each kind')
    options = parser.parse_args()
    options.bus, options.worker = map(os.path.abspath, (options.bus, options.worker))
    missing = [word for word in ('ip', 'tc', 'nats-server') if shutil.which(word) is None]
    if os.geteuid() != 0 or missing:
        print(f'skipped: needs root, {" ".join(missing)}')
        return 77
    place = tempfile.mkdtemp(prefix='sbus-chaos.')
    print(f'seed {options.seed}, logs in {place}', flush=True)
    ledger = Ledger()
    fleet = Fleet(options, place)
    try:
        asyncio.run(siege(options, fleet, ledger))
    finally:
        fleet.remove()
    for what in sorted(ledger.counts):
        print(f'{ledger.counts[what]:8} {what}')
    print(f'{len(ledger.violations)} violations, seed {options.seed}')
    if not ledger.violations:
        shutil.rmtree(place)
    return 1 if ledger.violations else 0


if __name__ == '__main__':
    sys.exit(main())
