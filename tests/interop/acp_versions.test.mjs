// Both versions of ACP, agents and clients made with the official library: 10 clients with 3
// sessions each, windows that take each other's sessions, turns whose clients leave.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { Acp2Person } from './acp2_person.mjs';
import { AcpPerson, overSocket } from './acp_person.mjs';
import { Store } from './acp_store.mjs';
import { again, eventually, quick, withBus, workplace } from './bus.mjs';

const CLIENTS = quick ? 4 : 10;
const SESSIONS = 3;
const CHUNKS = 20;
const timeout = 120000;
const versions = [
    { version: 1, agent: path.resolve('acp_agent.mjs'), Person: AcpPerson },
    { version: 2, agent: path.resolve('acp2_agent.mjs'), Person: Acp2Person },
];

const times = (count, make) => Promise.all(Array.from({ length: count }, (_, i) => make(i)));

// Streaming and a question. Whoever else hears of it fails at its end (`strays`, `texts`).
async function turn(person, sessionId) {
    const say = `${person.name} in ${sessionId}`;
    assert.equal(await person.prompt(sessionId, { say, chunks: CHUNKS, permission: say }),
        'end_turn');
    const heard = Array.from({ length: CHUNKS }, (_, i) => `${say} ${i}`).concat(`allow ${say}`);
    assert.deepEqual(person.texts(sessionId), heard);
    return heard;
}

async function cancelledTurn(person, sessionId) {
    const reason = person.prompt(sessionId, { say: 'begun', chunks: 1, wait: true });
    await person.hears(sessionId, 'begun 0');
    await person.cancel(sessionId);
    assert.equal(await reason, 'cancelled');
    assert.deepEqual(person.texts(sessionId), ['begun 0']);
}

for (const { version, agent, Person } of versions) {
    // With `instances` agents; `use` gets the bus, a function that connects, and what they store.
    const withAgents = (title, instances, use) => test(`ACP ${version}: ${title}`,
        { timeout, skip: version === 1 && again },
        (t) => {
            const dir = workplace();
            const pool = { command: process.execPath, args: [agent], env: { ACP_STATE: dir },
                protocol: 'acp', instances };
            return withBus(t, pool, 'unix', (bus) => use(
                (name) => new Person(name).connect(overSocket(bus.address)), new Store(dir), t));
        });

    withAgents(`${CLIENTS} clients with ${SESSIONS} sessions each`, 2, async (connect) => {
        const people = await times(CLIENTS, (i) => connect(`person${i}`));
        assert.equal(new Set(people.map(({ pid }) => pid)).size, 2, 'agents used');
        await Promise.all(people.map(async (person) => {
            const sessions = await times(SESSIONS, () => person.newSession());
            await Promise.all(sessions.map((sessionId) => turn(person, sessionId)));
            await Promise.all(sessions.map((sessionId, i) =>
                (i === 0 ? cancelledTurn : turn)(person, sessionId)));
        }));
        await Promise.all(people.map((person) => person.close()));
    });

    // From the request to load it on, nothing of a session reaches the first window.
    withAgents('a second window loads sessions while the first is there', 1,
        async (connect, store) => {
            await times(CLIENTS, async (i) => {
                const first = await connect(`first${i}`), second = await connect(`second${i}`);
                const sessions = await times(SESSIONS, () => first.newSession());
                const said = await Promise.all(sessions.map((id) => turn(first, id)));
                first.prompt(sessions[0], { say: 'begun', chunks: 1, wait: true });
                await first.hears(sessions[0], 'begun 0');
                first.texts(sessions[0]);
                said[0].push('begun 0');

                await Promise.all(sessions.map((id) => second.load(id)));
                sessions.forEach((id, n) => assert.deepEqual(second.texts(id), said[n]));
                await second.cancel(sessions[0]);
                await eventually(() => store.cancels(sessions[0]).length === 1,
                    () => 'session/cancel');
                await Promise.all(sessions.slice(1).map((id) => turn(second, id)));
                for (const id of sessions)
                    assert.deepEqual(first.texts(id), []);
                await first.close();
                await Promise.all(sessions.map((id) => turn(second, id)));
                assert.equal(store.cancels(sessions[0]).length, 1);
                await second.close();
            });
        });

    withAgents('clients leave in the middle of their turns', 2, async (connect, store, t) => {
        const people = await times(CLIENTS, (i) => connect(`person${i}`));
        const turns = await Promise.all(people.map(async (person) => {
            const sessions = await times(SESSIONS, () => person.newSession());
            const [sessionId] = sessions;
            const reason = person.prompt(sessionId, { say: 'begun', chunks: 1, wait: true })
                .catch(() => {});
            await person.hears(sessionId, 'begun 0');
            return { person, sessions, sessionId, reason };
        }));
        const gone = turns.filter((_, i) => i % 2 === 0), stay = turns.filter((_, i) => i % 2);
        const waits = await Promise.all(gone.map(async ({ person, sessionId }) => {
            const start = Date.now();
            await person.close();
            await eventually(() => store.cancels(sessionId).length > 0, () => 'session/cancel');
            return store.cancels(sessionId)[0] - start;
        }));
        t.diagnostic(`the agent was told after ${Math.max(...waits)} ms at most`);
        for (const { person, sessions, sessionId, reason } of stay) {
            assert.deepEqual(store.cancels(sessionId), []);
            await turn(person, sessions[1]);
            await person.cancel(sessionId);
            assert.equal(await reason, 'cancelled');
            await person.close();
        }
        for (const { sessions } of turns)
            assert.deepEqual(store.cancels(sessions[2]), [], 'it never had a prompt');
    });

    withAgents('questions outside of sessions', 1, async (connect) => {
        const people = await times(CLIENTS, (i) => connect(`person${i}`));
        assert.deepEqual(await Promise.all(people.map((person) => person.logIn())),
            people.map(({ name }) => `accept ${name}`));
        await Promise.all(people.map((person) => person.close()));
    });
}
