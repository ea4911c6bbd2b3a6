// Runs the engine outside the page, so that a large file never freezes it and hard work can be ended.
// The first message has the compiled module and the facts; each later one is a request.

const decoder = new TextDecoder();
let engine = null;

// Write an input to the engine's memory.
function give(number, bytes) {
  const at = engine.input(number, bytes.length);
  if (at === 0) throw new RangeError("out of memory");
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
}

// Copy the answer of a call out of the engine's memory.
function take(isDone) {
  const at = engine.output();
  const bytes = engine.memory.buffer.slice(at, at + engine.output_length());
  if (isDone) return bytes;
  throw new Refusal(decoder.decode(bytes));
}

class Refusal extends Error {}

const json = (bytes) => JSON.parse(decoder.decode(bytes));
const utf8 = new TextEncoder();

const REQUESTS = {
  open({ file, options }) {
    give(0, file);
    give(1, utf8.encode(JSON.stringify(options)));
    return json(take(engine.open()));
  },
  tokens({ text, special }) {
    give(0, utf8.encode(text));
    const numbers = new Uint32Array(take(engine.encode(special)));
    const [count] = numbers;
    return {
      ids: numbers.slice(1, 1 + count),
      lengths: numbers.slice(1 + count, 1 + 2 * count),
      special: Array.from(numbers.subarray(1 + 2 * count)),
    };
  },
  token({ id }) {
    return json(take(engine.token(id)));
  },
};

addEventListener("message", async ({ data }) => {
  try {
    if (data.module) {
      engine = (await WebAssembly.instantiate(data.module, {})).exports;
      give(0, utf8.encode(JSON.stringify(data.facts)));
      take(engine.configure());
      postMessage({ answer: null });
    } else postMessage({ answer: REQUESTS[data.name](data.fields) });
  } catch (error) {
    // Anything but a refusal leaves the engine in an unknown state.
    postMessage({ error: error.message, isFatal: !(error instanceof Refusal) });
  }
});
