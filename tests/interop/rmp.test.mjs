// The topic bus with an independent client: bodies by @msgpack/msgpack, framing of its own. Both
// dialects, and from one to the other.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';

import { decode, encode } from '@msgpack/msgpack';

import { daemon, workplace } from './bus.mjs';

const TOOL_RESULT = 4;
const ERROR_REPORT = 10;
const CONTROL = 9;
const ARTIFACT = 5;
const METRICS = 3001;
const DECISION = 3006;
const DROP_NOTICE = 3007;

const TYPES = {
    [CONTROL]: 'intent.control.v1',
    [ARTIFACT]: 'artifact.generic.v1',
    [DECISION]: 'toolresult.action.decision.v1',
};

// The daemon with these keys of "rmp".
async function startBus(t, rmp = {}) {
    const dir = workplace();
    const address = path.join(dir, 'rmp.sock');
    const config = path.join(dir, 'config.json');

    fs.writeFileSync(config, JSON.stringify({ rmp: { socket_path: address, ...rmp } }));
    const bus = spawn(daemon, ['--config', config], { stdio: ['ignore', 'inherit', 'pipe'] });
    const exit = once(bus, 'exit');
    t.after(() => bus.kill('SIGKILL'));
    let log = '';
    await new Promise((resolve, reject) => {
        bus.stderr.on('data', (chunk) => {
            log += chunk;
            if (/listening on /.test(log))
                resolve();
        });
        exit.then(() => reject(new Error(`the daemon has ended:\n${log}`)));
    });
    return {
        address,
        async stop() {
            bus.kill('SIGTERM');
            assert.deepEqual(await exit, [0, null], log);
            assert.ok(!fs.existsSync(address));
        },
    };
}

function bytesOfId(id) {
    return Buffer.from(id.toString(16).padStart(32, '0'), 'hex');
}

// The bytes of a frame without its prefix.
function frameOf({ schema, payload, meta, created = Date.now(), ttl = 30000, trace = 1n,
    id = 1n }) {
    const envelope = { type: TYPES[schema], payload };
    const body = encode(meta === undefined ? envelope : { ...envelope, meta },
        { useBigInt64: true });
    const header = Buffer.alloc(64);

    header.write('RMP0');
    header.writeUInt16BE(64, 6);
    header.writeUInt16BE(schema, 12);
    header.writeUInt32BE(body.length, 16);
    header.writeBigUInt64BE(BigInt(created), 20);
    header.writeBigUInt64BE(BigInt(ttl), 28);
    bytesOfId(trace).copy(header, 36);
    header.writeBigUInt64BE(id, 52);
    return Buffer.concat([header, body]);
}

function readFrame(bytes) {
    assert.equal(bytes.readUInt16BE(4), 0);
    assert.equal(bytes.readUInt16BE(6), 64);
    assert.equal(bytes.readUInt32BE(16), bytes.length - 64);
    return {
        bytes,
        schema: bytes.readUInt16BE(12),
        ttl: bytes.readBigUInt64BE(28),
        trace: BigInt(`0x${bytes.toString('hex', 36, 52)}`),
        id: bytes.readBigUInt64BE(52),
        ...decode(bytes.subarray(64), { useBigInt64: true }),
    };
}

class Client {
    static async connect(t, bus) {
        const client = new Client();

        client.socket = net.connect(bus.address);
        client.socket.on('error', () => {});
        t.after(() => client.socket.destroy());
        await once(client.socket, 'connect');
        client.frames = client.read();
        return client;
    }

    async *read() {
        let input = Buffer.alloc(0);

        for await (const chunk of this.socket) {
            input = Buffer.concat([input, chunk]);
            while (input.length >= 4 && input.length >= 4 + input.readUInt32BE(0)) {
                const end = 4 + input.readUInt32BE(0);

                yield input.subarray(4, end);
                input = input.subarray(end);
            }
        }
    }

    send(payload) {
        const prefix = Buffer.alloc(4);

        prefix.writeUInt32BE(payload.length);
        this.socket.write(Buffer.concat([prefix, payload]));
    }

    // A frame, as readFrame has it, or the value of a JSON text.
    async next() {
        const { value, done } = await this.frames.next();

        if (done)
            return undefined;
        return value[0] === 0x52 ? readFrame(value) : JSON.parse(value.toString());
    }

    async ask(frame) {
        this.send(frameOf(frame));
        return this.next();
    }

    async control(payload) {
        const answer = await this.ask({ schema: CONTROL, payload, trace: 77n });

        assert.equal(answer.trace, 77n);
        assert.equal(answer.schema, TOOL_RESULT, JSON.stringify(answer.payload));
        assert.equal(answer.payload.op, payload.op);
        assert.equal(answer.payload.ok, true);
        return answer.payload;
    }

    async command(value) {
        this.send(Buffer.from(JSON.stringify(value)));
        return this.next();
    }

    subscribe(topic) {
        return this.control({ op: 'subscribe', topic });
    }

    publish(topic, id, other = {}) {
        return this.ask({ schema: ARTIFACT, payload: { n: 1 }, meta: { topic, ack: true }, id,
            ...other });
    }

    publishCommand(topic, id, other = {}) {
        const header = { header_version: 0, header_len: 64, flags: 0, schema_id: ARTIFACT,
            body_len: 0, created_at_ms: Date.now(), ttl_ms: 30000, trace_id: 5, msg_id: id,
            ...other };
        const body = [...encode({ type: TYPES[ARTIFACT], payload: { text: 'json' } })];

        return this.command({ Publish: { id, topic, message: { header, body } } });
    }
}

test('hello, subscribe and publish in frames', async (t) => {
    const bus = await startBus(t);
    const [one, two] = [await Client.connect(t, bus), await Client.connect(t, bus)];

    assert.equal((await one.control({ op: 'hello', kind: 'agent' })).kind, 'agent');
    await one.subscribe('a/b');
    const frame = frameOf({ schema: ARTIFACT, payload: new Uint8Array([1, 2, 3]),
        meta: { topic: 'a/b', tags: ['x', null, 1.5, -1, { y: 2n ** 60n }] },
        trace: 2n ** 128n - 1n, id: 2n ** 64n - 1n });
    two.send(frame);
    const got = await one.next();
    assert.deepEqual(got.bytes, frame);
    assert.deepEqual([...got.payload], [1, 2, 3]);
    assert.equal(got.trace, 2n ** 128n - 1n);
    await bus.stop();
});

test('hello, subscribe and publish in JSON', async (t) => {
    const bus = await startBus(t);
    const client = await Client.connect(t, bus);

    assert.equal(await client.command({ Hello: { kind: 'Agent' } }), 'HelloAck');
    assert.deepEqual(await client.command({ Subscribe: { id: 2, topic: 'a/b', sub_id: 9 } }),
        { SubscribeAck: { id: 2, result: { Ok: null } } });
    const { Message: message } = await client.publishCommand('a/b', 3);
    assert.equal(message.sub_id, 9);
    assert.deepEqual(decode(Uint8Array.from(message.message.body)),
        { type: TYPES[ARTIFACT], payload: { text: 'json' } });
    assert.deepEqual(await client.next(), { PublishAck: { id: 3, result: { Ok: null } } });
    client.send(Buffer.from('{"Unsubscribe":{"sub_id":9}}'));
    assert.deepEqual(await client.publishCommand('a/b', 4),
        { PublishAck: { id: 4, result: { Ok: null } } });
    await bus.stop();
});

test('from one dialect to the other', async (t) => {
    const bus = await startBus(t);
    const [frames, json] = [await Client.connect(t, bus), await Client.connect(t, bus)];

    await frames.subscribe('t');
    await json.command({ Subscribe: { id: 1, topic: 't', sub_id: 1 } });
    const message = await json.publishCommand('t', 21);
    assert.equal(message.Message.message.header.msg_id, 21);
    assert.equal((await json.next()).PublishAck.id, 21);
    const got = await frames.next();
    assert.equal(got.id, 21n);
    assert.deepEqual(got.payload, { text: 'json' });
    frames.send(frameOf({ schema: ARTIFACT, payload: { n: 3 }, meta: { topic: 't' }, id: 22n }));
    assert.equal((await frames.next()).id, 22n);
    const { header, body } = (await json.next()).Message.message;
    assert.equal(header.msg_id, 22);
    assert.deepEqual(decode(Uint8Array.from(body)),
        { type: TYPES[ARTIFACT], payload: { n: 3 }, meta: { topic: 't' } });
    await bus.stop();
});

test('duplicates and expired messages are dropped with notices', async (t) => {
    const bus = await startBus(t);
    const [publisher, subscriber, watcher] = [await Client.connect(t, bus),
        await Client.connect(t, bus), await Client.connect(t, bus)];

    await watcher.subscribe('rlp/sys/drops');
    await subscriber.subscribe('t');
    for (const id of [1n, 1n, 2n])
        assert.equal((await publisher.publish('t', id, { trace: 5n })).payload.ok, true);
    assert.equal((await subscriber.next()).id, 1n);
    assert.equal((await subscriber.next()).id, 2n);
    let notice = await watcher.next();
    assert.equal(notice.schema, DROP_NOTICE);
    assert.equal(notice.type, 'error.bus.drop.notice.v1');
    assert.equal(notice.trace, 5n);
    assert.equal(notice.ttl, 5000n);
    assert.equal(notice.payload.reason, 'duplicate');
    assert.equal(notice.payload.topic, 't');
    assert.deepEqual(Buffer.from(notice.payload.trace_id), bytesOfId(5n));
    assert.equal(Number(notice.payload.msg_id), 1);

    const late = await publisher.publish('t', 3n, { created: 1000, ttl: 5, trace: 6n });
    assert.equal(late.schema, ERROR_REPORT);
    assert.equal(late.type, 'error.report.v1');
    assert.equal(late.payload.code, 'Expired');
    assert.equal(late.trace, 6n);
    notice = await watcher.next();
    assert.equal(notice.payload.reason, 'ttl_expired');
    assert.equal(Number(notice.payload.expires_at_ms), 1005);
    assert.deepEqual(decode(notice.payload.body).payload, { n: 1 });
    assert.deepEqual(await publisher.publishCommand('t', 4, { created_at_ms: 1000, ttl_ms: 5 }),
        { PublishAck: { id: 4, result: { Err: 'MessageExpired' } } });
    await bus.stop();
});

test('decisions are for users', async (t) => {
    for (const users of [undefined, [process.getuid()]]) {
        const bus = await startBus(t, users ? { ui_uids: users } : {});
        const client = await Client.connect(t, bus);
        const kind = users ? 'ui' : 'agent';

        assert.equal((await client.control({ op: 'hello', kind: 'ui' })).kind, kind);
        const answer = await client.ask({ schema: DECISION, payload: { ok: true },
            meta: { topic: 'action.decision', ack: true } });
        if (users)
            assert.equal(answer.payload.ok, true);
        else
            assert.equal(answer.payload.code, 'Forbidden');
        assert.equal((await client.publish('rlp/sys/metrics', 9n)).payload.code, 'Forbidden');
        await bus.stop();
    }
});

test('metrics', async (t) => {
    const bus = await startBus(t, { metrics_interval_ms: 20 });
    const [client, publisher] = [await Client.connect(t, bus), await Client.connect(t, bus)];

    await client.subscribe('rlp/sys/metrics');
    for (let id = 1n; id <= 3n; id++)
        await publisher.publish('nobody', id);
    for (let received = 0; received < 3;) {
        const { schema, type, payload } = await client.next();

        assert.equal(schema, METRICS);
        assert.equal(type, 'observation.metrics.snapshot.v1');
        assert.equal(Number(payload.v), 1);
        assert.equal(payload.scope, 'system');
        assert.equal(Number(payload.interval_ms), 20);
        assert.deepEqual(Object.keys(payload.labels), ['executor_id', 'node_id']);
        received = Number(payload.counters.msgs_recv_total);
    }
    await bus.stop();
});

test('what is wrong in a frame is reported, and the next one is read', async (t) => {
    const bus = await startBus(t);
    const client = await Client.connect(t, bus);
    const good = frameOf({ schema: ARTIFACT, payload: {}, meta: { topic: 't', ack: true } });
    const wrong = [['InvalidHeaderFlags', 11, 1], ['UnknownSchema', 12, 255],
        ['BodyDecodeError', 64, 0xc1]];

    for (const [code, offset, byte] of wrong) {
        const bad = Buffer.from(good);
        bad[offset] = byte;
        client.send(bad);
        assert.equal((await client.next()).payload.code, code);
    }
    client.send(good);
    assert.equal((await client.next()).payload.ok, true);
    client.send(Buffer.concat([Buffer.from('RMP1'), good.subarray(4)]));
    assert.equal((await client.next()).payload.code, 'InvalidMagic');
    assert.equal(await client.next(), undefined);
    await bus.stop();
});
