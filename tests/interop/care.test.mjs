// An agent that looks after shared servers: official clients of both eras with `stdio_bus ctl
// --mcp`, while another client uses the server.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { daemon, workplace } from './bus.mjs';
import { Person, STATELESS } from './eras_person.mjs';

const timeout = 300000;
const everything = path.resolve(
    'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

async function join(t, env, args, mode) {
    const person = new Person('person', mode);
    t.after(() => person.client.close().catch(() => {}));
    return person.connect(new StdioClientTransport({ command: daemon, args, env,
        stderr: 'ignore' }));
}

for (const mode of ['legacy', { pin: STATELESS }]) {
    const era = mode === 'legacy' ? 'with' : 'without';
    test(`an agent ${era} a handshake restarts and stops a server`, { timeout }, async (t) => {
        const place = workplace();
        const env = { ...process.env, XDG_RUNTIME_DIR: place, XDG_CACHE_HOME: place,
            SECRET_TOKEN: 'verysecret' };
        const user = await join(t, env, ['--share=tools', '--idle-exit', '1', '--',
            process.execPath, everything], 'legacy');
        const agent = await join(t, env, ['ctl', '--mcp'], mode);
        assert.equal(agent.stateless, mode !== 'legacy');

        const { tools } = await agent.client.listTools();
        const hints = Object.fromEntries(tools.map(({ name, annotations }) =>
            [name, annotations.readOnlyHint]));
        assert.deepEqual(hints, { list: true, status: true, logs: true, restart: false,
            stop: false });

        const listed = await agent.client.callTool({ name: 'list', arguments: {} });
        assert.deepEqual(listed.structuredContent, JSON.parse(listed.content[0].text));
        const [{ name, state, clients }] = listed.structuredContent.servers;
        assert.match(name, /^tools@/);
        assert.equal(state, 'awake');
        assert.equal(clients, 1);
        assert.ok(!JSON.stringify(listed).includes('verysecret'));

        assert.match(await agent.call('restart', { name }), /restarted: .* 1 client stays/);
        assert.equal(await user.call('echo', { message: 'one' }), 'Echo: one');
        assert.match(await agent.call('stop', { name }), /stopped/);
        const status = await agent.client.callTool({ name: 'status', arguments: { name } });
        assert.equal(status.structuredContent.state, 'asleep');
        assert.equal(await user.call('echo', { message: 'two' }), 'Echo: two');
        assert.match(await agent.call('logs', { name, lines: 20 }), /a message needs it/);

        const wrong = await agent.client.callTool({ name: 'stop', arguments: { name: 'x' } });
        assert.equal(wrong.isError, true);
        assert.match(wrong.content[0].text, /there is tools@/);
        await assert.rejects(agent.client.callTool({ name: 'fly', arguments: {} }),
            /no such tool/);
    });
}
