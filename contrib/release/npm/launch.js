// launch.js: becomes the program in the package of this platform, which node finds wherever a
// package manager put it. Where node cannot be replaced by another program, it passes on signals
// and the exit status; stdin, stdout and stderr are the program's own either way.
'use strict';

const { spawn } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const { name, optionalDependencies } = require('./package.json');

const signals = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2'];
const unavailable = 69; // EX_UNAVAILABLE

function fail(text) {
    process.stderr.write(`${name}: ${text}\n`);
    process.exit(unavailable);
}

function findProgram() {
    const platform = `${process.platform}-${process.arch}`;
    const wanted = Object.keys(optionalDependencies).find((key) => key.endsWith(`/${platform}`));
    if (!wanted)
        fail(`there is no program for ${platform}: build it from source`);
    try {
        const manifest = require.resolve(`${wanted}/package.json`);
        const program = path.join(path.dirname(manifest), 'bin', 'stdio_bus');
        fs.accessSync(program, fs.constants.X_OK);
        return program;
    } catch (error) {
        return fail(`the package ${wanted} is missing (${error.code}): install it, or ${name} ` +
            'without --omit=optional and --no-optional');
    }
}

// A terminal sends its signals to the program, too: twice is more than once for the daemon.
function comesFromTerminal(signal) {
    return (signal === 'SIGINT' || signal === 'SIGQUIT') && require('tty').isatty(0);
}

// Ends as the program has ended.
function finish(status, signal) {
    if (signal === null)
        process.exit(status);
    signals.forEach((each) => process.removeAllListeners(each));
    process.kill(process.pid, signal);
    // A signal that node does not die of, as a shell reports it.
    setTimeout(() => process.exit(128 + os.constants.signals[signal]), 1000);
}

function runAsChild(program, args) {
    let child;
    signals.forEach((signal) => process.on(signal, () => {
        if (!comesFromTerminal(signal))
            child.kill(signal);
    }));
    child = spawn(program, args, { stdio: 'inherit' });
    child.on('error', (error) => fail(error.message));
    child.on('exit', finish);
}

const program = findProgram();
const args = process.argv.slice(2);
if (process.execve)
    process.execve(program, [program, ...args]);
else
    runAsChild(program, args);
