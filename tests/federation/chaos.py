#!/usr/bin/env python3
"""chaos.py STDIO_BUS TEST_WORKER [OPTIONS]: many machines that fail.

Two nats-servers in a cluster and four daemons, each in a network namespace of its own. Daemon a
has clients of each kind and remote pools; b and c export the pools. At random they are killed,
stopped or upgraded in place, and their cables are cut or slowed. Each request is to be answered or
refused once, an answer is to be the client's own, progress and questions are to come before it, to
that client, a session is to be on one node at a time, and stay there while all is well, a
publication arrives once at most, and when all is well again, clients are served within 5 s, or N
times that with TEST_TIMEOUT_FACTOR=N. A pool that overflows has no more links than processes, and a
process of a client alone is of no other. Prints what happened, and each violation.

With --bad N one server of bad_broker.py takes the place of both, and makes N misdeeds in 1000
messages; daemons are killed, stopped and upgraded beside that. A fourth daemon, d, has clients that
use the sessions of those of a; with --askers 1 it is left out.

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

from clients import (ANSWER_S, Agent, Exclusive, InSession, Ledger, Overflow, Plain,
                     SharedAgent, Stateless)
from web_clients import Rpc, Web, WebStateless

NET = '10.77.0.'
RUN = f'sb{os.getpid()}'  # two runs have nothing in common
FACTOR = float(os.environ.get('TEST_TIMEOUT_FACTOR', '1'))
WHOLE_S = 5 * FACTOR  # until clients are served again
STOPPED_S = 10
MISSED_S = 12  # after a new connection, until a node that is gone is missed
MEMORY_MAX = 256 << 20  # of a daemon, sanitizers included
KINDS = {each.kind: each for each in (Plain, InSession, Exclusive, Overflow, Stateless,
                                      Agent, SharedAgent, Web, WebStateless, Rpc)}
COMPLAINTS = ('VIOLATION', 'Sanitizer', 'runtime error:', 'Assertion')
HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = f'{HERE}/acp_agent.py'
ARTIFACT = 5
BODY = b'\x82\xa4type\xb3artifact.generic.v1\xa7payload\x81\xa1n\x01'


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


class Machine:
    """A network namespace, with a cable to all the others."""

    def __init__(self, name, number):
        self.name = name
        self.space = f'{RUN}-{name}'
        self.near, self.far = f'{RUN}{name}0', f'{RUN}{name}1'
        self.address = f'{NET}{number}'
        self.process = None
        self.stopped = False
        run('ip', 'netns', 'add', self.space)
        run('ip', 'link', 'add', self.near, 'type', 'veth', 'peer', 'name', self.far)
        run('ip', 'link', 'set', self.far, 'netns', self.space)
        run('ip', 'link', 'set', self.near, 'master', RUN, 'up')
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

    def memory(self):
        """In bytes."""
        with open(f'/proc/{self.process.pid}/statm', encoding='utf-8') as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

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
        run('ip', 'link', 'add', RUN, 'type', 'bridge')
        run('ip', 'link', 'set', RUN, 'up')
        self.brokers = [Machine(f's{i}', i) for i in range(1, 2 if options.bad else 3)]
        self.nodes = {name: Machine(name, 11 + i)
                      for i, name in enumerate('abcd'[:2 + options.askers])}
        for machine in self.brokers:
            self.start_broker(machine)
        self.await_route()
        for name in self.nodes:
            self.start_node(name)

    def machines(self):
        return [*self.brokers, *self.nodes.values()]

    def start_broker(self, machine):
        if self.options.bad:
            machine.start(sys.executable, f'{HERE}/bad_broker.py', f'{machine.address}:4222',
                          f'{self.options.seed}', f'{self.options.bad}',
                          log=f'{self.place}/{machine.name}.log')
            return
        other = self.brokers[1 - self.brokers.index(machine)]
        path = f'{self.place}/{machine.name}.conf'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'listen: "{machine.address}:4222"\nping_interval: "1s"\nping_max: 2\n'
                       f'cluster {{ name: n, listen: "{machine.address}:6222",'
                       f' routes: ["nats://{other.address}:6222"] }}\n')
        machine.start('nats-server', '-c', path, log=f'{self.place}/{machine.name}.log')

    def await_route(self):
        """Before that, the servers are two clusters, and a session may begin in each. A second
        route, which comes a second later and is closed, may lose claims to sessions, too."""
        for _ in range(50 if not self.options.bad else 0):
            with open(f'{self.place}/s2.log', encoding='utf-8') as file:
                if 'Route connection created' in file.read():
                    time.sleep(1.5)
                    break
            time.sleep(0.1)

    def socket(self, name, kind):
        return f'{self.place}/{name}-{kind}.sock'

    def instances(self, name):
        """Of the pool that overflows at a and d: as many again are links. Half of what a's clients
        need may be taken by the links of d."""
        count = self.options.clients
        if name in 'bc':
            return 4 * count + 4
        return (3 * count + 3) // 4 if name == 'a' else (count + 1) // 2

    def start_node(self, name):
        def served(*command):
            if name in 'ad':
                return {'remote': True}
            return {'command': command[0], 'args': command[1:], 'export': True}

        worker = self.options.worker
        pools = [{'id': 'plain', 'instances': 2, **served(worker)},
                 {'id': 'tools', 'protocol': 'mcp', 'instances': 4 * self.options.clients + 4,
                  **served(worker)},
                 {'id': 'spill', 'protocol': 'mcp', 'instances': self.instances(name),
                  'command': worker, 'export': name != 'd', 'overflow': name in 'ad'},
                 {'id': 'agents', 'protocol': 'acp', 'instances': 2,
                  **served(sys.executable, AGENT)},
                 {'id': 'common', 'protocol': 'acp', 'clients': 'shared', 'instances': 2,
                  **served(sys.executable, AGENT)}]
        servers = [f'{machine.address}:4222' for machine in self.brokers]
        config = {'nats': {'servers': servers if name != 'b' else servers[::-1], 'node': name,
                           'topics': True},
                  'limits': {'max_restarts': 1000, 'restart_window_sec': 1,
                             'max_connections': 4096}, 'pools': pools}
        path = f'{self.place}/{name}.json'
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(config, file)
        for kind in ('bus', 'rmp', 'http', 'control'):
            if os.path.exists(self.socket(name, kind)):
                os.unlink(self.socket(name, kind))
        self.nodes[name].start(self.options.bus, '--config', path, '--unix',
                               self.socket(name, 'bus'), '--rmp', self.socket(name, 'rmp'),
                               '--http', f"unix:{self.socket(name, 'http')}",
                               '--control', self.socket(name, 'control'),
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
        subprocess.run(['ip', 'link', 'del', RUN], check=False)


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


class Links:
    """Those of a pool that overflows are at most as many as its own processes, and end with their
    clients."""

    def __init__(self, fleet, ledger, name):
        self.fleet, self.ledger, self.name = fleet, ledger, name
        self.instances = fleet.instances(name)
        self.count = self.most = 0

    async def watch(self):
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(
                    self.fleet.socket(self.name, 'control'), limit=1 << 24)
                await self.look(reader, writer)
            except OSError:
                pass
            await asyncio.sleep(0.1)

    async def look(self, reader, writer):
        question = {'jsonrpc': '2.0', 'id': 1, 'method': 'workers', 'params': {'limit': 10000}}
        while True:
            writer.write(json.dumps(question).encode() + b'\n')
            line = await reader.readline()
            if not line:
                return
            workers = json.loads(line)['result']['workers']
            self.count = [each['pool'] for each in workers].count(Overflow.pool) - self.instances
            self.most = max(self.most, self.count)
            if self.count > self.instances:
                self.ledger.violation(f'{self.name} overflows by {self.count} links')
            await asyncio.sleep(0.1)

    async def end(self):
        for _ in range(50):
            if self.count == 0:
                break
            await asyncio.sleep(0.1)
        else:
            self.ledger.violation(f'{self.name}: {self.count} links without clients')
        self.ledger.counts[f'overflow: links of {self.name}, at most'] = self.most


async def send_command(writer, command):
    text = json.dumps(command).encode()
    writer.write(struct.pack('>I', len(text)) + text)
    await writer.drain()


async def read_command(reader):
    (length,) = struct.unpack('>I', await reader.readexactly(4))
    return json.loads(await reader.readexactly(length))


async def end_misdeeds(fleet):
    fleet.brokers[0].signal(signal.SIGUSR1)
    await asyncio.sleep(MISSED_S + 3)  # the last ones may have cut connections: they are made anew


async def misfortune(fleet, dice, ledger, options):
    """One thing after the other goes wrong, sometimes two at once. A server at fault goes wrong
    itself, and cables are left alone."""
    end = time.monotonic() + options.seconds
    machines = [fleet.nodes['b'], fleet.nodes['c'], *([] if options.bad else fleet.brokers)]
    acts = ['kill', 'kill', 'stop', 'upgrade', *([] if options.bad else ['cut', 'slow'])]
    pending = []
    while time.monotonic() < end:
        machine = dice.choice(machines)
        act = dice.choice(acts)
        if act == 'upgrade':
            machine = dice.choice([*fleet.nodes.values()])
        ledger.count(f'{act} {machine.name}')
        ledger.acts += 1
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
        ledger.acts += 1 + len(pending)
        pending.clear()
        await asyncio.sleep(dice.random() * 5)
    fleet.heal()


async def whole_again(clients):
    """Seconds until every client has been served after this moment, and those that were late."""
    begin = time.monotonic()
    late = []
    while time.monotonic() < begin + 60:
        waiting = [client for client in clients if client.served < begin]
        if not waiting:
            return time.monotonic() - begin, late
        if not late and time.monotonic() > begin + WHOLE_S:
            late = [client.name for client in waiting]
        await asyncio.sleep(0.05)
    return 60.0, [client.name for client in clients if client.served < begin]


async def calm(ledger):
    """Each node has heard of the others, and each session has its place."""
    await asyncio.sleep(MISSED_S)
    ledger.is_calm = True
    await asyncio.sleep(3)
    ledger.is_calm = False


async def siege(options, fleet, ledger):
    dice = random.Random(options.seed)
    clients = [KINDS[kind](fleet, ledger, random.Random(dice.random()), i, node)
               for node in 'ad'[:options.askers] for kind in options.kinds
               for i in range(options.clients)]
    topics = [Topics(fleet, ledger, name) for name in 'bca']
    tasks = [asyncio.ensure_future(each.live()) for each in clients]
    links = [Links(fleet, ledger, node) for node in 'ad'[:options.askers]]
    others = [*(asyncio.ensure_future(each.live()) for each in topics),
              *(asyncio.ensure_future(each.watch()) for each in links)]
    if options.bad:
        ledger.misdeeds = open(f'{fleet.place}/s1.log', encoding='utf-8')
    took, late = await whole_again(clients)
    if took >= 60:
        ledger.violation(f'not served at the start: {late}')
        return
    print(f'all clients served, {took:.1f} s after the start', flush=True)
    await misfortune(fleet, dice, ledger, options)
    if options.bad:
        await end_misdeeds(fleet)
        ledger.count_misdeeds()
    took, late = await whole_again(clients)
    print(f'whole again after {took:.1f} s', flush=True)
    if took > WHOLE_S:
        ledger.violation(f'whole again after {took:.1f} s; late: {late}')
    await calm(ledger)
    heard = {each.name: each.last for each in topics}
    await asyncio.sleep(1)
    for each in topics:
        if each.last <= heard[each.name]:
            ledger.violation(f'{each.name}: no publication in a second')
    for name, node in fleet.nodes.items():
        print(f'{name}: {node.memory() >> 10} KiB', flush=True)
        # A sanitizer keeps what was freed.
        if node.memory() > MEMORY_MAX and 'TEST_NO_RSS' not in os.environ:
            ledger.violation(f'{name} has {node.memory()} bytes')
    for each in [*clients, *topics]:
        each.ends = True
    done, left = await asyncio.wait(tasks, timeout=ANSWER_S + 10)
    for task in done:
        task.result()
    if left:
        ledger.violation(f'{len(left)} clients do not end')
    for each in links:
        await each.end()
    for task in others:
        task.cancel()


def look_at_logs(place, ledger):
    """Agents report there what a client of theirs has done twice."""
    for name in sorted(os.listdir(place)):
        if not name.endswith('.log'):
            continue
        with open(f'{place}/{name}', encoding='utf-8', errors='replace') as file:
            for line in file:
                if any(word in line for word in COMPLAINTS):
                    ledger.violation(f'{name}: {line.strip()}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('bus')
    parser.add_argument('worker')
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--seed', type=int, default=random.randrange(1 << 30))
    parser.add_argument('--clients', type=int, default=10, help='of each kind')
    parser.add_argument('--kinds', nargs='*', choices=KINDS, default=[*KINDS])
    parser.add_argument('--askers', type=int, choices=(1, 2), default=2)
    parser.add_argument('--bad', type=float, default=0, metavar='N')
    parser.add_argument('--pause', type=float, help='of a client, at most, in seconds')
    options = parser.parse_args()
    if options.pause is None:
        options.pause = 0.02 * options.clients
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
    look_at_logs(place, ledger)
    for what in sorted(ledger.counts):
        print(f'{ledger.counts[what]:8} {what}')
    print(f'{len(ledger.violations)} violations, seed {options.seed}')
    if not ledger.violations:
        shutil.rmtree(place)
    return 1 if ledger.violations else 0


if __name__ == '__main__':
    sys.exit(main())
