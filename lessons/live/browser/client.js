// What a page asks Python in a Web Worker: `lockstep.live.ask({do, ...})`. The first request loads all of it.
// A worker that takes longer than it may, or whose memory has grown, is ended; the next request starts another.
window.lockstep ??= {};
lockstep.live = (() => {
  const LARGEST = 700e6; // bytes of memory with which a worker is started again
  const { parts: count, bytes } = reader.data.live;
  const parts = [];
  let loading = null, worker = null, starting = null, last = 0, heap = 0, unstarted = () => {};
  const waiting = new Map();

  const possible = "Suspending" in WebAssembly && "DecompressionStream" in window;

  function take(number, part) { parts[number] = part; }

  // Scripts, one after another, so that no reading of one holds up the page.
  async function load(heard) {
    for (let number = 0; number < count; number++) {
      await new Promise((loaded, failed) => {
        const script = document.createElement("script");
        script.src = `assets/live/${number}.js`;
        script.onload = loaded;
        script.onerror = () => failed(new Error(`assets/live/${number}.js cannot be read`));
        document.head.append(script);
      });
      heard(`Loading Python: ${Math.round((100 * (number + 1)) / count)} %`);
    }
  }

  function end() {
    worker?.terminate();
    worker = starting = null;
    unstarted(new Error("ended"));
    for (const { failed } of waiting.values()) failed(new Error("ended"));
    waiting.clear();
  }

  async function begin(heard) {
    loading ??= load(heard).catch((error) => { loading = null; throw error; });
    await loading;
    heard("Starting Python");
    const address = URL.createObjectURL(new Blob([`(${lockstepWorker})()`], { type: "text/javascript" }));
    worker = new Worker(address);
    await new Promise((done, failed) => {
      unstarted = failed;
      worker.onerror = (event) => failed(new Error(event.message));
      worker.onmessage = ({ data }) => (data.ready ? done() : failed(new Error(data.failure)));
      worker.postMessage({ parts });
    });
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

  /** Return [answer, frame, ...]. heard(words) says what is going on; after `seconds` of work the worker is ended. */
  async function ask(request, { heard = () => {}, seconds = Infinity } = {}) {
    starting ??= begin(heard).catch((error) => { end(); throw error; });
    await starting;
    heard("Computing");
    const number = ++last;
    return new Promise((done, failed) => {
      const late = seconds < Infinity && setTimeout(() => { end(); }, 1000 * seconds);
      const ended = (act) => (value) => { clearTimeout(late); act(value); };
      waiting.set(number, { done: ended(done), failed: ended(failed) });
      worker.postMessage({ number, request });
    });
  }

  return { possible, megabytes: Math.round(bytes / 1e6), heap: () => heap, take, ask, end };
})();
