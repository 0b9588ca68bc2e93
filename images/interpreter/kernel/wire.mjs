/** Jupyter's messages as ZeroMQ frames, signed (protocol 5.3, "The Wire Protocol"). */
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';

const DELIMITER = '<IDS|MSG>';
export const PROTOCOL_VERSION = '5.3';

export class Wire {
  #algorithm;
  #key;
  #session = randomUUID();

  /** @param {{key: string, signature_scheme?: string}} connection */
  constructor({ key, signature_scheme: scheme = 'hmac-sha256' }) {
    this.#algorithm = scheme.replace(/^hmac-/, '');
    this.#key = key;
  }

  /** @returns {object | undefined} nothing if this is no message of somebody who knows the key */
  decode(frames) {
    const at = frames.findIndex((frame) => frame.toString('latin1') === DELIMITER);
    const [signature, ...rest] = frames.slice(at + 1);
    if (at < 0 || rest.length < 4 || !this.#isSigned(signature, rest.slice(0, 4))) return undefined;
    try {
      const [header, parent, metadata, content] = rest.slice(0, 4).map((frame) => JSON.parse(frame.toString()));
      return { identities: frames.slice(0, at), header, parent, metadata, content };
    } catch {
      return undefined;
    }
  }

  /** @param {{identities?: (Buffer | string)[], type: string, parent?: object, content: object, metadata?: object}} message */
  encode({ identities = [], type, parent = {}, content, metadata = {} }) {
    const header = {
      msg_id: randomUUID(),
      session: this.#session,
      username: 'kernel',
      date: new Date().toISOString(),
      msg_type: type,
      version: PROTOCOL_VERSION,
    };
    const body = [header, parent, metadata, content].map((part) => JSON.stringify(part));
    return [...identities, DELIMITER, this.#sign(body), ...body];
  }

  #sign(parts) {
    if (!this.#key) return '';
    const mac = createHmac(this.#algorithm, this.#key);
    for (const part of parts) mac.update(part);
    return mac.digest('hex');
  }

  #isSigned(signature, parts) {
    const expected = Buffer.from(this.#sign(parts));
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  }
}
