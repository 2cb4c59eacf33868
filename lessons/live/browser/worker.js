// Python in the Web Worker. It receives the archive in parts, says when it is ready, and then answers one request
// after another.
// This is a function because a page opened from disk creates its worker from text (client.js).
function lockstepWorker() {
  const files = new Map();
  let engine = null;

  function bytesOf(base64) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
    const letters = atob(base64), bytes = new Uint8Array(letters.length);
    for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
    return bytes;
  }

  // `files` has the archive (lessons/live/archive.py): path -> bytes. Parts are decompressed as they arrive.
  const gunzip = new DecompressionStream("gzip"), parts = gunzip.writable.getWriter();
  const plain = new Response(gunzip.readable).arrayBuffer();

  async function unpack() {
    const whole = await plain, length = new DataView(whole).getUint32(0, true), start = 4 + length;
    const index = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, length)));
    for (const [path, [from, to]] of Object.entries(index)) files.set(path, new Uint8Array(whole, start + from, to - from));
  }

  // All files that Pyodide asks the network for are in the archive; it gets no others.
  function answerFetch(request) {
    const name = String(request.url ?? request).split("/").at(-1).split("?")[0];
    if (!files.has(name)) return Promise.reject(new TypeError(`${name} is not in the archive`));
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return Promise.resolve(new Response(files.get(name), { headers: { "Content-Type": type } }));
  }

  async function start() {
    await unpack();
    self.fetch = answerFetch;
    for (const name of ["pyodide.asm.js", "pyodide.js"]) {
      const address = URL.createObjectURL(new Blob([files.get(name)], { type: "text/javascript" }));
      self.importScripts(address);
      URL.revokeObjectURL(address);
    }
    const python = await self.loadPyodide({ indexURL: "none:/", stdout: () => {}, stderr: () => {} });
    for (const [path, bytes] of files) {
      if (!path.startsWith("python/")) continue;
      const place = `/${path}`;
      python.FS.mkdirTree(place.slice(0, place.lastIndexOf("/")));
      python.FS.writeFile(place, bytes);
    }
    files.clear();
    await python.runPythonAsync('import sys; sys.path.insert(0, "/python"); import engine');
    engine = python.pyimport("engine");
    const about = await engine.start.callPromising();
    return { about, heap: () => python._module.HEAP8.length };
  }

  let ready = null;

  self.onmessage = async ({ data: { part, last, number, request } }) => {
    try {
      if (part) {
        parts.write(bytesOf(part));
        return;
      }
      if (last) {
        parts.close();
        ready = await start();
        postMessage({ ready: ready.about });
        return;
      }
      const found = await engine.answer.callPromising(JSON.stringify(request));
      const [words, ...frames] = found.toJs();
      found.destroy();
      postMessage({ number, answer: JSON.parse(words), frames, heap: ready.heap() });
    } catch (error) {
      postMessage({ number, failure: String(error.message ?? error) });
    }
  };
}
