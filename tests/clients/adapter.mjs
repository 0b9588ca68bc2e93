/**
 * A code runner as agent frameworks build it on this API, with what such a runner relies on: inputs staged in one call and named by
 * AF_STAGED_INPUTS before each run, files paired by exact URI, output cut by the client, and a session that says when it is gone.
 */
import { DEFAULT, check, data, dataClient, drain, expect, tell, textOf } from './client.mjs';

const MAX_OUTPUT = 8000;
const MAX_INPUT = 100_000_000;
const INPUTS = 'AF_STAGED_INPUTS';

class SessionExpired extends Error {}
class FileNotReturned extends Error {}
class TooLarge extends Error {}
class NotSet extends Error {}

class Runner {
  #client = dataClient({ maxAttempts: 3 });
  #session;
  #staged = [];

  async start(sessionTimeoutSeconds) {
    const started = await this.#send(new data.StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier: DEFAULT, name: 'adapter', sessionTimeoutSeconds }));
    this.#session = started.sessionId;
  }

  /** Text as text and bytes as bytes, in one call that is refused here when its body would be too large. */
  async stageInputs(files) {
    const bytes = files.reduce((sum, { path, text, blob }) => sum + path.length + (text ? Buffer.byteLength(text) : 0) + ((blob?.length ?? 0) * 4) / 3, 0);
    if (bytes > MAX_INPUT) throw new TooLarge(`${bytes} bytes`);
    await this.#invoke('writeFiles', { content: files });
    this.#staged = files.map((file) => file.path);
  }

  async execute(code, language = 'python') {
    await this.#setUp(language);
    return this.#told(await this.#invoke('executeCode', { code, language }));
  }

  async runCommand(command) {
    const value = JSON.stringify(this.#staged).replaceAll("'", `'\\''`);
    return this.#told(await this.#invoke('executeCommand', { command: `export ${INPUTS}='${value}'\n${command}` }));
  }

  /** The one file of the path that was asked for, or nothing. */
  async readFile(path, maxBytes = Infinity) {
    const answer = await this.#invoke('readFiles', { paths: [path] }, true);
    const resources = answer.content.filter((block) => block.type === 'resource').map((block) => block.resource);
    if (resources.length !== 1 || pathOf(resources[0].uri) !== path) throw new FileNotReturned(`${path}: ${textOf(answer)}`);
    const [{ text, blob }] = resources;
    check((text === undefined) !== (blob === undefined), 'one of text and bytes', resources[0]);
    const size = blob?.length ?? Buffer.byteLength(text);
    if (size > maxBytes) throw new TooLarge(`${path}: ${size} bytes`);
    return text ?? blob;
  }

  async stop() {
    try {
      await this.#client.send(new data.StopCodeInterpreterSessionCommand({ codeInterpreterIdentifier: DEFAULT, sessionId: this.#session }));
    } catch (error) {
      if (error.name !== 'ResourceNotFoundException') throw error;
    }
  }

  /** What code did before may have changed the environment, so it is set before each run, and confirmed by the line it prints. */
  async #setUp(language) {
    const line = JSON.stringify(this.#staged);
    const name = JSON.stringify(INPUTS);
    const code =
      language === 'python'
        ? `import os\nos.environ[${name}] = ${JSON.stringify(line)}\nprint(os.environ[${name}])`
        : `process.env[${name}] = ${JSON.stringify(line)}; console.log(process.env[${name}])`;
    const answer = await this.#invoke('executeCode', { code, language });
    if (answer.isError || answer.structured.stdout !== `${line}\n`) throw new NotSet(answer.structured.stdout);
  }

  async #invoke(name, input, mayBeTheFile = false) {
    const command = new data.InvokeCodeInterpreterCommand({ codeInterpreterIdentifier: DEFAULT, sessionId: this.#session, name, arguments: input });
    return drain((await this.#send(command, mayBeTheFile)).stream);
  }

  async #send(command, mayBeTheFile = false) {
    try {
      return await this.#client.send(command);
    } catch (error) {
      if (/not active/.test(error.message)) throw new SessionExpired(error.message);
      if (error.name === 'ResourceNotFoundException') throw new (mayBeTheFile ? FileNotReturned : SessionExpired)(error.message);
      throw error;
    }
  }

  /** Success and exit code as far as the service tells them, and the streams, of which the client keeps a beginning and counts the rest. */
  #told({ isError, structured: { stdout = '', stderr = '', exitCode } }) {
    const cut = (text) => ({ text: text.slice(0, MAX_OUTPUT), left: Math.max(0, text.length - MAX_OUTPUT) });
    const ok = exitCode === undefined ? !isError : exitCode === 0 && !isError;
    return { ok, exitCode, stdout: cut(stdout), stderr: cut(stderr) };
  }
}

/** The path in a URI of the form file:///…; what has a query or fragment that is not escaped is none. */
function pathOf(uri) {
  if (!uri.startsWith('file:///') || /[?#]/.test(uri)) return undefined;
  return decodeURIComponent(uri.slice('file:///'.length));
}

async function fails(kind, call) {
  try {
    await call();
  } catch (error) {
    if (error instanceof kind) return error.message;
    throw error;
  }
  return check(false, `${kind.name} was expected`);
}

const runner = new Runner();
const FILES = [
  { path: 'in/with space.csv', text: 'a,b\n1,2\n' },
  { path: 'in/50%#1?.txt', text: 'odd' },
  { path: "in/it's größe 文件.txt", text: 'größe' },
  { path: 'in/raw.bin', blob: Uint8Array.from({ length: 256 }, (_, index) => index) },
  { path: 'in/empty', text: '' },
  { path: 'in/empty.bin', blob: new Uint8Array() },
];
const PATHS = FILES.map((file) => file.path);

async function a_session_starts() {
  await runner.start(600);
}

async function inputs_are_staged_in_one_call_and_read_back() {
  await runner.stageInputs(FILES);
  for (const { path, text, blob } of FILES) {
    const read = await runner.readFile(path);
    // Without contents nobody can tell bytes from text.
    if (blob?.length) expect(Buffer.from(read), Buffer.from(blob), path);
    else expect(read, text ?? '', path);
  }
  await fails(TooLarge, () => runner.stageInputs([{ path: 'x', text: 'x'.repeat(MAX_INPUT) }]));
}

async function a_run_knows_its_inputs_whatever_ran_before() {
  const code = `import json, os\nprint(all(os.path.exists(path) for path in json.loads(os.environ['${INPUTS}'])))\nos.environ['${INPUTS}'] = 'spoilt'`;
  for (let run = 0; run < 2; run += 1) expect((await runner.execute(code)).stdout.text, 'True\n', `run ${run}`);
  const script = `console.log(JSON.parse(process.env.${INPUTS}).length)`;
  for (const language of ['javascript', 'typescript']) expect((await runner.execute(script, language)).stdout.text, `${FILES.length}\n`, language);
}

async function a_command_knows_them_too() {
  const told = await runner.runCommand(`printf '%s' "$${INPUTS}"; exit 7`);
  expect([JSON.parse(told.stdout.text), told.ok, told.exitCode], [PATHS, false, 7], 'the command');
  expect((await runner.runCommand('cat "in/with space.csv"')).stdout.text, 'a,b\n1,2\n', 'a file');
}

async function output_is_cut_by_the_client_alone() {
  const told = await runner.execute(`print('x' * 100_000)`);
  expect([told.stdout.text.length, told.stdout.left, told.ok, told.exitCode], [MAX_OUTPUT, 92_001, true, 0], 'what is left');
}

async function what_failed_is_said_and_nothing_is_made_up() {
  const raised = await runner.execute('raise SystemError("no")');
  expect([raised.ok, raised.exitCode], [false, 1], 'an exception');
  check(raised.stderr.text.includes('SystemError'), 'its text', raised);
  const killed = await runner.execute('import os\nos._exit(0)');
  expect([killed.ok, killed.exitCode], [false, undefined], 'a process that ended itself');
  expect((await runner.execute('print(1)')).stdout.text, '1\n', 'the session goes on');
}

async function a_missing_file_is_no_other_file_and_no_expiry() {
  await fails(FileNotReturned, () => runner.readFile('in/no such file'));
  await fails(FileNotReturned, () => runner.readFile('in/empty/x'));
  await fails(TooLarge, () => runner.readFile('in/raw.bin', 255));
  await runner.execute(`open('made.png', 'wb').write(b'\\x89PNG')`);
  expect(Buffer.from(await runner.readFile('made.png')), Buffer.from('\x89PNG', 'latin1'), 'what code made');
}

async function stopping_twice_is_no_fault() {
  await runner.stop();
  await runner.stop();
}

async function every_verb_says_that_the_session_is_gone() {
  await gone(runner);
}

async function gone(runner) {
  for (const verb of [
    () => runner.execute('1'),
    () => runner.execute('1', 'javascript'),
    () => runner.runCommand('true'),
    () => runner.stageInputs([{ path: 'x', text: 'x' }]),
    () => runner.readFile('in/empty'),
  ]) {
    await fails(SessionExpired, verb);
  }
}

async function and_so_it_is_when_its_time_is_over() {
  const short = new Runner();
  await short.start(5);
  const began = performance.now();
  for (;;) {
    try {
      await short.runCommand('sleep 0.3');
    } catch (error) {
      if (!(error instanceof SessionExpired)) throw error;
      break;
    }
    check(performance.now() - began < 60_000, 'it ends');
  }
  await gone(short);
  await short.stop();
}

await tell(
  [
    a_session_starts,
    inputs_are_staged_in_one_call_and_read_back,
    a_run_knows_its_inputs_whatever_ran_before,
    a_command_knows_them_too,
    output_is_cut_by_the_client_alone,
    what_failed_is_said_and_nothing_is_made_up,
    a_missing_file_is_no_other_file_and_no_expiry,
    stopping_twice_is_no_fault,
    every_verb_says_that_the_session_is_gone,
    and_so_it_is_when_its_time_is_over,
  ],
  () => runner.stop().catch(() => {}),
);
