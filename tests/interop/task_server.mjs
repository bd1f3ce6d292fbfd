// A server of the official library 1.x with a tool that runs as a task: after its answer it reports
// progress, asks the client, and reports more. All its messages contain the argument `name`.

import { InMemoryTaskMessageQueue, InMemoryTaskStore } from
    '@modelcontextprotocol/sdk/experimental/tasks';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const STEPS = 6;
const server = new McpServer({ name: 'tasks', version: '1.0.0' }, {
    capabilities: { tasks: { requests: { tools: { call: {} } }, list: {}, cancel: {} } },
    taskStore: new InMemoryTaskStore(),
    taskMessageQueue: new InMemoryTaskMessageQueue(),
});

async function run(taskId, name, extra) {
    let answer;

    for (let progress = 1; progress <= STEPS; progress++) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        await extra.sendNotification({ method: 'notifications/progress', params:
            { progressToken: extra._meta.progressToken, progress, total: STEPS, message: name } });
        if (progress === STEPS / 2) {
            await extra.taskStore.updateTaskStatus(taskId, 'input_required', name);
            answer = await extra.sendRequest({ method: 'elicitation/create', params: {
                message: name, requestedSchema: { type: 'object',
                    properties: { name: { type: 'string' } } } } },
                ElicitResultSchema, { relatedTask: { taskId } });
        }
    }
    await extra.taskStore.storeTaskResult(taskId, 'completed',
        { content: [{ type: 'text', text: `${name}: ${answer.content.name}` }] });
}

server.experimental.tasks.registerToolTask('work',
    { inputSchema: { name: z.string() }, execution: { taskSupport: 'required' } }, {
        async createTask({ name }, extra) {
            const task = await extra.taskStore.createTask({ ttl: 60000, pollInterval: 20 });
            run(task.taskId, name, extra).catch((error) =>
                extra.taskStore.updateTaskStatus(task.taskId, 'failed', String(error)));
            return { task };
        },
        getTask: (args, extra) => extra.taskStore.getTask(extra.taskId),
        getTaskResult: (args, extra) => extra.taskStore.getTaskResult(extra.taskId),
    });
await server.connect(new StdioServerTransport());
