// A user of the official MCP client. All its messages contain its name, so that a message for
// another client is recognized.

import assert from 'node:assert/strict';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import * as types from '@modelcontextprotocol/sdk/types.js';

const capabilities = {
    sampling: {},
    elicitation: { form: {}, url: {} },
    tasks: { requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};

// The library may handle an answer before the progress message that came first, and a server may
// still work on a cancelled request.
const UNKNOWN_TOKEN = /progress notification for an unknown token/;
// A question of the server, for roots for instance, may come while the client leaves.
const LEFT_A_QUESTION = /^Failed to send response: Error: Not connected/;
// A second after a stream has ended the library asks for it again, be it while its session ends.
const NO_SUCH_STREAM = /Failed to open SSE stream: Not Found$/;

export class Person {
    static count = 0;

    // Without roots the client does not announce the capability.
    constructor(name, roots = [{ uri: `file:///home/${name}`, name }]) {
        this.name = name;
        this.roots = roots;
        this.number = Person.count++;
        this.progress = []; // the parameters of progress messages, in order
        this.heard = []; // notifications
        this.asked = []; // requests of the server
        this.errors = [];
        this.tasks = new InMemoryTaskStore();
        this.client = new Client({ name, version: '1.0.0' },
            { capabilities: roots ? { ...capabilities, roots: { listChanged: true } } :
                capabilities, taskStore: this.tasks });
        this.ended = false; // its session, by a DELETE
        this.closes = false; // then it aborts what it has not got yet
        this.client.onerror = (error) => {
            if (!this.closes || error.name !== 'AbortError')
                this.errors.push(error);
        };
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

    // If a task is requested, the answer comes as the result of the task.
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
        this.closes = true;
        await this.client.close();
        this.tasks.cleanup();
        const errors = this.errors.filter(({ message }) => !UNKNOWN_TOKEN.test(message) &&
            !LEFT_A_QUESTION.test(message) && !(this.ended && NO_SUCH_STREAM.test(message)));
        assert.deepEqual(errors, [], `${this.name}: errors of the client library`);
    }

    // Ends its session, and closes.
    async end() {
        this.ended = true;
        await this.client.transport.terminateSession();
        await this.close();
    }

    async call(name, args = {}, options = undefined) {
        const result = await this.client.callTool({ name, arguments: args }, undefined, options);
        assert.notEqual(result.isError, true, JSON.stringify(result).slice(0, 500));
        return result;
    }

    async text(name, args, options) {
        return (await this.call(name, args, options)).content.map(({ text }) => text).join('\n');
    }

    // Calls a tool as a task.
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

    // Resolves with the first notification that matches, from number `from` on.
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
