// registry.mjs DIRECTORY: a registry of the npm packages in the directory, on a port of 127.0.0.1
// that is printed; then a line for each package that is fetched. Package managers choose by
// themselves what they fetch of it, as of a real one. Optional packages that the directory does not
// have are described, and cannot be fetched.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const directory = process.argv[2];
const packages = new Map();

for (const file of fs.readdirSync(directory).filter((name) => name.endsWith('.tgz'))) {
    const whole = path.join(directory, file);
    const manifest = JSON.parse(execFileSync('tar', ['-xOzf', whole, 'package/package.json']));
    const bytes = fs.readFileSync(whole);
    packages.set(manifest.name, { manifest, file, bytes });
}

for (const { manifest } of [...packages.values()]) {
    for (const [name, version] of Object.entries(manifest.optionalDependencies ?? {})) {
        const [os, cpu] = name.replace(/.*\//, '').split('-');
        if (!packages.has(name)) {
            packages.set(name, { manifest: { name, version, os: [os], cpu: [cpu] },
                file: `missing/${name}`, bytes: Buffer.alloc(0) });
        }
    }
}

function answer(response, status, type, body) {
    response.writeHead(status, { 'content-type': type, 'content-length': body.length });
    response.end(body);
}

function describe({ manifest, file, bytes }, host) {
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    const shasum = createHash('sha1').update(bytes).digest('hex');
    const dist = { tarball: `http://${host}/${file}`, integrity, shasum };
    return JSON.stringify({
        name: manifest.name,
        'dist-tags': { latest: manifest.version },
        versions: { [manifest.version]: { ...manifest, dist } },
        time: { [manifest.version]: '2020-01-01T00:00:00.000Z' },
    });
}

const server = http.createServer((request, response) => {
    const wanted = decodeURIComponent(request.url.slice(1));
    const asFile = [...packages.values()].find(({ file }) => file === wanted);
    const known = packages.get(wanted);
    if (asFile) {
        console.log(`fetched ${wanted}`);
        answer(response, 200, 'application/octet-stream', asFile.bytes);
    } else if (known) {
        answer(response, 200, 'application/json', describe(known, request.headers.host));
    } else {
        answer(response, 404, 'application/json', '{"error":"not found"}');
    }
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
