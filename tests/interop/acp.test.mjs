// An ACP agent and clients, both made with the official library: without the daemon, then through
// it, where 10 clients with 3 sessions each share 2 agents.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { AcpPerson, overProcess, overSocket } from './acp_person.mjs';
import { MODES, configure, daemon, quick, withBus, workplace } from './bus.mjs';
import { leftOf } from './processes.mjs';

const CLIENTS = quick ? 4 : 10;
const SESSIONS = 3;
const CHUNKS = 20;
const timeout = 120000;
const agent = path.resolve('acp_agent.mjs');

function pool(t) {
    return { command: process.execPath, args: [agent], env: { ACP_STATE: workplace() },
        protocol: 'acp', instances: 2 };
}

const ways = {
    socket: (bus) => overSocket(bus.address),
    connect: (bus) => overProcess(daemon, ['--connect', bus.address]),
};

// A complete turn: streaming, permission, a file of the client.
async function wholeTurn(person, sessionId) {
    const say = `${person.name} in ${sessionId}`;
    const reason = await person.prompt(sessionId,
        { say, chunks: CHUNKS, permission: say, read: `/file of ${say}` });
    assert.equal(reason, 'end_turn');
    assert.deepEqual(person.texts(sessionId), [
        ...Array.from({ length: CHUNKS }, (_, i) => `${say} ${i}`),
        `allow ${say}`, `${person.name} has /file of ${say}`]);
}

// session/cancel: the agent cancels its question, and the turn ends.
async function cancelledTurn(person, sessionId) {
    const asked = person.permissions.length;
    person.answersPermission = false;
    const reason = person.prompt(sessionId, { permission: 'never mind' });
    await person.asked(asked + 1);
    await person.cancel(sessionId);
    assert.equal(await reason, 'cancelled');
    assert.deepEqual(person.texts(sessionId), ['cancelled']);
    person.answersPermission = true;
}

// $/cancel_request names the request by its id.
async function cancelledRequest(person, sessionId) {
    const controller = new AbortController();
    const say = `${person.name} waits`;
    const reason = person.prompt(sessionId, { say, chunks: 1, wait: true },
        { cancellationSignal: controller.signal });
    await person.hears(sessionId, `${say} 0`);
    controller.abort();
    await assert.rejects(reason, { code: -32800 });
    person.texts(sessionId);
}

async function loadedSession(person, connectAgain) {
    const sessionId = await person.newSession();
    await person.prompt(sessionId, { say: 'before', chunks: 3 });
    await person.close();
    const again = await connectAgain();
    await again.load(sessionId);
    assert.deepEqual(again.texts(sessionId), ['before 0', 'before 1', 'before 2']);
    await wholeTurn(again, sessionId);
    return again;
}

async function alone(connectAgain) {
    const person = await connectAgain();
    const sessions = [];

    for (let i = 0; i < SESSIONS; i++)
        sessions.push(await person.newSession());
    await Promise.all(sessions.map((sessionId) => wholeTurn(person, sessionId)));
    await cancelledTurn(person, sessions[0]);
    await cancelledRequest(person, sessions[1]);
    await wholeTurn(person, sessions[1]);
    await (await loadedSession(person, connectAgain)).close();
}

test('without the daemon', { timeout }, async (t) => {
    const env = pool(t).env;
    await alone(() => new AcpPerson('alice').connect(
        overProcess(process.execPath, [agent], env)));
});

test('stdio', { timeout }, async (t) => {
    const config = configure(workplace(), pool(t));
    await alone(() => new AcpPerson('alice').connect(overProcess(daemon, ['--config', config])));
});

for (const way of Object.keys(ways)) {
    test(`alone, ${way}`, { timeout }, (t) => withBus(t, pool(t), 'unix',
        (bus) => alone(() => new AcpPerson('alice').connect(ways[way](bus)))));
}

for (const mode of MODES) {
    test(`${CLIENTS} clients with ${SESSIONS} sessions each, all at once, ${mode}`, { timeout },
        (t) => withBus(t, pool(t), mode, async (bus) => {
            const people = await Promise.all(Array.from({ length: CLIENTS }, (_, i) =>
                new AcpPerson(`person${i}`).connect(ways.socket(bus))));
            assert.equal(new Set(people.map(({ pid }) => pid)).size, 2, 'agents used');
            const sessions = await Promise.all(people.map((person) =>
                Promise.all(Array.from({ length: SESSIONS }, () => person.newSession()))));
            const everywhere = (act) => Promise.all(people.map((person, i) =>
                Promise.all(sessions[i].map((sessionId) => act(person, sessionId)))));

            for (let round = 0; round < 3; round++)
                await everywhere(wholeTurn);
            // Each client has a cancelled turn, a cancelled request, and a turn that continues.
            await Promise.all(people.map(async (person, i) => {
                const [first, second, third] = sessions[i];
                await Promise.all([cancelledRequest(person, second),
                    cancelledTurn(person, first)]);
                await wholeTurn(person, third);
            }));
            await Promise.all(people.map((person) => person.close()));
        }));
}

test('sessions are loaded by other clients while all work', { timeout },
    (t) => withBus(t, pool(t), 'unix', async (bus) => {
        const connect = (name) => new AcpPerson(name).connect(ways.socket(bus));
        const again = await Promise.all(Array.from({ length: CLIENTS }, async (_, i) =>
            loadedSession(await connect(`person${i}`), () => connect(`heir${i}`))));
        await Promise.all(again.map((person) => person.close()));
    }));

test('an agent is killed in the middle of its prompts', { timeout },
    (t) => withBus(t, pool(t), 'unix', async (bus) => {
        const people = await Promise.all(Array.from({ length: 4 }, (_, i) =>
            new AcpPerson(`person${i}`).connect(ways.socket(bus))));
        const victim = people[0].pid;
        const outcomes = await Promise.all(people.map(async (person) => {
            const sessionId = await person.newSession();
            const outcome = person.prompt(sessionId, { say: 'begun', chunks: 1, wait: true })
                .catch((error) => error);
            await person.hears(sessionId, 'begun 0');
            return { person, sessionId, outcome };
        }));
        process.kill(victim, 'SIGKILL');
        assert.deepEqual(await leftOf([victim]), []);
        for (const { person, sessionId, outcome } of outcomes) {
            if (person.pid === victim) {
                assert.equal((await outcome).code, -32000);
                // The restarted agent knows no client; it has the stored sessions.
                await person.initialize();
                assert.notEqual(person.pid, victim);
                await person.load(sessionId);
                assert.deepEqual(person.texts(sessionId), ['begun 0']);
                await wholeTurn(person, await person.newSession());
            } else {
                await person.cancel(sessionId);
                assert.equal(await outcome, 'cancelled');
            }
            await person.close();
        }
    }));
