// What the studio's modules ask their server, answered here by the engine in a worker. The names are
// those of the studio's own api.js.

import { Kinds } from "./kinds.js";

export const facts = JSON.parse(document.getElementById("facts").textContent);
export const saved = null;
export const MAX_BYTES = facts.engine.limits.text_bytes;
const MAX_FILE = facts.engine.limits.file_bytes;
const SECONDS = 60; // that a request may take; the largest public vocabularies open in a few

export class ApiError extends Error {}

// ---------------------------------------------------------------- the worker

let compiled = null; // a promise of the module
let worker = null; // a promise of a worker that is ready
let last = Promise.resolve(); // the request before

async function unpack(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return unzipped(new Blob([bytes]), Infinity);
}

// Decompress gzip, up to a limit.
async function unzipped(blob, most) {
  const reader = blob.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const chunks = [];
  for (let size = 0;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(chunks).arrayBuffer());
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new ApiError(tooLarge());
    }
    chunks.push(value);
  }
}

async function start() {
  compiled ??= unpack("wasm").then((bytes) => WebAssembly.compile(bytes));
  const module = await compiled;
  const source = document.getElementById("worker").textContent;
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const started = new Worker(address);
  await send(started, { module, facts: facts.engine });
  URL.revokeObjectURL(address);
  return started;
}

// Send a message and wait for its answer. A worker that takes too long is ended.
function send(to, message, transfer = []) {
  return new Promise((resolve, reject) => {
    const fail = (error) => {
      clearTimeout(timer);
      to.terminate();
      worker = null;
      reject(new ApiError(error));
    };
    const timer = setTimeout(
      () => fail(`the engine was stopped after ${SECONDS} seconds`),
      SECONDS * 1000,
    );
    to.onerror = (event) => {
      event.preventDefault();
      fail(`the engine failed: ${event.message}`);
    };
    to.onmessage = ({ data }) => {
      if (data.isFatal) return fail(`the engine failed, maybe for lack of memory: ${data.error}`);
      clearTimeout(timer);
      if (data.error === undefined) resolve(data.answer);
      else reject(new ApiError(data.error));
    };
    to.postMessage(message, transfer);
  });
}

// One request at a time, so that each has its own time limit.
function request(name, fields, transfer) {
  const mine = last.then(async () => {
    const isNew = worker === null;
    worker ??= start();
    let running;
    try {
      running = await worker;
    } catch (error) {
      worker = null;
      throw error;
    }
    if (isNew && current && name !== "open") {
      await send(running, { name: "open", fields: await fieldsOf(current) }); // the engine is new
    }
    return send(running, { name, fields }, transfer);
  });
  last = mine.catch(() => {});
  return mine;
}

// ---------------------------------------------------------------- vocabularies

let current = null; // the open vocabulary: a file and options

const tooLarge = () =>
  `the file has more than ${MAX_FILE >> 20} MB; no vocabulary that is known to us does`;

// Read a file, decompressed.
async function read(file) {
  if (file.size > MAX_FILE) throw new ApiError(tooLarge());
  const start = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (start[0] !== 0x1f || start[1] !== 0x8b) return new Uint8Array(await file.arrayBuffer());
  try {
    return await unzipped(file, MAX_FILE);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError(`the file cannot be decompressed: ${error.message}`);
  }
}

async function fieldsOf({ file, sidecar, pattern }) {
  const options = { pattern };
  if (sidecar) options.sidecar = new TextDecoder().decode(await read(sidecar));
  return { file: await read(file), options };
}

// Open a vocabulary file. `sidecar` is the file that byteweld writes beside a rank file; `pattern` is
// {name}, {regex} or "none". Returns what the file is, or `needs_pattern`.
export async function upload(file, { sidecar = null, pattern = null } = {}) {
  const given = { file, sidecar, pattern };
  const fields = await fieldsOf(given);
  const answer = await request("open", fields, [fields.file.buffer]);
  if (!answer.needs_pattern) current = given;
  return answer;
}

// Whether a file begins like a vocabulary; anything else is text.
export async function isVocabulary(file) {
  if (/\.(tiktoken|byteweld\.json|gz)$/.test(file.name)) return true;
  const head = new TextDecoder().decode(await file.slice(0, 4096).arrayBuffer());
  if (/^[A-Za-z0-9+/]+={0,2} [0-9]+\n[A-Za-z0-9+/]+={0,2} [0-9]+/.test(head)) return true;
  return /^\s*\{/.test(head) && /"(added_tokens|pre_tokenizer|truncation|model)"\s*:/.test(head);
}

// Whether the part of a file that would be shown is UTF-8.
export async function isText(file) {
  const bytes = await file.slice(0, MAX_BYTES).arrayBuffer();
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

// ---------------------------------------------------------------- what the studio's modules use

const kinds = new Kinds(facts.kinds);

export async function ask(name, fields) {
  if (name === "tokens") {
    if (fields.text.length > MAX_BYTES) {
      throw new ApiError(
        `text has more than ${MAX_BYTES.toLocaleString("en")} bytes; use a part of it`,
      );
    }
    const answer = await request("tokens", {
      text: fields.text,
      special: fields.special_text !== "text",
    });
    let characters = 0;
    for (const _ of fields.text) characters++;
    return { ...answer, characters };
  }
  if (name === "token") {
    const answer = await request("token", { id: fields.id });
    return { ...answer, script: kinds.ofToken(answer.bytes) };
  }
  throw new ApiError(`this page cannot answer ${name}; byteweld studio can`);
}

// Numbers arrive as arrays.
export const unpacked = (numbers) => numbers;
