// Ask Python in a Web Worker: `lockstep.live.ask({do, ...})`. The first request loads Python.
// A worker that exceeds its time limit, or whose memory has grown too large, is ended; the next request starts another.
window.lockstep ??= {};
lockstep.live = (() => {
  const LARGEST = 700e6; // bytes of memory above which a worker is ended
  const { parts: count, bytes } = reader.data.live;
  const parts = [];
  let worker = null, starting = null, last = 0, heap = 0, about = "", unstarted = () => {};
  const waiting = new Map();

  const possible = "Suspending" in WebAssembly && "DecompressionStream" in window;

  // Every request that waits for the start hears how far it is, also one that comes later.
  const hearing = new Set();
  let doing = "";
  function say(words) {
    doing = words;
    for (const heard of hearing) heard(words);
  }

  function take(number, part) { parts[number] = part; }

  /** Resolve once the script at `address` has run. */
  function script(address) {
    return new Promise((loaded, failed) => {
      const made = document.createElement("script");
      made.src = address;
      made.onload = loaded;
      made.onerror = () => failed(new Error(`${address} cannot be read`));
      document.head.append(made);
    });
  }

  // Load scripts one after another, so that none keeps the page busy for long; call `arrived(part, share)` after each.
  async function load(arrived) {
    for (let number = 0; number < count; number++) {
      if (!parts[number]) await script(`assets/live/${number}.js`);
      arrived(parts[number], (number + 1) / count);
    }
  }

  function end() {
    worker?.terminate();
    worker = starting = null;
    unstarted(new Error("ended"));
    for (const { failed } of waiting.values()) failed(new Error("ended"));
    waiting.clear();
  }

  async function begin() {
    const address = URL.createObjectURL(new Blob([`(${lockstepWorker})()`], { type: "text/javascript" }));
    const begun = worker = new Worker(address);
    const ready = new Promise((done, failed) => {
      unstarted = failed;
      begun.onerror = (event) => failed(new Error(event.message));
      begun.onmessage = ({ data }) => (data.ready ? done(data.ready) : failed(new Error(data.failure)));
    });
    const loaded = load((part, share) => {
      if (worker !== begun) throw new Error("ended");
      say(`Loading Python: ${Math.round(100 * share)} %`);
      begun.postMessage({ part });
    }).then(() => {
      say("Starting Python");
      begun.postMessage({ last: true });
    });
    [about] = await Promise.all([ready, loaded]);
    URL.revokeObjectURL(address);
    worker.onmessage = ({ data }) => {
      const { done, failed } = waiting.get(data.number) ?? {};
      waiting.delete(data.number);
      if (data.failure) failed?.(new Error(data.failure));
      else done?.([data.answer, ...data.frames]);
      heap = data.heap ?? 0;
      if (heap > LARGEST && !waiting.size) end();
    };
  }

  /** Load and start Python, unless it was started before. A page calls this when it expects a request. */
  async function start() { await (starting ??= begin().catch((error) => { end(); throw error; })); }

  /** Return [answer, frame, ...]. Call heard(words) with what is happening; end the worker after `seconds` of work. */
  async function ask(request, { heard = () => {}, seconds = Infinity } = {}) {
    hearing.add(heard);
    if (starting) heard(doing);
    try { await start(); } finally { hearing.delete(heard); }
    heard("Computing");
    const number = ++last;
    return new Promise((done, failed) => {
      const late = seconds < Infinity && setTimeout(() => { end(); }, 1000 * seconds);
      const ended = (act) => (value) => { clearTimeout(late); act(value); };
      waiting.set(number, { done: ended(done), failed: ended(failed) });
      worker.postMessage({ number, request });
    });
  }

  return { possible, megabytes: Math.round(bytes / 1e6), heap: () => heap, about: () => about, script, take, start, ask, end };
})();
