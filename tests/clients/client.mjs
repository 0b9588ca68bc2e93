/**
 * What the JavaScript programs share: AWS's SDK as its users have it, and checks that end a program at the first wrong thing.
 *
 * CODEWORKSPACE_CLIENT_NODE_MODULES says where the SDK is; ENDPOINT and AWS's own variables say where the gateway is and whose key is
 * used.
 */
import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';

const require = createRequire(`${process.env.CODEWORKSPACE_CLIENT_NODE_MODULES}/`);
export const data = require('@aws-sdk/client-bedrock-agentcore');
export const control = require('@aws-sdk/client-bedrock-agentcore-control');

export const DEFAULT = 'aws.codeinterpreter.v1';

/** The client of sessions. A call that fails is not hidden by one that is repeated. */
export function dataClient(options = {}) {
  return new data.BedrockAgentCoreClient({ endpoint: process.env.ENDPOINT, maxAttempts: 1, ...options });
}

/** The client of interpreters. */
export function controlClient(options = {}) {
  return new control.BedrockAgentCoreControlClient({ endpoint: process.env.ENDPOINT, maxAttempts: 1, ...options });
}

class Wrong extends Error {}

/** Fails unless both are equal. */
export function expect(actual, expected, what) {
  if (!isDeepStrictEqual(actual, expected)) throw new Wrong(`${what}: it should be ${short(expected)}, and is ${short(actual)}`);
}

/** Fails unless it holds. */
export function check(holds, what, shown) {
  if (!holds) throw new Wrong(`${what}: ${short(shown)}`);
}

function short(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 2000 ? `${text.slice(0, 1900)} …` : text;
}

/** Runs the steps of a program, each a function whose name says what it shows; and then `end`, whatever happened. */
export async function tell(steps, end) {
  try {
    for (const step of steps) {
      const began = performance.now();
      const name = step.name.replaceAll('_', ' ');
      try {
        await step();
      } catch (error) {
        console.error(`WRONG: ${name}: ${error instanceof Wrong ? error.message : error.stack}`);
        process.exitCode = 1;
        return;
      }
      console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${name}`);
    }
  } finally {
    await end?.();
  }
}

/** Makes a call that the service must refuse in this way; gives the error. */
export async function refused(name, status, call, contains = '') {
  try {
    await call();
  } catch (error) {
    expect([error.name, error.$metadata?.httpStatusCode], [name, status], `the error (${error.message})`);
    check(error.message.includes(contains), `the message says ${contains}`, error.message);
    return error;
  }
  throw new Wrong(`${name} ${status} was expected, and the call succeeded`);
}

/** What a tool answered: its events put together. */
export async function drain(stream) {
  const content = [];
  const answer = { content, isError: undefined, structured: undefined };
  for await (const event of stream) {
    expect(Object.keys(event), ['result'], 'members of an event');
    const { result } = event;
    content.push(...result.content);
    answer.isError = result.isError;
    if (result.structuredContent) {
      const { stdout, stderr, ...rest } = result.structuredContent;
      const former = answer.structured ?? {};
      answer.structured = { ...rest };
      for (const [name, part] of Object.entries({ stdout, stderr })) {
        if (part !== undefined) answer.structured[name] = (former[name] ?? '') + part;
      }
    }
  }
  check(typeof answer.isError === 'boolean', 'isError is always there', answer);
  return answer;
}

/** The text of a result's blocks. */
export function textOf(answer) {
  return answer.content.map((block) => block.text ?? '').join('');
}
