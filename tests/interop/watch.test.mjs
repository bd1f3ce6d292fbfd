// A server in TypeScript under tsx, which is written while its clients stay: stdio_bus --share
// --watch. The time from the change of the file until a client has the new list is printed.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { daemon, workplace } from './bus.mjs';
import { Person } from './eras_person.mjs';

const timeout = 300000;
const rounds = 5;
const tsx = path.resolve('node_modules/tsx/dist/cli.mjs');

// Its tool has this name, and says so.
const server = (name) => `
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

interface Said { content: { type: 'text'; text: string }[] }

const say = (text: string): Said => ({ content: [{ type: 'text', text }] });
const server: McpServer = new McpServer({ name: 'typed', version: '1.0.0' });

server.registerTool('${name}', {}, () => say('${name}'));
await server.connect(new StdioServerTransport());
`;

// Below the working directory, where the packages are.
function source(t) {
    const directory = mkdtempSync(path.resolve('watch-'));
    t.after(() => rmSync(directory, { recursive: true }));
    return path.join(directory, 'server.mts');
}

async function until(person, name) {
    const names = async () => (await person.client.listTools()).tools.map((tool) => tool.name);
    const end = Date.now() + 60000;
    while (person.changes() === 0 && Date.now() < end)
        await new Promise((done) => { setTimeout(done, 5); });
    assert.deepEqual(await names(), [name]);
    person.heard.length = 0;
}

test('a changed tool is there without a reconnect', { timeout }, async (t) => {
    const place = workplace();
    const env = { ...process.env, XDG_RUNTIME_DIR: place, XDG_CACHE_HOME: place };
    const file = source(t);
    const times = [];
    const join = async () => {
        const person = new Person('person', 'legacy');
        t.after(() => person.client.close().catch(() => {}));
        return person.connect(new StdioClientTransport({ command: daemon, env, stderr: 'ignore',
            args: ['--share', '--idle-exit', '1', '--watch', path.dirname(file), '--',
                process.execPath, tsx, file] }));
    };

    writeFileSync(file, server('tool0'));
    const people = [await join(), await join()];
    for (const person of people)
        assert.equal(await person.call('tool0'), 'tool0');
    for (let i = 1; i <= rounds; i++) {
        const began = performance.now();
        writeFileSync(file, server(`tool${i}`));
        await until(people[0], `tool${i}`);
        times.push(performance.now() - began);
        await until(people[1], `tool${i}`);
        for (const person of people)
            assert.equal(await person.call(`tool${i}`), `tool${i}`);
    }
    assert.equal(readFileSync(file, 'utf8'), server(`tool${rounds}`));
    times.sort((a, b) => a - b);
    t.diagnostic(`from the change to the new list: median ${times[rounds >> 1].toFixed(0)} ms, ` +
        `at most ${times[rounds - 1].toFixed(0)} ms`);
});
