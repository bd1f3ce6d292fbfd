// The running processes: to check that none is left.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

// pid, parent's pid and state of each process, from /proc or, if there is none, from ps.
function processes() {
    if (!fs.existsSync('/proc/self/stat')) {
        const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' });
        return lines.trim().split('\n').map((line) => line.trim().split(/\s+/));
    }
    return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
        try {
            // "PID (NAME) STATE PPID ...", where NAME may contain anything.
            const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
            const [state, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
            return [[pid, ppid, state]];
        } catch {
            return []; // it has ended
        }
    });
}

// Each process that is not a zombie: pid -> parent's pid.
function parents() {
    const alive = processes().filter(([, , state]) => !state.startsWith('Z'));
    return new Map(alive.map(([pid, ppid]) => [Number(pid), Number(ppid)]));
}

// The process and all its descendants.
export function processTree(root) {
    const table = parents();
    const tree = [root];
    for (const pid of tree)
        tree.push(...[...table].filter(([, parent]) => parent === pid).map(([child]) => child));
    return tree;
}

// Resolves with the processes of `pids` that exist at the deadline; with [] as soon as all are
// gone.
export async function leftOf(pids, deadline_ms = 10000) {
    const end = Date.now() + deadline_ms;
    for (;;) {
        const table = parents();
        const left = pids.filter((pid) => table.has(pid));
        if (left.length === 0 || Date.now() > end)
            return left;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}
