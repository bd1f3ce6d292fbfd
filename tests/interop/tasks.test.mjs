// Tasks of MCP 2025-11-25: many clients on one process, with the official library at both ends.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { withBus } from './bus.mjs';
import { Person } from './mcp_person.mjs';
import { SocketTransport } from './socket_transport.mjs';

const pool = { command: process.execPath, args: [path.resolve('task_server.mjs')],
    protocol: 'mcp', clients: 'sticky' };
const CLIENTS = 8;
const TASKS = 2; // of each client, at once
const STEPS = [1, 2, 3, 4, 5, 6];

async function runTask(person, name) {
    const seen = [];
    let task;

    for await (const message of person.client.experimental.tasks.callToolStream(
        { name: 'work', arguments: { name } }, undefined,
        { onprogress: (params) => seen.push(params) })) {
        if (message.type === 'error')
            throw message.error;
        if (message.type === 'taskCreated')
            task = message.task.taskId;
        if (message.type === 'result')
            assert.equal(message.result.content[0].text, `${name}: ${person.name} fills in`);
    }
    assert.deepEqual(seen.map(({ progress, message }) => [progress, message]),
        STEPS.map((step) => [step, name]));
    return task;
}

test('tasks of many clients on one process', { timeout: 120000 },
    (t) => withBus(t, pool, 'unix', async (bus) => {
        const all = await Promise.all(Array.from({ length: CLIENTS },
            (_, i) => new Person(`person${i}`).connect(new SocketTransport(bus.address))));
        await Promise.all(all.map(({ client }) => client.listTools()));
        const tasks = await Promise.all(all.map((person) => Promise.all(Array.from(
            { length: TASKS }, (_, i) => runTask(person, `${person.name} task ${i}`)))));

        assert.equal(bus.workers().length, 1);
        for (const [i, { name, asked, progress, heard, client }] of all.entries()) {
            assert.equal(asked.length, TASKS);
            assert.ok(asked.every(({ params }) => params.message.startsWith(`${name} `)));
            assert.ok(progress.every(({ message }) => message.startsWith(`${name} `)));
            assert.ok(heard.every(({ method, params }) =>
                method !== 'notifications/tasks/status' || tasks[i].includes(params.taskId)));
            const of = client.experimental.tasks;
            assert.equal((await of.getTask(tasks[i][0])).status, 'completed');
            const [other] = tasks[(i + 1) % CLIENTS];
            for (const ask of ['getTask', 'getTaskResult', 'cancelTask'])
                await assert.rejects(of[ask](other), { code: -32602, message: /unknown task/ });
        }
        await Promise.all(all.map((person) => person.close()));
    }));
