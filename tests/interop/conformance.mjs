// Starts a scenario suite of @modelcontextprotocol/conformance. The package asks for globSync of
// node:fs, which Node.js 20 does not have, though the scenarios for servers do not use it.

import fs from 'node:fs';
import { register } from 'node:module';

const hooks = `export async function load(url, context, next) {
    const loaded = await next(url, context);
    return /conformance\\/dist\\/index\\.js$/.test(url) ? { ...loaded, source:
        String(loaded.source).replace(/globSync as (\\w+),(.*?)from"fs";/,
            '$2from"fs";const $1=()=>[];') } : loaded;
}`;

if (!fs.globSync)
    register(`data:text/javascript,${encodeURIComponent(hooks)}`);
await import('./node_modules/@modelcontextprotocol/conformance/dist/index.js');
