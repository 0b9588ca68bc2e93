/** Every operation and every tool, by AWS's SDK for JavaScript. */
import { DEFAULT, check, control, controlClient, data, dataClient, drain, expect, refused, tell, textOf } from './client.mjs';

const client = dataClient();
const interpreters = controlClient();
let session;

const named = () => ({ codeInterpreterIdentifier: DEFAULT, sessionId: session });
const start = (input, by = client) =>
  by.send(new data.StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier: DEFAULT, ...input }));
const get = () => client.send(new data.GetCodeInterpreterSessionCommand(named()));
const stop = (input = {}) => client.send(new data.StopCodeInterpreterSessionCommand({ ...named(), ...input }));

async function invoke(name, input, by = client) {
  const answer = await by.send(new data.InvokeCodeInterpreterCommand({ ...named(), name, arguments: input }));
  expect(answer.sessionId, session, "the answer's session");
  return drain(answer.stream);
}

async function succeeded(name, input) {
  const answer = await invoke(name, input);
  check(!answer.isError, `${name} succeeds`, answer);
  return answer;
}

async function a_session_starts() {
  // A start may wait for a pod longer than one call does; the SDK repeats it, with its client token.
  const started = await start({ name: 'javascript', sessionTimeoutSeconds: 900 }, dataClient({ maxAttempts: 4 }));
  session = started.sessionId;
  check(started.createdAt instanceof Date, 'its start is a date', started);
  const got = await get();
  expect([got.status, got.name, got.sessionTimeoutSeconds], ['READY', 'javascript', 900], 'what get tells');
}

async function sessions_are_listed() {
  const list = (input) =>
    client.send(new data.ListCodeInterpreterSessionsCommand({ codeInterpreterIdentifier: DEFAULT, ...input }));
  const { items } = await list({ status: 'READY' });
  check(items.some((item) => item.sessionId === session && item.createdAt instanceof Date), 'it is listed', items);
  const found = [];
  for (let page, nextToken; !page || nextToken; nextToken = page.nextToken) {
    page = await list({ maxResults: 1, nextToken });
    found.push(...page.items.map((item) => item.sessionId));
  }
  expect([found.includes(session), new Set(found).size], [true, found.length], 'it is listed page by page');
}

async function each_language_runs_and_keeps_its_state() {
  const codes = {
    python: ['n = 1', 'print(n + 1)'],
    javascript: ['const n = 1;', 'console.log(n + 1)'],
    typescript: ['const n: number = 1;', 'console.log(n + 1)'],
  };
  for (const [language, [first]] of Object.entries(codes)) await succeeded('executeCode', { code: first, language });
  for (const [language, [, code]] of Object.entries(codes)) {
    const { structured } = await succeeded('executeCode', { code, language });
    expect([structured.stdout, structured.stderr, structured.exitCode], ['2\n', '', 0], language);
  }
  const failed = await invoke('executeCode', { code: 'raise KeyError("k")' });
  expect([failed.isError, failed.structured.exitCode], [true, 1], 'an exception');
  const picture = await succeeded('executeCode', { code: 'import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()' });
  const image = picture.content.find((block) => block.type === 'image');
  expect([image?.mimeType, Buffer.from(image?.data ?? []).subarray(1, 4).toString()], ['image/png', 'PNG'], 'a plot');
}

async function files_go_in_and_out() {
  const content = [
    { path: 'a b/ü#?.txt', text: 'text' },
    { path: 'raw', blob: Uint8Array.from([0, 255, 1]) },
    { path: 'empty', text: '' },
  ];
  await succeeded('writeFiles', { content });
  const read = await succeeded('readFiles', { paths: content.map((file) => file.path) });
  expect(
    read.content.map(({ type, resource }) => [type, resource.uri, resource.text ?? [...resource.blob]]),
    [
      ['resource', 'file:///a%20b/%C3%BC%23%3F.txt', 'text'],
      ['resource', 'file:///raw', [0, 255, 1]],
      ['resource', 'file:///empty', ''],
    ],
    'what is read',
  );
  const { content: listed } = await succeeded('listFiles', { path: '' });
  expect(
    listed.filter((link) => link.name === 'raw').map(({ type, uri, size }) => [type, uri, Number(size)]),
    [['resource_link', 'file:///raw', 3]],
    'the list',
  );
  await succeeded('removeFiles', { paths: ['raw', 'a b'] });
  const gone = await invoke('readFiles', { paths: ['raw'] });
  check(gone.isError && textOf(gone).includes('raw'), 'what was removed is missed by its name', gone);
}

async function commands_run_now_and_in_the_background() {
  const { structured } = await invoke('executeCommand', { command: 'echo here; exit 5' });
  expect([structured.stdout, structured.exitCode], ['here\n', 5], 'a command');
  const until = async (taskId, wanted) => {
    for (let look = 0; look < 200; look += 1) {
      const task = await invoke('getTask', { taskId });
      if (task.structured.taskStatus === wanted) return task.structured;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return check(false, `the task becomes ${wanted}`);
  };
  const started = await succeeded('startCommandExecution', { command: 'echo done' });
  const done = await until(started.structured.taskId, 'completed');
  expect([done.stdout, done.exitCode], ['done\n', 0], 'a task');
  const endless = await succeeded('startCommandExecution', { command: 'sleep 300' });
  await succeeded('stopTask', { taskId: endless.structured.taskId });
  await until(endless.structured.taskId, 'canceled');
  expect((await invoke('stopTask', { taskId: endless.structured.taskId })).isError, true, 'stopping it again');
}

async function megabytes_come_in_one_stream() {
  const { structured, content } = await succeeded('executeCode', { code: 'print("é" * 1_000_000)' });
  check(structured.stdout.startsWith('éé') && Buffer.byteLength(structured.stdout) <= 2 ** 20, 'the beginning', structured.stdout.length);
  const link = content.find((block) => block.type === 'resource_link');
  expect(Number(link?.size), 2_000_001, 'the size of the whole');
}

async function errors_have_their_classes() {
  const missing = { ...named(), sessionId: '0'.repeat(32) };
  const error = await refused('ResourceNotFoundException', 404, () => client.send(new data.GetCodeInterpreterSessionCommand(missing)), 'is not active');
  check(error instanceof data.ResourceNotFoundException, 'the class', error.constructor.name);
  const invalid = await refused('ValidationException', 400, () => invoke('executeCode', { code: '1', runtime: 'deno', language: 'javascript' }));
  check(invalid instanceof data.ValidationException, 'the class', invalid.constructor.name);
  expect([invalid.reason, invalid.fieldList.map((field) => field.name)], ['FieldValidationFailed', ['arguments.runtime']], 'what is wrong');
  const wrong = dataClient({ credentials: { accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey: 'x'.repeat(40) } });
  await refused('InvalidSignatureException', 403, () => start({}, wrong));
}

async function a_clock_that_is_off_is_corrected_by_the_sdk() {
  const now = Date.now;
  Date.now = () => now() - 3_600_000;
  try {
    const got = await dataClient({ maxAttempts: 3 }).send(new data.GetCodeInterpreterSessionCommand(named()));
    expect(got.sessionId, session, 'the session');
  } finally {
    Date.now = now;
  }
}

async function interpreters_are_made_and_removed() {
  const clientToken = crypto.randomUUID();
  const input = { name: 'byJavaScript', networkConfiguration: { networkMode: 'SANDBOX' }, clientToken };
  const created = await interpreters.send(new control.CreateCodeInterpreterCommand(input));
  const codeInterpreterId = created.codeInterpreterId;
  check(/^byJavaScript-[0-9a-zA-Z]{10}$/.test(codeInterpreterId), 'its id', created);
  const got = await interpreters.send(new control.GetCodeInterpreterCommand({ codeInterpreterId }));
  expect([got.name, got.networkConfiguration.networkMode], ['byJavaScript', 'SANDBOX'], 'what get tells');
  check(got.createdAt instanceof Date && got.lastUpdatedAt instanceof Date, 'its dates', got);
  const ids = [];
  for await (const page of control.paginateListCodeInterpreters({ client: interpreters, pageSize: 1 }, {})) {
    ids.push(...page.codeInterpreterSummaries.map((summary) => summary.codeInterpreterId));
  }
  check(ids.includes(codeInterpreterId) && ids.includes(DEFAULT), 'both are listed', ids);
  const deleted = await interpreters.send(new control.DeleteCodeInterpreterCommand({ codeInterpreterId }));
  expect(deleted.status, 'DELETING', 'what delete tells');
  const network = { networkMode: 'VPC', vpcConfig: { securityGroups: ['sg-01234567'], subnets: ['subnet-01234567'] } };
  const refusal = await refused('ValidationException', 400, () =>
    interpreters.send(new control.CreateCodeInterpreterCommand({ ...input, networkConfiguration: network })),
  );
  check(refusal.message.includes('vpcConfig'), 'it names the member', refusal.message);
}

async function a_session_stops_once() {
  const clientToken = crypto.randomUUID();
  expect((await stop({ clientToken })).sessionId, session, 'what was stopped');
  expect((await stop({ clientToken })).sessionId, session, 'the same call again');
  await refused('ResourceNotFoundException', 404, () => stop(), 'is not active');
  await refused('ResourceNotFoundException', 404, () => invoke('executeCode', { code: '1' }), 'is not active');
  expect((await get()).status, 'TERMINATED', 'its status');
}

await tell(
  [
    a_session_starts,
    sessions_are_listed,
    each_language_runs_and_keeps_its_state,
    files_go_in_and_out,
    commands_run_now_and_in_the_background,
    megabytes_come_in_one_stream,
    errors_have_their_classes,
    a_clock_that_is_off_is_corrected_by_the_sdk,
    interpreters_are_made_and_removed,
    a_session_stops_once,
  ],
  () => session && stop().catch(() => {}),
);
