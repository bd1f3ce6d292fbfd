/* The MCP servers of the benchmarks in this folder, and the processes that they become. */
import { mkdtempSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const bin = (name) => resolve('node_modules/.bin', name);
export const scratch = mkdtempSync(join(tmpdir(), 'sessions-'));
const files = join(scratch, 'files');
mkdirSync(files);
export const five = {
    everything: [bin('mcp-server-everything')],
    filesystem: [bin('mcp-server-filesystem'), files],
    memory: [bin('mcp-server-memory')],
    'sequential-thinking': [bin('mcp-server-sequential-thinking')],
    playwright: [bin('playwright-mcp'), '--headless'],
};
/* What agents often have configured, and seldom call. */
export const thirteen = {
    ...five,
    brave: [bin('brave-search-mcp-server')],
    context7: [bin('context7-mcp')],
    exa: [bin('exa-mcp-server')],
    figma: [bin('figma-developer-mcp'), '--stdio'],
    github: [bin('mcp-server-github')],
    notion: [bin('notion-mcp-server')],
    postgres: [bin('mcp-server-postgres'), 'postgres://nobody@localhost/none'],
    tavily: [bin('tavily-mcp')],
};
/* They ask for a key when they start. No row calls them. */
const keys = { BRAVE_API_KEY: 'none', EXA_API_KEY: 'none', FIGMA_API_KEY: 'none',
               NOTION_TOKEN: 'ntn_none', TAVILY_API_KEY: 'none' };
export const calls = {
    everything: { name: 'echo', arguments: { message: 'here' } },
    filesystem: { name: 'list_allowed_directories', arguments: {} },
    memory: { name: 'read_graph', arguments: {} },
};

/* Every process that a row causes has inherited this variable, daemons in the background too. */
const marker = `SESSIONS_ROW=${process.pid}.`;
export const environmentOf = (row) => ({
    PATH: process.env.PATH,
    HOME: scratch,
    XDG_RUNTIME_DIR: scratch,
    XDG_CACHE_HOME: join(scratch, 'cache'),
    ...keys,
    SESSIONS_ROW: `${process.pid}.${row}`,
});

export function processesOf(row) {
    return readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .filter((pid) => {
            try {
                const variables = readFileSync(`/proc/${pid}/environ`, 'latin1');
                return variables.split('\0').includes(marker + row);
            } catch {
                return false;
            }
        })
        .map(Number);
}

export async function until(what, condition, seconds = 60) {
    const end = Date.now() + seconds * 1000;
    while (!(await condition())) {
        if (Date.now() > end)
            throw new Error(`timed out: ${what}`);
        await new Promise((done) => setTimeout(done, 50));
    }
}
