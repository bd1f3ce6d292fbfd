#!/usr/bin/env python3
"""bad_broker.py ADDRESS:PORT SEED MISDEEDS: a server of NATS that misbehaves, for chaos.py.

It routes messages as a server does, and now and then, MISDEEDS times in 1000 messages, it does
something that none should do, until SIGUSR1: it drops a message, repeats it at once or seconds
later, lets others overtake it, lies about its size, cuts the connection in the middle of it, sends
an error, does not read for a while, says that nobody has listened to a request that it delivers, or
sends a message to another subscription.
"""
import asyncio
import json
import random
import signal
import sys
import time

INFO = {'server_id': 'bad', 'headers': True, 'max_payload': 1 << 20}
NOBODY = b'NATS/1.0 503\r\n\r\n'


def fits(pattern, subject):
    have, want = subject.split(b'.'), pattern.split(b'.')
    for i, word in enumerate(want):
        if word == b'>':
            return len(have) > i
        if i >= len(have) or (word != b'*' and word != have[i]):
            return False
    return len(have) == len(want)


class Message:
    def __init__(self, subject, reply, headers, payload):
        self.subject, self.reply, self.headers, self.payload = subject, reply, headers, payload

    def bytes_for(self, sid, more=0, more_head=0):
        """With sizes that are not those of the message."""
        words = [b'HMSG' if self.headers else b'MSG', self.subject, sid]
        words += [self.reply] if self.reply else []
        size = len(self.headers) + len(self.payload) + more
        words += [b'%d' % (len(self.headers) + more_head)] if self.headers else []
        return b' '.join([*words, b'%d' % size]) + b'\r\n' + self.headers + self.payload + b'\r\n'

    def may_lose_its_order(self):
        return b'.node.' in self.subject


class Peer:
    """A connection, and its subscriptions."""

    def __init__(self, broker, reader, writer):
        self.broker, self.reader, self.writer = broker, reader, writer
        self.subscriptions = {}  # by sid: subject and queue
        self.late = {}  # by subject: messages that wait for one that is delayed
        self.gets_own = True  # messages

    def say(self, data):
        if not self.writer.is_closing():
            self.writer.write(data)

    def cut(self):
        self.writer.transport.abort()

    async def read_payload(self, size):
        data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def obey(self, line):
        words = line.split()
        verb = words[0].upper()
        if verb == b'CONNECT':
            self.gets_own = json.loads(line[len(verb):]).get('echo', True)
        elif verb == b'PING':
            self.say(b'PONG\r\n')
        elif verb == b'SUB':
            self.subscriptions[words[-1]] = words[1], words[2] if len(words) == 4 else None
        elif verb == b'UNSUB':
            self.subscriptions.pop(words[1], None)
        elif verb in (b'PUB', b'HPUB'):
            sizes = 2 if verb == b'HPUB' else 1
            payload = await self.read_payload(int(words[-1]))
            head = int(words[-2]) if sizes == 2 else 0
            reply = words[2] if len(words) == 3 + sizes else None
            self.broker.route(Message(words[1], reply, payload[:head], payload[head:]), self)

    async def live(self):
        self.say(b'INFO ' + json.dumps(INFO).encode() + b'\r\n')
        try:
            while line := await self.reader.readline():
                await self.obey(line)
        except (OSError, asyncio.IncompleteReadError):
            pass
        self.broker.peers.remove(self)
        self.writer.close()

    # --- deliveries ---

    def deliver(self, sid, message):
        if message.subject in self.late:
            self.late[message.subject].append((sid, message))
        else:
            self.say(message.bytes_for(sid))

    def delay(self, sid, message, seconds, holds_others):
        loop = asyncio.get_running_loop()
        if not holds_others:
            loop.call_later(seconds, self.say, message.bytes_for(sid))
            return
        if message.subject in self.late:
            self.deliver(sid, message)
            return
        self.late[message.subject] = [(sid, message)]
        loop.call_later(seconds, self.release, message.subject)

    def release(self, subject):
        for sid, message in self.late.pop(subject):
            self.deliver(sid, message)


class Broker:
    def __init__(self, seed, misdeeds):
        self.dice = random.Random(seed)
        self.misdeeds = misdeeds
        self.peers = []
        self.acts = [self.drop, self.repeat, self.repeat_later, self.let_overtake, self.lie,
                     self.lie_much, self.cut, self.error, self.pause, self.deny, self.mislead,
                     self.swallow]

    async def came(self, reader, writer):
        peer = Peer(self, reader, writer)
        self.peers.append(peer)
        await peer.live()

    def route(self, message, sender=None):
        queues, receivers = {}, []
        for peer in self.peers:
            if peer is sender and not peer.gets_own:
                continue
            for sid, (subject, queue) in peer.subscriptions.items():
                if fits(subject, message.subject):
                    receivers += [(peer, sid)] if queue is None else []
                    if queue is not None:
                        queues.setdefault(queue, []).append((peer, sid))
        receivers += [self.dice.choice(each) for each in queues.values()]
        for peer, sid in receivers:
            if self.dice.random() * 1000 < self.misdeeds:
                act = self.dice.choice(self.acts)
                print(time.strftime('%T'), act.__name__, message.subject.decode(), flush=True)
                act(peer, sid, message)
            else:
                peer.deliver(sid, message)
        if not receivers and message.reply:
            self.route(Message(message.reply, None, NOBODY, b''))

    # --- misdeeds ---

    def drop(self, peer, sid, message):
        pass

    def repeat(self, peer, sid, message):
        peer.deliver(sid, message)
        peer.deliver(sid, message)

    def repeat_later(self, peer, sid, message):
        peer.deliver(sid, message)
        if message.may_lose_its_order():
            peer.delay(sid, message, self.dice.random() * 5, False)

    def let_overtake(self, peer, sid, message):
        within = message.may_lose_its_order() and self.dice.random() < 0.5
        peer.delay(sid, message, self.dice.random() * 0.5, not within)

    def lie(self, peer, sid, message):
        peer.say(message.bytes_for(sid, more=self.dice.randint(-30, 30) or 1))

    def lie_much(self, peer, sid, message):
        size = len(message.payload)
        more = self.dice.choice([-size - 1, 1 << 40, 10 ** 20, 1 << 24])
        peer.say(message.bytes_for(sid, more=more, more_head=self.dice.choice([0, 1 << 30])))
        # A server that waits for the rest of the message is a silent one.
        asyncio.get_running_loop().call_later(1, peer.cut)

    def cut(self, peer, sid, message):
        data = message.bytes_for(sid)
        peer.say(data[:self.dice.randrange(len(data))])
        asyncio.get_running_loop().call_soon(peer.cut)

    def error(self, peer, _sid, message):
        peer.say(b'-ERR ' + self.dice.choice([
            b"'Slow Consumer'", b"'Stale Connection'", b"'Unknown Protocol Operation'", b'',
            b"'Permissions Violation for Publish to \"x\"'", b'\x1b[2J' + b'x' * 200]) + b'\r\n')
        asyncio.get_running_loop().call_later(0.05, peer.cut)

    def pause(self, peer, sid, message):
        """A slow server, which cuts the connection in the end."""
        peer.deliver(sid, message)
        transport = peer.writer.transport
        transport.pause_reading()
        asyncio.get_running_loop().call_later(2, peer.cut)

    def deny(self, peer, sid, message):
        peer.deliver(sid, message)
        if message.reply:
            self.route(Message(message.reply, None, NOBODY, b''))

    def mislead(self, peer, sid, message):
        """To another subscription; a message of a link, to another link of the same node."""
        others = [each for each in peer.subscriptions if each != sid]
        if message.may_lose_its_order() and self.dice.random() < 0.7:
            head, _, number = message.subject.rpartition(b'.')
            number = max(0, int(number) + self.dice.randint(-3, 3))
            peer.deliver(sid, Message(head + b'.%d' % number, message.reply, message.headers,
                                      message.payload))
        elif others:
            peer.deliver(self.dice.choice(others), message)

    def swallow(self, peer, sid, message):
        """The size is that of two messages."""
        next_one = message.bytes_for(sid)
        peer.say(message.bytes_for(sid, more=len(next_one)) + next_one)


async def serve(address, port, broker):
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1,
                                                  lambda: setattr(broker, 'misdeeds', 0))
    server = await asyncio.start_server(broker.came, address, port, limit=1 << 22)
    async with server:
        await server.serve_forever()


def main():
    address, port = sys.argv[1].split(':')
    asyncio.run(serve(address, int(port), Broker(int(sys.argv[2]), float(sys.argv[3]))))


main()
