/** Requests that are answered without the user's code. */
import { PROTOCOL_VERSION } from './wire.mjs';

const LANGUAGES = {
  javascript: { mimetype: 'text/javascript', file_extension: '.js' },
  typescript: { mimetype: 'text/typescript', file_extension: '.ts' },
};

/** By the type of the request: what makes the content of its reply. */
export function simpleAnswers(language) {
  const info = {
    status: 'ok',
    protocol_version: PROTOCOL_VERSION,
    implementation: 'codeworkspace-node',
    implementation_version: '1',
    language_info: { name: language, version: process.versions.node, ...LANGUAGES[language] },
    banner: `Node.js ${process.versions.node} (${language})`,
    help_links: [],
  };
  return {
    kernel_info_request: () => info,
    is_complete_request: () => ({ status: 'unknown' }),
    comm_info_request: () => ({ status: 'ok', comms: {} }),
    history_request: () => ({ status: 'ok', history: [] }),
    inspect_request: () => ({ status: 'ok', found: false, data: {}, metadata: {} }),
    complete_request: ({ content: { cursor_pos: position } }) => ({
      status: 'ok',
      matches: [],
      cursor_start: position,
      cursor_end: position,
      metadata: {},
    }),
  };
}

export function fileExtension(language) {
  return LANGUAGES[language].file_extension;
}
