// The server that the scenarios of @modelcontextprotocol/conformance ask for, of the official
// library 2.x, for both eras of MCP. Over stdio, or with --http over HTTP, on a port that it
// prints: so the library itself and a server behind stdio_bus are compared with the same tools.

import { acceptedContent, completable, createRequestStateCodec, fromJsonSchema, inputRequired,
    inputResponse, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import { serveHttp } from './serve_http.mjs';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAA' +
    'AABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

const text = (words) => ({ type: 'text', text: words });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const said = (words) => ({ content: [text(words)] });
const embedded = (uri, mimeType, words) =>
    ({ type: 'resource', resource: { uri, mimeType, text: words } });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const form = (properties, required) =>
    ({ type: 'object', properties, ...(required ? { required } : {}) });
const sealed = createRequestStateCodec({ key: 'not a secret: the state of a test has none' });

// --- tools with plain answers ---

function addContentTools(server) {
    const contents = {
        test_simple_text: [text('This is a simple text response for testing.')],
        test_image_content: [image],
        test_audio_content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
        test_embedded_resource: [embedded('test://embedded-resource', 'text/plain',
            'This is an embedded resource content.')],
        test_multiple_content_types: [text('Multiple content types test:'), image,
            embedded('test://mixed-content-resource', 'application/json',
                '{"test":"data","value":123}')],
    };
    for (const [name, content] of Object.entries(contents))
        server.registerTool(name, { description: `Answers: ${name}` }, () => ({ content }));

    server.registerTool('test_error_handling', { description: 'Fails' }, () => {
        throw new Error('This tool intentionally returns an error for testing');
    });
    server.registerTool('test_custom_header', { description: 'Has an argument in a header',
        inputSchema: fromJsonSchema({ type: 'object', properties: {
            region: { type: 'string', 'x-mcp-header': 'Region' } } }) },
    ({ region }) => said(`${region}`));
    server.registerTool('json_schema_2020_12_tool', { description: 'Has a rich schema',
        inputSchema: fromJsonSchema(richSchema) }, () => said('valid'));
}

const richSchema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address: { $anchor: 'addressDef', type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } } } },
    properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
};

// --- tools that say something before they answer ---

function addTalkingTools(server, changed) {
    const log = async (args, ctx) => {
        for (const step of ['started', 'processing data', 'completed']) {
            if (step !== 'started')
                await sleep(50);
            await ctx.mcpReq.log('info', step === 'processing data' ? `Tool ${step}` :
                `Tool execution ${step}`);
        }
        return said('logged');
    };
    server.registerTool('test_tool_with_logging', { description: 'Logs',
        inputSchema: z.object({}) }, log);
    server.registerTool('test_logging_tool', { description: 'Logs, if it may',
        inputSchema: z.object({}) }, log);
    server.registerTool('test_tool_with_progress', { description: 'Reports progress',
        inputSchema: z.object({}) }, async (args, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (const progress of [0, 50, 100]) {
            if (progress > 0)
                await sleep(50);
            if (progressToken !== undefined)
                await ctx.mcpReq.notify({ method: 'notifications/progress',
                    params: { progressToken, progress, total: 100 } });
        }
        return said('done');
    });
    server.registerTool('test_reconnection', { description: 'Loses its stream',
        inputSchema: z.object({}) }, async (args, ctx) => {
        ctx.http?.closeSSE?.();
        await sleep(100);
        return said('You are here again.');
    });
    for (const kind of ['tool', 'prompt']) {
        server.registerTool(`test_trigger_${kind}_change`, { description: `Changes a ${kind}`,
            inputSchema: z.object({}) }, () => {
            changed(kind, server);
            return said('changed');
        });
    }
}

// --- tools that ask: in the handshake era the library sends requests, in the other results ---

const asks = {
    name: inputRequired.elicit({ message: 'What is your name?',
        requestedSchema: form({ name: { type: 'string' } }, ['name']) }),
    greeting: inputRequired.createMessage({ maxTokens: 50,
        messages: [{ role: 'user', content: text('Generate a greeting') }] }),
    capital: inputRequired.createMessage({ maxTokens: 100,
        messages: [{ role: 'user', content: text('What is the capital of France?') }] }),
    roots: inputRequired.listRoots(),
    confirm: inputRequired.elicit({ message: 'Please confirm',
        requestedSchema: form({ ok: { type: 'boolean' } }, ['ok']) }),
};

// The first key of `inputRequests` that has no answer of its kind yet.
function unanswered(ctx, inputRequests) {
    const kinds = { 'elicitation/create': 'elicit', 'sampling/createMessage': 'sampling',
        'roots/list': 'roots' };
    return Object.entries(inputRequests).find(([key, { method }]) => {
        const answer = inputResponse(ctx.mcpReq.inputResponses, key);
        return answer.kind !== kinds[method] ||
            (answer.kind === 'elicit' && answer.action === 'accept' && !answer.content);
    });
}

function addAskingTool(server, name, inputRequests, answer, state) {
    server.registerTool(name, { description: 'Asks', inputSchema: z.object({}) },
        async (args, ctx) => {
            if (unanswered(ctx, inputRequests) || (state && !ctx.mcpReq.requestState()))
                return inputRequired({ inputRequests,
                    ...(state ? { requestState: await sealed.mint({ name }) } : {}) });
            return said(answer(ctx.mcpReq.inputResponses));
        });
}

function addAskingTools(server) {
    const tool = (name) => `test_input_required_result_${name}`;

    addAskingTool(server, tool('elicitation'), { user_name: asks.name },
        (of) => `Hello, ${acceptedContent(of, 'user_name')?.name}!`);
    addAskingTool(server, tool('sampling'), { capital_question: asks.capital },
        (of) => `It is ${JSON.stringify(inputResponse(of, 'capital_question').result.content)}`);
    addAskingTool(server, tool('list_roots'), { client_roots: asks.roots },
        (of) => inputResponse(of, 'client_roots').roots.map(({ uri }) => uri).join(', '));
    addAskingTool(server, tool('request_state'), { confirm: asks.confirm }, () => 'state-ok',
        true);
    addAskingTool(server, tool('tampered_state'), { confirm: asks.confirm }, () => 'state-ok',
        true);
    addAskingTool(server, tool('multiple_inputs'), { user_name: asks.name,
        greeting: asks.greeting, client_roots: asks.roots }, () => 'all three', true);
    addAskingTool(server, 'test_streaming_elicitation', { user_name: asks.name }, () => 'asked');
    addAskingTool(server, 'test_missing_capability', { capital: asks.capital }, () => 'asked');

    server.registerTool(tool('multi_round'), { description: 'Asks twice',
        inputSchema: z.object({}) }, async (args, ctx) => {
        const name = ctx.mcpReq.requestState()?.name ??
            acceptedContent(ctx.mcpReq.inputResponses, 'step1')?.name;
        const color = acceptedContent(ctx.mcpReq.inputResponses, 'step2')?.color;
        if (name === undefined)
            return inputRequired({ requestState: await sealed.mint({}), inputRequests: {
                step1: inputRequired.elicit({ message: 'Step 1: What is your name?',
                    requestedSchema: form({ name: { type: 'string' } }, ['name']) }) } });
        if (color === undefined)
            return inputRequired({ requestState: await sealed.mint({ name }), inputRequests: {
                step2: inputRequired.elicit({ message: 'Step 2: What is your favorite color?',
                    requestedSchema: form({ color: { type: 'string' } }, ['color']) }) } });
        return said(`${name} likes ${color}`);
    });
    server.registerTool(tool('capabilities'), { description: 'Asks what the client can answer',
        inputSchema: z.object({}) }, (args, ctx) => {
        const can = ctx.mcpReq.envelope?.[CAPABILITIES] ?? ctx.mcpReq._meta?.[CAPABILITIES] ?? {};
        return inputRequired({ inputRequests: {
            ...(can.elicitation ? { user_name: asks.name } : {}),
            ...(can.sampling ? { greeting: asks.greeting } : {}),
        } });
    });
}

// The handshake era's own: their results quote what the client answered.
function addHandshakeTools(server) {
    const elicited = ({ action, content }) =>
        `action=${action}, content=${JSON.stringify(content)}`;

    server.registerTool('test_sampling', { description: 'Samples',
        inputSchema: z.object({ prompt: z.string() }) }, async ({ prompt }, ctx) => {
        const { content } = await ctx.mcpReq.requestSampling({ maxTokens: 100,
            messages: [{ role: 'user', content: text(prompt) }] });
        return said(`LLM response: ${content.text}`);
    });
    server.registerTool('test_elicitation', { description: 'Elicits',
        inputSchema: z.object({ message: z.string() }) }, async ({ message }, ctx) =>
        said(`User response: ${elicited(await ctx.mcpReq.elicitInput({ message,
            requestedSchema: form({
                username: { type: 'string', description: "User's response" },
                email: { type: 'string', description: "User's email address" },
            }, ['username', 'email']) }))}`));
    for (const [name, properties] of Object.entries(forms)) {
        server.registerTool(`test_elicitation_${name}`, { description: 'Elicits a form',
            inputSchema: z.object({}) }, async (args, ctx) =>
            said(`Elicitation completed: ${elicited(await ctx.mcpReq.elicitInput({
                message: 'Please fill in', requestedSchema: form(properties) }))}`));
    }
}

const titled = (names, titles) => names.map((name, i) => ({ const: name, title: titles[i] }));
const options = ['option1', 'option2', 'option3'], values = ['value1', 'value2', 'value3'];
const forms = {
    sep1034_defaults: {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
    },
    sep1330_enums: {
        untitledSingle: { type: 'string', enum: options },
        titledSingle: { type: 'string',
            oneOf: titled(values, ['First Option', 'Second Option', 'Third Option']) },
        legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three'] },
        untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
        titledMulti: { type: 'array', items: {
            anyOf: titled(values, ['First Choice', 'Second Choice', 'Third Choice']) } },
    },
};

// --- resources and prompts ---

function addResources(server) {
    const resource = (name, uri, mimeType, contents) =>
        server.registerResource(name, uri, { description: name, mimeType },
            () => ({ contents: [{ uri, mimeType, ...contents }] }));

    resource('static-text', 'test://static-text', 'text/plain',
        { text: 'This is the content of the static text resource.' });
    resource('static-binary', 'test://static-binary', 'image/png', { blob: PNG });
    resource('watched', 'test://watched-resource', 'text/plain', { text: 'watched' });
    server.registerResource('template',
        new ResourceTemplate('test://template/{id}/data', { list: undefined }),
        { description: 'A template', mimeType: 'application/json' }, (uri, { id }) =>
            ({ contents: [{ uri: uri.href, mimeType: 'application/json', text:
                JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] }));
}

function addPrompts(server) {
    const user = (...contents) =>
        ({ messages: contents.map((content) => ({ role: 'user', content })) });
    const word = (value) => completable(z.string(), (start) =>
        [value].filter((each) => each.startsWith(start)));

    server.registerPrompt('test_simple_prompt', { description: 'A prompt' },
        () => user(text('This is a simple prompt for testing.')));
    server.registerPrompt('test_prompt_with_arguments', { description: 'Has arguments',
        argsSchema: z.object({ arg1: word('paris'), arg2: word('park') }) },
    ({ arg1, arg2 }) => user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)));
    server.registerPrompt('test_prompt_with_embedded_resource', { description: 'Embeds',
        argsSchema: z.object({ resourceUri: z.string() }) }, ({ resourceUri }) =>
        user(embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
            text('Please process the embedded resource above.')));
    server.registerPrompt('test_prompt_with_image', { description: 'Has an image' },
        () => user(image, text('Please analyze the image above.')));
    server.registerPrompt('test_input_required_result_prompt', { description: 'Asks',
        argsSchema: z.object({}) }, (args, ctx) => {
        const context = acceptedContent(ctx.mcpReq.inputResponses, 'user_context')?.context;
        if (context === undefined)
            return inputRequired({ inputRequests: { user_context: inputRequired.elicit({
                message: 'What context should the prompt use?',
                requestedSchema: form({ context: { type: 'string' } }, ['context']) }) } });
        return user(text(`The context is ${context}`));
    });
}

// changed(kind, server): a list of tools or prompts has changed.
function make(era, changed) {
    const server = new McpServer({ name: 'conformance', version: '1.0.0' }, {
        capabilities: { tools: { listChanged: true }, prompts: { listChanged: true },
            resources: { subscribe: true, listChanged: true }, logging: {}, completions: {} },
        requestState: { verify: sealed.verify },
    });
    addContentTools(server);
    addTalkingTools(server, changed);
    addResources(server);
    addPrompts(server);
    addAskingTools(server);
    if (era === 'legacy') {
        addHandshakeTools(server);
        for (const method of ['resources/subscribe', 'resources/unsubscribe'])
            server.server.setRequestHandler(method, () => ({}));
    }
    return server;
}

function changedHere(kind, server) {
    if (kind === 'tool')
        server.sendToolListChanged();
    else
        server.sendPromptListChanged();
}

if (process.argv[2] === '--http')
    serveHttp(make, changedHere);
else
    serveStdio(({ era }) => make(era, changedHere));
