// One server of the handshake era for 20 clients, all of the official library 1.x. The server's
// questions name no client: they reach the one that alone can be meant, or are refused.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { withBus } from './bus.mjs';
import { Person } from './mcp_person.mjs';
import { SocketTransport } from './socket_transport.mjs';

const MANY = 20;
const timeout = 120000;
const pool = { command: process.execPath, args: [path.resolve('asking_server.mjs')],
    protocol: 'mcp', clients: 'sticky' };
const replies = { sampling: (name) => `${name} samples`, elicitation: (name) => `${name} fills in`,
    roots: (name) => name };
const kinds = Object.keys(replies);

async function ask(counts, person, kind, together, token) {
    const { isError, content: [{ text }] } = await person.client.callTool(
        { name: 'ask', arguments: { kind, together, token } }, undefined,
        token ? { onprogress() {} } : {});

    if (!isError)
        counts[text === replies[kind](person.name) ? 'reached' : 'wrong']++;
    else if (/-32000/.test(text))
        counts.refused++;
    else
        throw new Error(text);
}

// What becomes of a question of each kind for each client.
async function outcomes(people, how) {
    const counts = { reached: 0, refused: 0, wrong: 0 };
    await how((person, kind, { together = 1, token = false } = {}) =>
        ask(counts, person, kind, together, token), people);
    return counts;
}

const oneByOne = async (ask, people) => {
    for (const person of people) {
        for (const kind of kinds)
            await ask(person, kind);
    }
};
const atOnce = (options) => (ask, people) => Promise.all(people.flatMap((person) =>
    kinds.map((kind) => ask(person, kind, options))));

test(`questions of one server to ${MANY} clients`, { timeout }, (t) => withBus(t, pool, 'unix',
    async (bus) => {
        const people = await Promise.all(Array.from({ length: MANY }, (_, i) =>
            new Person(`person${i}`).connect(new SocketTransport(bus.address))));
        const all = MANY * kinds.length;
        const table = [
            ['one after the other', oneByOne, all],
            ['all at once', atOnce({ together: all }), 0],
            ['all at once, with the token of the call', atOnce({ together: all, token: true }),
                all],
            ['as they come', atOnce(), undefined],
        ];
        let asked = 0;

        for (const [title, how, expected] of table) {
            const { reached, refused, wrong } = await outcomes(people, how);
            t.diagnostic(`${title}: ${reached} reached, ${refused} refused, ${wrong} wrong`);
            assert.equal(wrong, 0);
            assert.equal(reached + refused, all);
            assert.equal(reached, expected ?? reached);
            asked += reached;
        }
        assert.equal(people.reduce((sum, person) => sum + person.asked.length, 0), asked);
        assert.equal(bus.workers().length, 1);
        await Promise.all(people.map((person) => person.close()));
    }));
