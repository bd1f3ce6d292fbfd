// The scenarios that @modelcontextprotocol/conformance has for servers, against the same server
// twice: served over HTTP by the official library, and over stdio behind the daemon. Whatever
// passes with the library passes with the daemon. CONFORMANCE_LIST=1 prints both, side by side.
// With INTEROP_QUICK=yes everything has to pass with the daemon, which is what passes with the
// library.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { again, daemon, freePort, withBus, workplace } from './bus.mjs';

const REVISIONS = ['2025-11-25', '2026-07-28'];
const timeout = 900000; // of a busy machine
const server = path.resolve('conformance_server.mjs');

// Not for a server behind the daemon to pass or fail.
const apart = {
    // An extension that the library does not have.
    extension: (scenario) => scenario.startsWith('tasks-'),
    // The tool closes the stream of its answer: over stdio it has none.
    polling: (scenario) => scenario === 'server-sse-polling',
    // Only the library knows the schema of the tool, and so which argument a header repeats.
    schema: (scenario) => scenario === 'http-custom-header-server-validation',
};

// {scenario: {check: status}} of a revision's scenarios at this URL; a check that was made more
// than once has the worst of its statuses.
async function run(t, url, revision) {
    const results = workplace();
    const worst = ['FAILURE', 'WARNING', 'SKIPPED', 'SUCCESS', 'INFO'];

    await promisify(execFile)(process.execPath, ['conformance.mjs', 'server', '--url', url,
        '--requirements', revision, '--output-dir', results], { timeout: 400000,
        maxBuffer: 1 << 26 }).catch((error) => assert.equal(error.code, 1, error.stderr));
    return Object.fromEntries(fs.readdirSync(results).map((directory) => {
        const checks = {};
        const file = path.join(results, directory, 'checks.json');
        for (const { id, status, errorMessage } of JSON.parse(fs.readFileSync(file, 'utf8')))
            if (!(id in checks) || worst.indexOf(status) < worst.indexOf(checks[id].status))
                checks[id] = { status, errorMessage };
        return [directory.match(/^server-(.*)-\d{4}-\d\d-\d\dT/)[1], checks];
    }));
}

const passes = (checks) => Object.values(checks ?? {}).every(({ status }) => status !== 'FAILURE');
const count = (checks) => Object.values(checks ?? {})
    .filter(({ status }) => status === 'SUCCESS').length;

function list(revision, library, daemon) {
    const cell = (checks) =>
        `${passes(checks) ? 'passed' : 'failed'} (${count(checks)})`.padEnd(14);

    console.log(`\n${revision}`.padEnd(52), 'library'.padEnd(14), 'stdio_bus');
    for (const scenario of Object.keys(library))
        console.log(scenario.padEnd(51), cell(library[scenario]), cell(daemon[scenario]));
}

// Whatever passes there passes here.
async function compare(t, there, here) {
    for (const [scenario, checks] of Object.entries(there)) {
        if (Object.values(apart).some((is) => is(scenario)))
            continue;
        await t.test(scenario, () => {
            for (const [check, { status }] of Object.entries(checks))
                if (status === 'SUCCESS') // INFO: an option that was not taken
                    assert.match(`${here[scenario]?.[check]?.status}`, /^(SUCCESS|INFO)$/,
                        `${check}: ${here[scenario]?.[check]?.errorMessage}`);
        });
    }
}

// What the library would say, if all of it passes.
function expected(here) {
    const each = (object, change) => Object.fromEntries(Object.entries(object).map(change));

    return each(here, ([scenario, checks]) =>
        [scenario, each(checks, ([check]) => [check, { status: 'SUCCESS' }])]);
}

const library = {};

before(async () => {
    if (again)
        return;
    library.process = spawn(process.execPath, [server, '--http'],
        { stdio: ['ignore', 'pipe', 'inherit'] });
    const [port] = await once(library.process.stdout, 'data');
    library.url = `http://127.0.0.1:${Number(port)}/mcp`;
});
after(() => library.process?.kill());

for (const revision of REVISIONS) {
    test(`conformance: ${revision}`, { timeout }, (t) => withBus(t, { command: process.execPath,
        args: [server], protocol: 'mcp', instances: 8 }, 'http', async (bus) => {
        const here = await run(t, bus.url, revision);
        const there = again ? expected(here) : await run(t, library.url, revision);

        assert.ok(Object.keys(there).length > 30, 'scenarios');
        if (process.env.CONFORMANCE_LIST)
            list(revision, there, here);
        await compare(t, there, here);
    }));
}

// A popular server at the defaults of the command line. The tool leaves its sessions without a
// DELETE.
test('conformance: server-everything, --http at the defaults', {
    timeout, skip: again,
}, async (t) => {
    const everything = path.resolve(
        'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
    const ports = [await freePort(), await freePort()];
    const urls = ports.map((port) => `http://127.0.0.1:${port}/mcp`);
    const start = (command, args, env) => {
        const child = spawn(command, args, { stdio: 'ignore', env: { ...process.env, ...env } });
        t.after(() => child.kill());
    };

    start(process.execPath, [everything, 'streamableHttp'], { PORT: ports[0] });
    start(daemon, ['--http', `127.0.0.1:${ports[1]}`, '--protocol', 'mcp', '--',
        process.execPath, everything, 'stdio']);
    for (const url of urls)
        while (!await fetch(url).then(() => true, () => false))
            await new Promise((resolve) => setTimeout(resolve, 50));
    await compare(t, await run(t, urls[0], REVISIONS[0]), await run(t, urls[1], REVISIONS[0]));
});
