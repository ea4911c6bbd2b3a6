// Asking the server; or, in a saved page, looking answers up. While a page is being saved, every
// answer is kept.

const savedElement = document.getElementById("saved");
export const saved = savedElement ? JSON.parse(savedElement.textContent) : null;

export const MOST_BYTES = 1 << 20; // of a text; the server says so too
// A server that refuses a body before reading it looks like one that is gone.
const MOST_BODY = 6 * MOST_BYTES;

let token = "";
let recording = null;

// The token comes in the fragment once, and is kept for reloads of this tab only.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  try {
    token = given.get("token") ?? sessionStorage.getItem("byteweld-token") ?? "";
    sessionStorage.setItem("byteweld-token", token);
  } catch {
    token = given.get("token") ?? ""; // no storage: the token lives as long as the page
  }
  if (given.has("token")) {
    given.delete("token");
    history.replaceState(null, "", `#${given}`);
  }
}

// A question's key. Long texts stand by their length and a digest of 53 bits.
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

// Numbers that came as base64 of one, two or four bytes each, little-endian: every browser's order.
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
    throw new ApiError("the studio does not answer: is it still running in the terminal?");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new ApiError(said.error ?? `the studio answered ${response.status}`);
}

const asJson = { "Content-Type": "application/json" };

export async function ask(name, body = {}) {
  const question = JSON.stringify(body);
  if (question.length > MOST_BODY) {
    throw new ApiError("a text has at most 1,048,576 bytes here; take a part of it");
  }
  if (saved) {
    const key = keyOf(name, body);
    if (Object.hasOwn(saved.answers, key)) return saved.answers[key];
    throw new ApiError("This is a saved page: it holds the view it was saved from, and no more.");
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

// Do some work again and keep all answers it needs; returns the saved page as text.
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
