/** The worker thread: speaks the Jupyter protocol. */
import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

import { Publisher, Router } from 'zeromq';

import { Executions } from './executions.mjs';
import { Link, STDERR_PIPE, STDOUT_PIPE } from './link.mjs';
import { Outbox } from './outbox.mjs';
import { OutputPipe } from './pipes.mjs';
import { simpleAnswers } from './requests.mjs';
import { Runtime } from './runtime.mjs';
import { warmUp } from './translate.mjs';
import { Wire } from './wire.mjs';

/** A full socket says so at once; a closed one takes up to five seconds to get rid of its last messages. */
const OPTIONS = { sendTimeout: 0, linger: 5_000 };

/** How long the main thread may take to end before the process is ended the hard way. */
const EXIT_MS = 1_000;

const { connectionFile, language, shared, tag } = workerData;
const connection = JSON.parse(readFileSync(connectionFile, 'utf8'));
const wire = new Wire(connection);
const link = new Link(shared);

async function bind(socket, channel) {
  const port = connection[`${channel}_port`];
  const separator = connection.transport === 'ipc' ? '-' : ':';
  await socket.bind(`${connection.transport}://${connection.ip}${separator}${port}`);
  return socket;
}

// Few messages wait in the socket, and none is dropped: a slow client makes the user's code wait.
const iopub = await bind(new Publisher({ ...OPTIONS, sendHighWaterMark: 16, noDrop: true }), 'iopub');
const [shell, control, stdin, heartbeat] = await Promise.all(
  ['shell', 'control', 'stdin', 'hb'].map((channel) => bind(new Router(OPTIONS), channel)),
);
const published = new Outbox(iopub);

function publish(type, parent, content) {
  const topic = type === 'stream' ? `stream.${content.name}` : type;
  published.put(wire.encode({ identities: [topic], type, parent, content }));
}

const runtime = new Runtime(parentPort);
const [stdoutPipe, stderrPipe] = Object.entries({ stdout: STDOUT_PIPE, stderr: STDERR_PIPE }).map(
  ([name, descriptor]) =>
    new OutputPipe(
      descriptor,
      tag,
      (cell, text) => publish('stream', executions.parent(cell), { name, text }),
      (limit) => published.room(limit),
    ),
);
const executions = new Executions(language, runtime, publish, () => {
  stdoutPipe.finish();
  stderrPipe.finish();
});

parentPort.on('message', async (message) => {
  if (!message.handedOver) return;
  stdoutPipe.drain();
  stderrPipe.drain();
  if (message.type === 'display') {
    publish('display_data', executions.parent(message.cell), message.content);
  } else if (message.type === 'exiting') {
    await end(message.code ?? 0);
  }
  link.release();
});

/** The process is about to end: what was running has failed. */
async function end(code) {
  const evalue = `the kernel has ended: the code called process.exit(${code})`;
  runtime.finishAll({ error: { ename: 'KernelExit', evalue, traceback: [`KernelExit: ${evalue}`] }, ends: true });
  await new Promise(setImmediate);
  await Promise.all([published, ...Object.values(outboxes)].map((outbox) => outbox.empty()));
  runtime.close();
  for (const socket of [iopub, shell, control, stdin, heartbeat]) socket.close();
}

const requests = {
  ...simpleAnswers(language),
  execute_request: (request) => executions.execute(request),
  interrupt_request: () => {
    // The reply does not wait for code that will not end.
    void runtime.interrupt();
    return { status: 'ok' };
  },
  shutdown_request: ({ content }) => {
    setImmediate(() => {
      runtime.exit();
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), EXIT_MS);
    });
    return { status: 'ok', restart: content.restart === true };
  },
};

/** What the first cell needs is loaded when the client knows that the kernel is there. */
let warm = false;

async function answer(request, outbox) {
  const type = request.header.msg_type;
  const parent = request.header;
  publish('status', parent, { execution_state: 'busy' });
  const content = Object.hasOwn(requests, type) ? await requests[type](request) : undefined;
  if (content !== undefined) {
    const reply = { identities: request.identities, type: type.replace(/_request$/, '_reply'), parent, content };
    outbox.put(wire.encode(reply));
  }
  publish('status', parent, { execution_state: 'idle' });
  if (!warm) {
    warm = true;
    setImmediate(warmUp, language);
  }
}

/** Answers what comes on a channel, one after the other. */
async function serve(socket, outbox) {
  let last = Promise.resolve();
  for await (const frames of socket) {
    const request = wire.decode(frames);
    if (!request) continue;
    if (request.header.msg_type === 'execute_request') executions.announce(request);
    last = last.then(() => answer(request, outbox));
  }
}

const outboxes = { shell: new Outbox(shell), control: new Outbox(control) };
publish('status', {}, { execution_state: 'starting' });
void serve(shell, outboxes.shell);
void serve(control, outboxes.control);
void (async () => {
  for await (const frames of heartbeat) await heartbeat.send(frames);
})();
