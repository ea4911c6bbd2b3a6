// Requests to the server; in a saved page, lookups of saved answers. While a page is being saved,
// every answer is recorded.

const savedElement = document.getElementById("saved");
export const saved = savedElement ? JSON.parse(savedElement.textContent) : null;

export const MAX_BYTES = 1 << 20; // of text; the server has the same limit
// Checked here, since a server that rejects a body before reading it looks like one that is down.
const MAX_BODY = 6 * MAX_BYTES;

let token = "";
let recording = null;

// The token arrives in the fragment and is stored only for reloads of this tab.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  try {
    token = given.get("token") ?? sessionStorage.getItem("byteweld-token") ?? "";
    sessionStorage.setItem("byteweld-token", token);
  } catch {
    token = given.get("token") ?? ""; // no storage: the token lasts as long as the page
  }
  if (given.has("token")) {
    given.delete("token");
    history.replaceState(null, "", `#${given}`);
  }
}

// The key of a request. Long strings are replaced by their length and a 53-bit digest.
function keyOf(name, body) {
  return `${name} ${
    JSON.stringify(body, (_, value) =>
      typeof value === "string" && value.length > 200 ? digest(value) : value)
  }`;
}

function digest(text) {
  let high = 0xdeadbeef, low = 0x41c6ce57;
  for (let n = 0; n < text.length; n++) {
    const unit = text.charCodeAt(n);
    high = Math.imul(high ^ unit, 2654435761);
    low = Math.imul(low ^ unit, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  return `${text.length}:${(4294967296 * (2097151 & low) + (high >>> 0)).toString(36)}`;
}

// Unpack base64 numbers of 1, 2 or 4 bytes, little-endian like every platform with a browser.
export function unpacked({ width, data }) {
  const Numbers = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[width];
  return Uint32Array.from(new Numbers(fromBase64(data).buffer));
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let n = 0; n < binary.length; n++) bytes[n] = binary.charCodeAt(n);
  return bytes;
}

export class ApiError extends Error {}

async function post(path, body, headers) {
  let response;
  try {
    response = await fetch(`/api/${path}`, {
      method: "POST",
      headers: { "X-Token": token, ...headers },
      body,
    });
  } catch {
    throw new ApiError("the studio does not respond; is it still running in the terminal?");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new ApiError(answer.error ?? `the studio responded with status ${response.status}`);
}

const asJson = { "Content-Type": "application/json" };

export async function ask(name, body = {}) {
  const question = JSON.stringify(body);
  if (question.length > MAX_BODY) {
    throw new ApiError("text has more than 1,048,576 bytes; use a part of it");
  }
  if (saved) {
    const key = keyOf(name, body);
    if (Object.hasOwn(saved.answers, key)) return saved.answers[key];
    throw new ApiError("this is a saved page; it contains only the view it was saved from");
  }
  const answer = await (await post(name, question, asJson)).json();
  recording?.set(keyOf(name, body), answer);
  return answer;
}

export async function upload(file) {
  const headers = {
    "Content-Type": "application/octet-stream",
    "X-Name": encodeURIComponent(file.name),
  };
  return (await post("upload", file, headers)).json();
}

// Repeat some work, record every answer it requests, and return the saved page as HTML.
export async function savePage(state, title, work) {
  recording = new Map();
  try {
    await work();
    const answers = Object.fromEntries(recording);
    const body = JSON.stringify({ state: JSON.stringify(state), title, answers });
    return await (await post("page", body, asJson)).text();
  } finally {
    recording = null;
  }
}
