// In the Web Worker: Python. It gets the archive, says when it is ready, and then answers one request after another.
// A function, since a page on a disk makes its worker of text (client.js).
function lockstepWorker() {
  const files = new Map();
  let engine = null;

  function bytesOf(base64) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
    const letters = atob(base64), bytes = new Uint8Array(letters.length);
    for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
    return bytes;
  }

  // The archive (lessons/live/archive.py) -> `files`: path -> bytes.
  async function unpack(parts) {
    const plain = await new Response(new Blob(parts.map(bytesOf)).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
    const length = new DataView(plain).getUint32(0, true), start = 4 + length;
    const index = JSON.parse(new TextDecoder().decode(new Uint8Array(plain, 4, length)));
    for (const [path, [from, to]] of Object.entries(index)) files.set(path, new Uint8Array(plain, start + from, to - from));
  }

  // What Pyodide asks the network for is in the archive; there is nothing else that it may have.
  function answerFetch(request) {
    const name = String(request.url ?? request).split("/").at(-1).split("?")[0];
    if (!files.has(name)) return Promise.reject(new TypeError(`${name} is not in the archive`));
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return Promise.resolve(new Response(files.get(name), { headers: { "Content-Type": type } }));
  }

  async function start(parts) {
    await unpack(parts);
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
    const versions = await engine.start.callPromising();
    return { versions, heap: () => python._module.HEAP8.length };
  }

  let ready = null;

  self.onmessage = async ({ data: { parts, number, request } }) => {
    try {
      if (parts) {
        ready = await start(parts);
        postMessage({ ready: ready.versions });
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
