// Servers from npm with the official client: without the daemon, then through it, with a server for
// each client, with one server for all, and with servers that are killed.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { MANY, again, daemon, withBus, workplace } from './bus.mjs';
import { Person } from './mcp_person.mjs';
import { SocketTransport } from './socket_transport.mjs';

const TOOLS = 18; // of server-everything, to a client with all capabilities
const BIG = 'äöü "\\ 0123456789\n'.repeat(1 << 20).slice(0, 5 << 20);
const timeout = 120000;

function script(server) {
    return path.resolve(`node_modules/@modelcontextprotocol/${server}/dist/index.js`);
}

function started(command, args, env = {}) {
    return new StdioClientTransport({ command, args, env: { ...process.env, ...env },
        stderr: 'ignore' });
}

// A directory for each person, named after the person.
function homes(t, count) {
    const base = fs.realpathSync(workplace());
    return Array.from({ length: count }, (_, i) => {
        const home = path.join(base, `person${i}`);
        fs.mkdirSync(home);
        return home;
    });
}

// Waits until the server has asked for its allowed directories, if it does.
async function settled(person, allowed) {
    for (let i = 0; i < 200; i++) {
        if ((await person.text('list_allowed_directories')).includes(allowed))
            return;
        await new Promise((resolve) => setTimeout(resolve, 25));
    }
    assert.fail(`${person.name} may not work in ${allowed}`);
}

async function useFiles(person, home, allowed = home) {
    const file = path.join(home, 'notes.txt'), moved = path.join(home, 'sub', 'moved.txt');
    const content = `${person.name} äöü\n`.repeat(1000);

    await settled(person, allowed);
    await person.call('write_file', { path: file, content });
    assert.equal(await person.text('read_text_file', { path: file }), content);
    await person.call('edit_file', { path: file,
        edits: [{ oldText: content, newText: `${person.name} was here\n` }] });
    await person.call('create_directory', { path: path.dirname(moved) });
    await person.call('move_file', { source: file, destination: moved });
    assert.equal(fs.readFileSync(moved, 'utf8'), `${person.name} was here\n`);
    assert.match(await person.text('directory_tree', { path: home }), /moved\.txt/);
    const texts = await Promise.all(Array.from({ length: 64 },
        () => person.text('read_multiple_files', { paths: [moved] })));
    assert.ok(texts.every((text) => text.includes(`${person.name} was here`)));
    const refused = await person.client.callTool({ name: 'read_text_file',
        arguments: { path: '/etc/hostname' } });
    assert.equal(refused.isError, true);
}

function rooted(home) {
    return new Person(path.basename(home), [{ uri: pathToFileURL(home).href, name: 'home' }]);
}

test('server-filesystem without the daemon', { timeout, skip: again }, async (t) => {
    const [home] = homes(t, 1);
    const person = await rooted(home).connect(
        started(process.execPath, [script('server-filesystem')]));
    await useFiles(person, home);
    await person.close();
});

// Each server asks its own client for its allowed directory.
test('server-filesystem, a server for each client', { timeout }, async (t) => {
    const pool = { command: process.execPath, args: [script('server-filesystem')],
        protocol: 'mcp', instances: 6 };
    await withBus(t, pool, 'unix', async (bus) => {
        await Promise.all(homes(t, 5).map(async (home, i) => {
            const person = await rooted(home).connect(i % 2 === 0 ?
                new SocketTransport(bus.address) : started(daemon, ['--connect', bus.address]));
            await useFiles(person, home);
            for (const other of ['person0', 'person1'].filter((name) => name !== person.name)) {
                const stolen = await person.client.callTool({ name: 'list_directory',
                    arguments: { path: path.join(path.dirname(home), other) } });
                assert.equal(stolen.isError, true);
            }
            await person.close();
        }));
    });
});

// The client does not notice but by notifications that its server is another process. `big` is done
// once, with the last one.
async function survives(t, pool, roots, use, { rounds = 1, processes = 1, big } = {}) {
    await withBus(t, { ...pool, protocol: 'mcp', instances: 2, spare: 0 }, 'unix', async (bus) => {
        const person = await new Person('alice', roots).connect(new SocketTransport(bus.address));
        const before = await use(person);
        for (let round = 1; round <= rounds; round++) {
            const pids = bus.workers();
            assert.ok(pids.length >= 1 && pids.length <= processes);
            process.kill(pids[0], 'SIGKILL');
            await bus.logged(new RegExp(`(restarting in[^]*){${round}}`));
            assert.deepEqual(await use(person), before);
        }
        await big?.(person);
        await person.close();
    });
}

async function sortedTools({ client }) {
    return (await client.listTools()).tools.map(({ name }) => name).sort();
}

test('server-everything is killed while idle', { timeout }, async (t) => {
    const pool = { command: process.execPath, args: [script('server-everything')] };
    await survives(t, pool, undefined, async (person) => {
        // The tools that need a client with such capabilities are registered after initialized.
        for (let i = 0; (await sortedTools(person)).length < TOOLS && i < 200; i++)
            await new Promise((resolve) => setTimeout(resolve, 25));
        assert.match(await person.text('echo', { message: 'again' }), /again/);
        assert.match(await person.text('get-roots-list'), /home\/alice/);
        return sortedTools(person);
    }, { rounds: 3 });
});

test('server-filesystem is killed while idle', { timeout }, async (t) => {
    const [home] = homes(t, 1), file = path.join(home, 'big.txt');
    const pool = { command: process.execPath, args: [script('server-filesystem')] };
    fs.writeFileSync(file, BIG);
    await survives(t, pool, [{ uri: pathToFileURL(home).href, name: 'home' }], async (person) => {
        await settled(person, home);
        return sortedTools(person);
    }, {
        rounds: 3,
        big: async (person) =>
            assert.equal(await person.text('read_text_file', { path: file }), BIG),
    });
});

// The content comes twice, as text and as structuredContent: 5 MB together.
test('server-memory is killed while idle', { timeout, skip: again }, async (t) => {
    const contents = BIG.slice(0, BIG.length / 2);
    const file = path.join(workplace(), 'memory.jsonl');
    const pool = { command: process.execPath, args: [script('server-memory')],
        env: { MEMORY_FILE_PATH: file } };
    await survives(t, pool, undefined, async (person) => {
        await remember(person);
        await recall(person, 1);
        return sortedTools(person);
    }, {
        big: async (person) => {
            await person.call('add_observations', { observations: [
                { entityName: person.name, contents: [contents] }] });
            const { structuredContent: graph } = await person.call('read_graph');
            assert.equal(graph.entities[0].observations.at(-1), contents);
        },
    });
});

test('server-sequential-thinking is killed while idle', { timeout, skip: again }, async (t) => {
    const pool = { command: process.execPath, args: [script('server-sequential-thinking')],
        env: { DISABLE_THOUGHT_LOGGING: 'true' } };
    const think = async (person, thought) => (await person.call('sequentialthinking', { thought,
        thoughtNumber: 1, totalThoughts: 2, nextThoughtNeeded: true })).structuredContent;
    await survives(t, pool, undefined, async (person) => {
        assert.equal((await think(person, 'first')).thoughtHistoryLength, 1);
        return sortedTools(person);
    }, {
        big: async (person) => assert.equal((await think(person, BIG)).thoughtHistoryLength, 2),
    });
});

// @playwright/mcp is not among the packages: PLAYWRIGHT_MCP is the path of its cli.js, and CHROMIUM
// that of a browser.
const { PLAYWRIGHT_MCP, CHROMIUM } = process.env;

test('a browser server is killed while idle', { timeout,
    skip: !(PLAYWRIGHT_MCP && CHROMIUM) && 'PLAYWRIGHT_MCP and CHROMIUM are not set' },
async (t) => {
    const pool = { command: process.execPath, args: [PLAYWRIGHT_MCP, '--headless', '--isolated',
        '--no-sandbox', '--executable-path', CHROMIUM, '--output-dir', workplace()] };
    await survives(t, pool, null, async (person) => {
        const url = 'data:text/html,<title>Noise</title><canvas width=1200 height=1000></canvas>';
        await person.call('browser_navigate', { url });
        // Noise cannot be compressed: the picture of it has megabytes.
        await person.call('browser_evaluate', { function: `() => {
            const context = document.querySelector('canvas').getContext('2d');
            const picture = context.createImageData(1200, 1000);
            for (let i = 0; i < picture.data.length; i++)
                picture.data[i] = i % 4 === 3 ? 255 : Math.random() * 256;
            context.putImageData(picture, 0, 0);
        }` });
        const { content } = await person.call('browser_take_screenshot',
            { fullPage: true, type: 'png' });
        const image = content.find(({ type }) => type === 'image');
        t.diagnostic(`a picture of ${image.data.length} bytes`);
        assert.ok(image.data.length > 3 << 20);
        return sortedTools(person);
    }, { processes: 100 });
});

test(`server-filesystem, ${MANY} clients on one server`, { timeout }, async (t) => {
    const all = homes(t, MANY);
    const pool = { command: process.execPath,
        args: [script('server-filesystem'), path.dirname(all[0])],
        protocol: 'mcp', clients: 'sticky', ids: 'rewrite' };
    await withBus(t, pool, 'tcp', async (bus) => {
        await Promise.all(all.map(async (home) => {
            const person = await new Person(path.basename(home), null)
                .connect(new SocketTransport(bus.address));
            await useFiles(person, home, path.dirname(home));
            await person.close();
        }));
    });
});

async function remember(person) {
    await person.call('create_entities', { entities: [
        { name: person.name, entityType: 'person', observations: [`${person.name} exists`] },
        { name: `${person.name}'s cat`, entityType: 'cat', observations: [] }] });
    await person.call('create_relations', { relations: [
        { from: person.name, to: `${person.name}'s cat`, relationType: 'keeps' }] });
    await person.call('add_observations', { observations: [
        { entityName: person.name, contents: ['äöü €'] }] });
}

async function recall(person, count) {
    const { structuredContent: graph } = await person.call('read_graph');
    assert.equal(graph.entities.length, 2 * count);
    assert.equal(graph.relations.length, count);
    const { structuredContent: found } = await person.call('open_nodes', { names: [person.name] });
    assert.deepEqual(found.entities, [{ name: person.name, entityType: 'person',
        observations: [`${person.name} exists`, 'äöü €'] }]);
}

function memory(file) {
    return { command: process.execPath, args: [script('server-memory')],
        env: { MEMORY_FILE_PATH: file }, protocol: 'mcp' };
}

test('server-memory without the daemon', { timeout, skip: again }, async (t) => {
    const file = path.join(workplace(), 'memory.jsonl');
    const person = await new Person('alice').connect(
        started(process.execPath, [script('server-memory')], { MEMORY_FILE_PATH: file }));
    await remember(person);
    await recall(person, 1);
    await person.close();
});

// One client after the other, each with a new server: they share the file in the pool's env.
test('server-memory, a server for each client', { timeout, skip: again }, async (t) => {
    const file = path.join(workplace(), 'memory.jsonl');
    await withBus(t, { ...memory(file), instances: 2 }, 'unix', async (bus) => {
        for (let i = 0; i < 4; i++) {
            const person = await new Person(`person${i}`).connect(
                new SocketTransport(bus.address));
            await remember(person);
            await recall(person, i + 1);
            await person.close();
        }
    });
});

// The server loses data if two clients write at once, so they take turns.
test(`server-memory, ${MANY} clients on one server`, { timeout }, async (t) => {
    const file = path.join(workplace(), 'memory.jsonl');
    const pool = { ...memory(file), clients: 'sticky', ids: 'rewrite' };
    await withBus(t, pool, 'tcp', async (bus) => {
        const people = await Promise.all(Array.from({ length: MANY },
            (_, i) => new Person(`person${i}`).connect(new SocketTransport(bus.address))));
        for (const person of people)
            await remember(person);
        await Promise.all(people.map((person) => recall(person, MANY)));
        await Promise.all(people.map((person) => person.close()));
    });
});
