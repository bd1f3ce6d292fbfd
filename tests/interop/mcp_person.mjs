// Somebody at the official MCP client, with a name that is in everything they say and answer, so
// that whatever reaches the wrong one shows.

import assert from 'node:assert/strict';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import * as types from '@modelcontextprotocol/sdk/types.js';

const capabilities = {
    sampling: {},
    elicitation: { form: {}, url: {} },
    tasks: { requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};

// The library may have dealt with an answer before it gets to the progress message in front of it,
// and a server may still be at something that was cancelled.
const UNKNOWN_TOKEN = /progress notification for an unknown token/;

export class Person {
    static count = 0;

    // Without roots the client does not offer to tell of any.
    constructor(name, roots = [{ uri: `file:///home/${name}`, name }]) {
        this.name = name;
        this.roots = roots;
        this.number = Person.count++;
        this.progress = []; // the parameters of such messages, as they came
        this.heard = []; // notifications
        this.asked = []; // requests of the server
        this.errors = [];
        this.tasks = new InMemoryTaskStore();
        this.client = new Client({ name, version: '1.0.0' },
            { capabilities: roots ? { ...capabilities, roots: { listChanged: true } } :
                capabilities, taskStore: this.tasks });
        this.client.onerror = (error) => this.errors.push(error);
        this.client.fallbackNotificationHandler = async (note) => this.heard.push(note);
        if (roots)
            this.#answer(types.ListRootsRequestSchema, () => ({ roots: this.roots }));
        this.#answer(types.CreateMessageRequestSchema, () => ({
            model: 'test', role: 'assistant', stopReason: 'endTurn',
            content: { type: 'text', text: `${name} samples` },
        }));
        this.#answer(types.ElicitRequestSchema, ({ mode }) => ({
            action: 'accept', ...(mode === 'url' ? {} : { content: { name: `${name} fills in` } }),
        }));
    }

    // Where a task is asked for, the answer comes by the task's way.
    #answer(schema, make) {
        this.client.setRequestHandler(schema, async (request, extra) => {
            this.asked.push(request);
            const result = make(request.params ?? {});
            if (!request.params?.task)
                return result;
            const task = await extra.taskStore.createTask({ ttl: 60000, pollInterval: 100 });
            await extra.taskStore.storeTaskResult(task.taskId, 'completed', result);
            return { task };
        });
    }

    async connect(transport) {
        await this.client.connect(transport);
        const receive = transport.onmessage;
        transport.onmessage = (message, ...rest) => {
            if (message.method === 'notifications/progress')
                this.progress.push(message.params);
            receive(message, ...rest);
        };
        return this;
    }

    async close() {
        await this.client.close();
        this.tasks.cleanup();
        const errors = this.errors.filter(({ message }) => !UNKNOWN_TOKEN.test(message));
        assert.deepEqual(errors, [], `${this.name}: errors of the client library`);
    }

    async call(name, args = {}, options = undefined) {
        const result = await this.client.callTool({ name, arguments: args }, undefined, options);
        assert.notEqual(result.isError, true, JSON.stringify(result).slice(0, 500));
        return result;
    }

    async text(name, args, options) {
        return (await this.call(name, args, options)).content.map(({ text }) => text).join('\n');
    }

    // A tool that is a task.
    async task(name, args) {
        const stream = this.client.experimental.tasks.callToolStream({ name, arguments: args });
        for await (const message of stream) {
            if (message.type === 'error')
                throw message.error;
            if (message.type === 'result')
                return message.result.content.map(({ text }) => text).join('\n');
        }
        throw new Error('the task has ended without a result');
    }

    // Resolves with the first notification from the `from`th on that fits.
    async hears(method, fits = () => true, from = 0, deadline_ms = 20000) {
        const end = Date.now() + deadline_ms;
        for (;;) {
            const note = this.heard.slice(from)
                .find((note) => note.method === method && fits(note.params ?? {}));
            if (note)
                return note;
            assert.ok(Date.now() < end, `${this.name} does not hear ${method}`);
            await new Promise((resolve) => setTimeout(resolve, 10));
        }
    }
}
