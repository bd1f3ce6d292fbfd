// A headless Chromium, told what to do by its DevTools protocol over the package ws: no other
// package is needed. `chromium` is the program, if there is one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { WebSocket } from 'ws';

export const chromium = process.env.CHROMIUM;
export const skip = !chromium && 'CHROMIUM is not set, and no chromium is in PATH';

// Runs before the scripts of each document.
const watch = `window.violations = [];
document.addEventListener('securitypolicyviolation',
    (event) => window.violations.push(event.violatedDirective + ' ' + event.blockedURI));`;

export class Chromium {
    #calls = new Map();
    #count = 0;
    pages = new Map(); // by session

    // Ends with the test. Each name of `hosts` leads to 127.0.0.1.
    static async start(t, hosts = []) {
        const browser = new Chromium();
        const rules = hosts.map((host) => `MAP ${host} 127.0.0.1`).join(',');
        const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'stdio_bus_interop.'));
        const child = spawn(chromium, ['--headless=new', '--no-sandbox', '--disable-gpu',
            '--disable-dev-shm-usage', '--no-first-run', '--remote-debugging-port=0',
            `--user-data-dir=${dir}`, `--host-resolver-rules=${rules}`, 'about:blank'],
        { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
        const ended = once(child, 'exit');
        t.after(async () => {
            browser.socket?.terminate();
            process.kill(-child.pid, 'SIGKILL');
            await ended;
            child.stderr.destroy(); // processes that have left the group may hold it
            fs.rmSync(dir, { recursive: true, force: true, maxRetries: 20 });
        });
        const url = await new Promise((resolve, reject) => {
            let said = '';
            child.stderr.setEncoding('utf8').on('data', (chunk) => {
                said += chunk;
                const found = said.match(/DevTools listening on (ws:\S+)/);
                if (found)
                    resolve(found[1]);
            });
            ended.then(() => reject(new Error(`the browser has ended:\n${said}`)));
        });
        browser.socket = new WebSocket(url, { perMessageDeflate: false });
        await once(browser.socket, 'open');
        browser.socket.on('message', (data) => browser.#receive(JSON.parse(data)));
        return browser;
    }

    #receive({ id, result, error, method, params, sessionId }) {
        if (id === undefined) {
            this.pages.get(sessionId)?.note(method, params);
            return;
        }
        const { resolve, reject } = this.#calls.get(id);
        this.#calls.delete(id);
        if (error)
            reject(new Error(error.message));
        else
            resolve(result);
    }

    send(method, params = {}, sessionId = undefined) {
        const id = ++this.#count;
        this.socket.send(JSON.stringify({ id, method, params, sessionId }));
        return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
    }

    // An empty tab of a profile of its own.
    async page() {
        const { browserContextId } = await this.send('Target.createBrowserContext');
        const { targetId } = await this.send('Target.createTarget',
            { url: 'about:blank', browserContextId });
        const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
        const page = new Page((method, params) => this.send(method, params, sessionId));
        this.pages.set(sessionId, page);
        for (const domain of ['Page', 'Network', 'Log', 'Runtime', 'Audits'])
            await page.send(`${domain}.enable`);
        await page.send('Page.addScriptToEvaluateOnNewDocument', { source: watch });
        return page;
    }
}

export class Page {
    requests = []; // their URLs
    problems = []; // errors of scripts and of the console, breaches of the policy

    constructor(send) {
        this.send = send;
    }

    note(method, params) {
        if (method === 'Network.requestWillBeSent')
            this.requests.push(params.request.url);
        else if (method === 'Log.entryAdded' && params.entry.level === 'error')
            this.problems.push(params.entry.text);
        else if (method === 'Runtime.exceptionThrown')
            this.problems.push(params.exceptionDetails.text);
        else if (method === 'Audits.issueAdded' && /Policy/.test(params.issue.code))
            this.problems.push(params.issue.code);
        else if (method === 'Page.loadEventFired')
            this.loaded?.();
    }

    async open(url) {
        const loaded = new Promise((resolve) => { this.loaded = resolve; });
        await this.send('Page.navigate', { url });
        await loaded;
    }

    // The value of an expression, which may be a promise.
    async value(expression) {
        const { result, exceptionDetails } = await this.send('Runtime.evaluate',
            { expression, awaitPromise: true, returnByValue: true, userGesture: true });
        assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
        return result.value;
    }

    // Waits until the expression is true.
    async until(expression, deadline_ms = 20000) {
        for (const end = Date.now() + deadline_ms; !await this.value(`!!(${expression})`);) {
            assert.ok(Date.now() < end, `not so: ${expression}\n${
                await this.value('document.documentElement.outerHTML.slice(-3000)')}`);
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }

    text(selector) {
        return this.value(`document.querySelector(${JSON.stringify(selector)}).textContent`);
    }

    resize(width) {
        return this.send('Emulation.setDeviceMetricsOverride',
            { width, height: 900, deviceScaleFactor: 1, mobile: false });
    }

    prefer(scheme) {
        return this.send('Emulation.setEmulatedMedia',
            { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    }
}
