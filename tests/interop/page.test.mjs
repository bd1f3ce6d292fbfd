// The page at / of an HTTP listener, and that of ctl page, in a headless Chromium, which reads it
// and attacks it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import { Bus, daemon, workplace } from './bus.mjs';
import { Chromium, skip } from './chromium.mjs';

const HOSTILE = '</th><img src=x onerror=hacked=1><script>hacked=1</script>\u202e"\'&amp;';
const timeout = 120000;
const pool = { command: process.execPath, args: [path.resolve('both_eras_server.mjs')],
    protocol: 'mcp', instances: 2 };
const message = (id, method, params = {}) => JSON.stringify({ jsonrpc: '2.0', id, method, params });
const post = (url, body) => fetch(url, { method: 'POST', body, headers:
    { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' } });

// Calls, one after the other, until stopped.
function load(bus) {
    let runs = true;
    const done = (async () => {
        for (let id = 1; runs; id++)
            await (await post(bus.url.replace('/mcp', '/rpc'), message(id, 'tools/list'))).text();
    })();
    return async () => {
        runs = false;
        await done;
    };
}

const number = (text) => Number(text.match(/^[\d.]+/)?.[0] ?? 0);

// The page is at `at`: nothing came from elsewhere, and the policy was kept.
async function expectClean(page, at) {
    const { origin } = new URL(at);

    assert.deepEqual(page.requests.filter((url) => !url.startsWith(`${origin}/`) &&
        !url.startsWith('data:')), []);
    assert.deepEqual(page.problems, []);
    assert.deepEqual(await page.value('violations'), []);
}

// The first part of the colour is the darkest, or lightest, of its kind.
const contrast = `(selector) => {
    const parts = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = (color) => parts(color).map((c) => c / 255)
        .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const node = document.querySelector(selector);
    let behind = node;
    while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)')
        behind = behind.parentElement;
    const [a, b] = [getComputedStyle(node).color, getComputedStyle(behind).backgroundColor]
        .map(light).sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
}`;

// A page of another origin. Resolves with its address.
async function strangersPage(t, html) {
    const server = http.createServer((request, response) =>
        response.writeHead(200, { 'Content-Type': 'text/html' }).end(html));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
        server.closeAllConnections();
        server.close();
    });
    return `http://127.0.0.1:${server.address().port}/`;
}

test('the page in a browser', { timeout, skip }, async (t) => {
    const bus = await Bus.start(t, { ...pool, id: HOSTILE }, 'http');
    const at = `http://${bus.address}/`;
    const browser = await Chromium.start(t);
    const page = await browser.page();

    await t.test('loads, and its values change under load', async () => {
        const stop = load(bus);
        await page.open(at);
        assert.equal(await page.value('document.querySelectorAll("table").length'), 6);
        assert.equal(await page.text('#c-pools b'), '1');
        await page.until('document.querySelector("[data-k=tenths]").textContent !== "0.0" &&' +
            'document.querySelector("[data-k=p50_us]").textContent.endsWith(" ms") &&' +
            'document.querySelector("polyline").getAttribute("points")?.split(" ").length > 2');
        const first = await page.text('[data-k=tenths]');
        assert.ok(number(first) > 0, first);
        await page.until(`document.querySelector("[data-k=tenths]").textContent !== "${first}"`);
        await stop();
        await page.until('document.querySelector("[data-k=tenths]").textContent === "0.0"');
    });
    await t.test('shows names as text', async () => {
        const params = { protocolVersion: '2025-06-18', capabilities: {},
            clientInfo: { name: HOSTILE.slice(0, 40), version: '1' } };
        await (await post(bus.url, message(1, 'initialize', params))).text();
        await page.until('[...document.querySelectorAll("#clients td")].some((cell) =>' +
            ' cell.textContent.startsWith("</th><img"))');
        assert.equal(await page.text('#pools tbody th'), HOSTILE);
        await page.open(at); // what the server has written, then what the script has
        assert.equal((await page.text('#pools tbody th')).slice(0, 50), HOSTILE.slice(0, 50));
        assert.equal(await page.value('typeof hacked'), 'undefined');
        assert.equal(await page.value('document.querySelectorAll("img").length'), 0);
        assert.equal(await page.value('document.scripts.length'), 1);
    });
    await t.test('fits a narrow and a wide window', async () => {
        for (const width of [400, 1400]) {
            await page.resize(width);
            assert.equal(await page.value('innerWidth'), width);
            assert.ok(await page.value('document.documentElement.scrollWidth <=' +
                ' document.documentElement.clientWidth'), `${width} pixels`);
        }
    });
    await t.test('is readable in light and dark', async () => {
        for (const [scheme, color] of
            [['light', 'rgb(255, 255, 255)'], ['dark', 'rgb(17, 22, 28)']]) {
            await page.prefer(scheme);
            assert.equal(await page.value('getComputedStyle(document.body).backgroundColor'),
                color);
            for (const selector of ['body', 'p', 'dt', 'dd', 'thead th', 'td', 'caption b', 'pre',
                '#note']) {
                const ratio = await page.value(
                    `document.querySelector('${selector}') ? (${contrast})('${selector}') : 21`);
                assert.ok(ratio >= 4.5, `${selector} in ${scheme}: ${ratio}`);
            }
        }
    });
    await t.test('has names for a screen reader', async () => {
        const { nodes } = await page.send('Accessibility.getFullAXTree');
        const named = (role) => nodes.filter((node) => node.role?.value === role)
            .map((node) => node.name?.value ?? '');

        assert.ok(named('heading').length >= 4, named('heading').join(', '));
        for (const role of ['table', 'region'])
            assert.ok(named(role).length >= 6 && named(role).every((name) => name !== ''), role);
    });
    await expectClean(page, at);
    await t.test('works without script', async () => {
        const plain = await browser.page();
        await plain.send('Emulation.setScriptExecutionDisabled', { value: true });
        await plain.open(at);
        assert.equal(await plain.text('#c-pools b'), '1');
        assert.match(await plain.text('noscript'), /Without script/);
        await expectClean(plain, at);
    });
    await t.test('of a daemon that has ended says so', async () => {
        await bus.stop();
        await page.until('document.querySelector("#note").textContent ===' +
            '"The daemon does not answer."');
    });
});

test('the page of a listener with a token, in a browser', { timeout, skip }, async (t) => {
    const file = path.join(workplace(), 'token'), token = 'a'.repeat(32);
    fs.writeFileSync(file, `${token}\n`, { mode: 0o600 });
    const bus = await Bus.start(t, pool, 'http', { listen: { token_file: file } });
    const at = `http://${bus.address}/`;
    const page = await (await Chromium.start(t)).page();
    const submit = async (text) => page.value(`document.querySelector('input').value = '${text}';
        document.querySelector('button').click()`);

    await page.open(at);
    assert.equal(await page.value('document.querySelectorAll("table").length'), 0);
    assert.equal(await page.value('document.querySelector("form").hidden'), false);
    await expectClean(page, at);
    await submit('wrong');
    await page.until('document.querySelector("#note").textContent === "This is not the token."');
    page.problems = []; // the browser notes the 401
    await submit(token);
    await page.until('document.querySelector("#c-pools b")?.textContent === "1"');
    assert.match(await page.text('details pre'), /Bearer TOKEN/);
    await page.until('performance.getEntriesByName(location.origin + "/page.json").length > 1');
    await expectClean(page, at);
    assert.ok(page.requests.every((url) => !url.includes(token)), page.requests.join('\n'));
    assert.equal(await page.value('location.href + document.cookie + localStorage.length +' +
        ' sessionStorage.length + history.length'), `${at}002`);
    await page.open(at);
    assert.equal(await page.value('document.querySelectorAll("table").length'), 0);
    await page.open(`${at}?token=${token}`);
    assert.match(await page.value('document.body.textContent'), /takes no parameters/);
    await bus.stop();
});

test('attacks on the page in a browser', { timeout, skip }, async (t) => {
    const bus = await Bus.start(t, pool, 'http');
    const at = `http://${bus.address}/`;
    const browser = await Chromium.start(t, ['evil.example']);

    await t.test('another origin reads nothing', async () => {
        const page = await browser.page();
        await page.open(await strangersPage(t, '<!doctype html><title>stranger</title>'));
        const read = (url, options) => page.value(`fetch('${url}', ${JSON.stringify(options)})
            .then((answer) => answer.text()).catch((error) => error.name)`);
        const load = (tag, url) => page.value(`new Promise((resolve) => {
            const node = document.createElement('${tag}');
            node.onload = () => resolve('loaded');
            node.onerror = () => resolve('refused');
            node.src = '${url}';
            document.body.append(node);
        })`);

        for (const url of [at, `${at}page.json`]) {
            assert.equal(await read(url, {}), 'TypeError');
            assert.match(await read(url, { mode: 'no-cors' }), /^(TypeError)?$/);
            for (const tag of ['script', 'img'])
                assert.equal(await load(tag, url), 'refused', `${tag} ${url}`);
        }
        await page.value(`opened = open('${at}');
            new Promise((resolve) => setTimeout(resolve, 1000))`);
        assert.equal(await page.value('opened.closed'), true); // it is in another group
    });
    await t.test('it is in no frame', async () => {
        const page = await browser.page();
        await page.open(await strangersPage(t,
            `<!doctype html><title>stranger</title><iframe src="${at}"></iframe>`));
        await page.until('frames.length === 1');
        const { frameTree } = await page.send('Page.getFrameTree');
        assert.deepEqual(frameTree.childFrames.map(({ frame }) => frame.url),
            ['chrome-error://chromewebdata/']);
        assert.ok(page.problems.length > 0, 'no breach of frame-ancestors');
    });
    await t.test('a name that leads here is not its host', async () => {
        const page = await browser.page(), { port } = new URL(at);
        for (const where of ['', 'page.json']) {
            await page.open(`http://evil.example:${port}/${where}`);
            assert.match(await page.value('document.body.textContent'), /not allowed here/);
        }
        assert.equal(await page.value(`fetch('/page.json').then((answer) => answer.status)`), 403);
    });
    await bus.stop();
});

test('ctl page in a browser', { timeout, skip }, async (t) => {
    const socket = path.join(workplace(), 'control.sock');
    const bus = await Bus.start(t, { ...pool, id: HOSTILE }, 'unix', { control: socket });
    const viewer = spawn(daemon, ['ctl', socket, 'page'], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => viewer.kill('SIGKILL'));
    const at = `${(await once(viewer.stdout.setEncoding('utf8'), 'data'))[0]}`.trim();
    const browser = await Chromium.start(t);
    const page = await browser.page();

    await page.open(at);
    assert.equal(await page.text('#pools tbody th'), HOSTILE);
    const since = await page.text('[data-k=runs_ms]');
    await page.until(`document.querySelector("[data-k=runs_ms]").textContent !== "${since}"`);
    await expectClean(page, at);
    await page.open(new URL('/', at).href);
    assert.match(await page.value('document.body.textContent'), /nothing is here/);
    await page.open(at);
    await bus.stop();
    await page.until('document.querySelector("#note").textContent ===' +
        ' "The daemon refuses: 503"');
    viewer.kill('SIGINT');
    assert.deepEqual(await once(viewer, 'exit'), [0, null]);
});
