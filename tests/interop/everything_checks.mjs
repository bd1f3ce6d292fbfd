// The checks with server-everything: functions of a Person. `apart`: true for checks that need a
// server without other clients, since the server has one state for all clients, or its requests do
// not name a client.

import assert from 'node:assert/strict';

const uri = 'demo://resource/dynamic/text/7';

async function initialize({ client }) {
    assert.match(client.getServerVersion().name, /everything/);
    assert.ok(client.getServerCapabilities().resources.subscribe);
    assert.match(client.getInstructions(), /./);
    await client.ping();
}

async function listChanged(person) {
    await person.hears('notifications/tools/list_changed');
}

// The tools of the server by name: their arguments, and a text that the answer must contain.
const tools = {
    'echo': (person) => [{ message: `${person.name} äöü €` },
        `Echo: ${person.name} äöü €`],
    'get-annotated-message': () => [{ messageType: 'success', includeImage: true }, 'success'],
    'get-env': () => [{}, 'PATH'],
    'get-resource-links': () => [{ count: 4 }, 'Here are 4 resource links'],
    'get-resource-reference': () => [{ resourceType: 'Blob', resourceId: 3 }, 'Resource 3'],
    'get-structured-content': () => [{ location: 'Chicago' }, '82'],
    'get-sum': () => [{ a: 40, b: 2 }, 'is 42'],
    'get-tiny-image': () => [{}, 'image'],
    'gzip-file-as-resource': (person) => [{ name: `${person.name}.gz`, outputType: 'resourceLink',
        data: `data:text/plain,${person.name}` }, ''],
    'trigger-long-running-operation': () => [{ duration: 0.2, steps: 2 }, 'completed'],
};

// Tools that send requests to the client.
const askingTools = {
    'get-roots-list': (person) => [{}, `file:///home/${person.name}`],
    'trigger-sampling-request': (person) => [{ prompt: 'p', maxTokens: 9 },
        `${person.name} samples`],
    'trigger-elicitation-request': (person) => [{}, `${person.name} fills in`],
    'trigger-url-elicitation': (person) => [{ url: 'https://example.org/',
        elicitationId: person.name }, person.name],
    'trigger-sampling-request-async': (person) => [{ prompt: 'p', maxTokens: 9 },
        `${person.name} samples`],
    'trigger-elicitation-request-async': (person) => [{}, `${person.name} fills in`],
};

// Subscriptions are turned on, and off again.
const toggles = ['toggle-simulated-logging', 'toggle-subscriber-updates'];
const tasks = ['simulate-research-query'];

async function callAll(person, table) {
    await Promise.all(Object.entries(table).map(async ([name, make]) => {
        const [args, expected] = make(person);
        const text = await person.text(name, args);
        assert.ok(text.includes(expected), `${name}: ${text}`);
    }));
}

async function allTools(person) {
    const { tools: offered } = await person.client.listTools();
    assert.deepEqual(offered.map(({ name }) => name).sort(),
        [...Object.keys({ ...tools, ...askingTools }), ...toggles, ...tasks].sort());
    await callAll(person, tools);
}

async function toolsThatAsk(person) {
    for (const [name, make] of Object.entries(askingTools))
        await callAll(person, { [name]: make });
    assert.ok(person.asked.length >= 6);
}

async function aTask(person) {
    const report = await person.task('simulate-research-query',
        { topic: person.name, ambiguous: true });
    assert.ok(report.includes(`**Topic**: ${person.name}`), report);
}

async function errors({ client }) {
    const unknown = await client.callTool({ name: 'no-such-tool', arguments: {} });
    assert.equal(unknown.isError, true);
    await assert.rejects(client.readResource({ uri: 'demo://no/such' }), { code: -32602 });
}

async function resources({ client }) {
    const { resources: listed } = await client.listResources();
    assert.ok(listed.length > 0);
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.equal(resourceTemplates.length, 2);
    const { contents } = await client.readResource({ uri });
    assert.match(contents[0].text, /^Resource 7:/);
}

async function prompts({ client, name }) {
    const listed = await client.listPrompts();
    assert.ok(listed.prompts.some((prompt) => prompt.name === 'completable-prompt'));
    const { messages } = await client.getPrompt({ name: 'completable-prompt',
        arguments: { department: 'Sales', name } });
    assert.ok(messages[0].content.text.includes(name));
}

async function completion({ client }) {
    const byPrompt = await client.complete({ argument: { name: 'department', value: 'S' },
        ref: { type: 'ref/prompt', name: 'completable-prompt' } });
    assert.deepEqual(byPrompt.completion.values, ['Sales', 'Support']);
    const byTemplate = await client.complete({ argument: { name: 'resourceId', value: '12' },
        ref: { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' } });
    assert.deepEqual(byTemplate.completion.values, ['12']);
}

// A unique number of steps identifies the messages of a request.
function steps(person, i) {
    return 10 + person.number * 4 + i;
}

// The client library counts its tokens from 0: several clients use the same tokens.
async function progress(person) {
    await Promise.all([0, 1, 2].map(async (i) => {
        const total = steps(person, i);
        await person.call('trigger-long-running-operation', { duration: 0.5, steps: total },
            { onprogress() {} });
        const seen = person.progress.filter((params) => params.total === total);
        assert.deepEqual(seen.map((params) => params.progress),
            Array.from({ length: total }, (_, n) => n + 1));
        assert.equal(new Set(seen.map(({ progressToken }) => progressToken)).size, 1);
    }));
}

// The server does not answer a request that was cancelled long before its end; it answers all
// others.
async function cancellation(person) {
    const abort = new AbortController();
    const cancelled = person.call('trigger-long-running-operation',
        { duration: 20, steps: steps(person, 3) },
        { signal: abort.signal, onprogress: () => abort.abort('enough') });
    const other = person.text('trigger-long-running-operation', { duration: 0.7, steps: 2 });
    await assert.rejects(cancelled, /enough/);
    assert.match(await other, /completed/);
    await person.client.ping();
}

// No progress message so far was for another client.
function foreignProgress(person) {
    const own = [0, 1, 2, 3].map((i) => steps(person, i));
    assert.deepEqual(person.progress.filter(({ total }) => !own.includes(total)), []);
}

async function logging(person) {
    await person.client.setLoggingLevel('debug');
    const from = person.heard.length;
    await person.call('toggle-simulated-logging');
    await person.hears('notifications/message', ({ data }) => /message$/.test(data), from);
    await person.call('toggle-simulated-logging');
}

async function subscriptions(person) {
    const from = person.heard.length;
    await person.client.subscribeResource({ uri });
    await person.hears('notifications/message', ({ data }) => data.includes(uri), from);
    await person.call('toggle-subscriber-updates');
    await person.hears('notifications/resources/updated', (params) => params.uri === uri, from);
    await person.call('toggle-subscriber-updates');
    await person.client.unsubscribeResource({ uri });
}

async function rootsChange(person) {
    const from = person.heard.length;
    person.roots.push({ uri: `file:///srv/${person.name}`, name: 'more' });
    await person.client.sendRootsListChanged();
    await person.hears('notifications/message', ({ data }) => /^Roots updated: 2/.test(data), from);
    assert.ok((await person.text('get-roots-list')).includes(`file:///srv/${person.name}`));
}

async function manyAtOnce(person) {
    const messages = Array.from({ length: 64 }, (_, i) => `${person.name} ${i}`);
    const answers = await Promise.all(messages.map((message) => person.text('echo', { message })));
    assert.deepEqual(answers, messages.map((message) => `Echo: ${message}`));
}

// Most of its time is spent in the library, at both ends.
async function fiveMegabytes(person) {
    const message = person.name.padEnd(5 << 20, '0123456789 "\\ äöü ');
    assert.equal(await person.text('echo', { message }, { timeout: 240000 }), `Echo: ${message}`);
}

export const checks = [
    { name: 'initialize', run: initialize },
    { name: 'list_changed', run: listChanged, apart: true },
    { name: 'all tools', run: allTools },
    { name: 'tools that ask: roots, sampling, elicitation', run: toolsThatAsk, apart: true },
    { name: 'a task', run: aTask },
    { name: 'errors', run: errors },
    { name: 'resources', run: resources },
    { name: 'prompts', run: prompts },
    { name: 'completion', run: completion },
    { name: 'progress', run: progress },
    { name: 'cancellation', run: cancellation },
    { name: 'logging', run: logging, apart: true },
    { name: 'resource subscriptions', run: subscriptions, apart: true },
    { name: 'roots change', run: rootsChange, apart: true },
    { name: '64 calls at once', run: manyAtOnce },
    { name: 'a result of 5 MB', run: fiveMegabytes },
    { name: "no progress of another's", run: foreignProgress },
];
