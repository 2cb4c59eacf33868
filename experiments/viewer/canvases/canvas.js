// What all canvases share: the page's clock, the decoder for experiments/viewer/column_codec.py, colours, axes and units.
// __init__.py puts it before a canvas's own file.

const FONT = '"Source Sans", "Source Sans Pro", system-ui, sans-serif';

// A clock that canvases follow. `seconds` is a moment of the run, or null if none is selected. `set` jumps to a moment and
// `play` advances from it; both notify everyone who called `listen`. `source` is the caller, so that it can ignore its own
// changes.
class Clock {
  constructor() {
    this.seconds = null;
    this.playing = false;
    this.rate = 0; // seconds of the run per second of real time
    this.listeners = new Set();
  }

  listen(heard) {
    this.listeners.add(heard);
    return () => this.listeners.delete(heard);
  }

  set(seconds, source = null) {
    this.stopped();
    this.go(seconds, source);
  }

  // Advance until `until`, at rate(seconds) at each moment. The clock stops while the page is hidden.
  play(rate, until, source = null) {
    this.stopped();
    this.playing = true;
    let before = performance.now();
    const pass = (now) => {
      const passed = Math.min(Math.max(now - before, 0), 100) / 1000;
      before = now;
      this.rate = rate(this.seconds);
      const next = Math.min(until, this.seconds + passed * this.rate);
      if (next >= until) this.stopped();
      else this.frame = requestAnimationFrame(pass);
      this.go(next, source);
    };
    this.frame = requestAnimationFrame(pass);
    this.go(this.seconds, source);
  }

  pause(source = null) {
    if (this.playing) this.set(this.seconds, source);
  }

  stopped() {
    cancelAnimationFrame(this.frame);
    this.playing = false;
    this.rate = 0;
  }

  go(seconds, source) {
    this.seconds = seconds;
    for (const heard of [...this.listeners]) heard(this, source);
  }
}

// The page's clock. Curves whose lines have seconds follow it, and so do timelines whose frame has `clock`.
globalThis.lockstepClock ??= new Clock();

// Add the methods of `parts` to a canvas class. Each part is a class in its own file. Throw an error if two methods have the
// same name, because one would silently replace the other.
function mixin(Canvas, ...parts) {
  for (const part of parts) {
    for (const [name, method] of Object.entries(Object.getOwnPropertyDescriptors(part.prototype))) {
      if (name === "constructor") continue;
      if (Object.hasOwn(Canvas.prototype, name)) throw new Error(`${Canvas.name} gets ${name} of ${part.name}, and has one already`);
      Object.defineProperty(Canvas.prototype, name, method);
    }
  }
}

// Return the function mount(element, bytes, events) for a canvas class: new Canvas(element) with show, redraw and stop.
function mounting(Canvas) {
  const canvases = new WeakMap();
  return (element, bytes, events = {}) => {
    let canvas = canvases.get(element);
    if (!canvas) {
      canvases.set(element, (canvas = new Canvas(element)));
      canvas.unsave = offerSaving(canvas, element);
    }
    canvas.events = events;
    if (bytes) canvas.show(bytes);
    return {
      show: (other) => canvas.show(other),
      redraw: () => canvas.redraw(),
      svg: () => svgOf(canvas),
      stop: () => { canvas.stop(); canvas.unsave(); canvases.delete(element); },
    };
  };
}

// Uint8Array -> {header..., columns: {name: typed array}}
function decode(bytes) {
  const copy = bytes.byteOffset % 4 ? bytes.slice() : bytes;
  const { buffer, byteOffset } = copy;
  const length = new DataView(buffer, byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(copy.subarray(4, 4 + length)));
  const types = { Uint8: Uint8Array, Uint16: Uint16Array, Uint32: Uint32Array, Int32: Int32Array, Float32: Float32Array };
  const columns = {};
  for (const [name, [type, offset, count]] of Object.entries(header.columns)) {
    columns[name] = new types[type](buffer, byteOffset + 4 + length + offset, count);
  }
  return { ...header, columns };
}

function asBytes(data) {
  if (data instanceof Uint8Array) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return null;
}

function pageColours(element) {
  const style = getComputedStyle(element);
  const of = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const text = of("--st-text-color", "#1B2733"), page = of("--st-background-color", "#FFFFFF");
  return {
    text,
    page,
    panel: of("--st-secondary-background-color", "#F4F6F8"),
    border: of("--st-border-color", "#DDE3E9"),
    muted: COLOURS.muted,
    quiet: mixed(text, page, COLOURS.quiet),
  };
}

// A mix of two colours, with this share of the first one.
function mixed(one, other, share) {
  const [a, b] = [rgb(one), rgb(other)];
  return `#${a.map((part, i) => Math.round(part * share + b[i] * (1 - share)).toString(16).padStart(2, "0")).join("")}`;
}

function rgb(colour) {
  if (!colour.startsWith("#")) return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  const hex = colour.replace("#", "");
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

const edges = new Map();

// The edge colour of an area: `colour` mixed with just enough of the text colour to contrast at least 3:1 with the page.
function edgeOf(colour, { page, text }) {
  const key = `${colour} ${page}`;
  if (edges.has(key)) return edges.get(key);
  const light = ([r, g, b]) => [r, g, b].map((one) => (one <= 10 ? one / 3294.6 : ((one / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, one, n) => sum + one * [0.2126, 0.7152, 0.0722][n], 0.05);
  const to = rgb(text), ground = light(rgb(page));
  let mixed = rgb(colour);
  for (let share = 0; share <= 1; share += 0.05) {
    mixed = rgb(colour).map((one, n) => Math.round(one + (to[n] - one) * share));
    const ratio = light(mixed) / ground;
    if (Math.max(ratio, 1 / ratio) >= 3.05) break;
  }
  edges.set(key, `rgb(${mixed.join(", ")})`);
  return edges.get(key);
}

// 0.00123 -> "1.23 ms"
function inSeconds(value) {
  if (!value) return "0 s";
  const size = Math.abs(value);
  const [unit, name] = size >= 0.9995 ? [1, "s"] : size >= 0.9995e-3 ? [1e-3, "ms"] : size >= 0.9995e-6 ? [1e-6, "µs"] : [1e-9, "ns"];
  const shown = value / unit;
  return `${Math.abs(shown) >= 1000 ? Math.round(shown).toLocaleString("en") : Number(shown.toPrecision(3))} ${name}`;
}

// Times of a schedule have no unit: 12.5 -> "12.5"
function inUnits(value) { return Number(value.toPrecision(6)).toLocaleString("en"); }

// About `count` ticks, at 1, 2 or 5 times a power of ten.
function ticks(from, to, count) {
  const span = to - from;
  if (!(span > 0)) return { step: 1, at: [] };
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const at = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) at.push(i * step);
  return { step, at };
}

// Return the function that labels a time axis: one unit, chosen by the largest value, and the digits that the step needs.
function timeLabels(step, largest) {
  const [unit, name] = largest >= 1 ? [1, "s"] : largest >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / unit) + 1e-9)));
  return (value) => `${(value / unit).toFixed(digits)} ${name}`;
}

// While `element` has the focus, run the action in `keys` for a pressed key, and nothing else.
function obey(element, keys) {
  element.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
}

// Make Escape close a card wherever the focus is. Return a function that removes the listener.
function closing(card, close) {
  const press = (event) => { if (event.key === "Escape" && !card.hidden) close(); };
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}

// Screen px per px of the element; not 1 on a page enlarged for a presentation.
function zoomOf(element) { return element.getBoundingClientRect().width / element.offsetWidth || 1; }

// The pointer's position in px of the element.
function within(element, { clientX, clientY }) {
  const box = element.getBoundingClientRect(), zoom = zoomOf(element);
  return [(clientX - box.left) / zoom, (clientY - box.top) / zoom];
}

// Keep a canvas as wide as its box, at the screen's resolution. Calls `draw` at most once per frame.
function fit(canvas, box, height, draw) {
  const state = { width: 0, height, ratio: 1, frame: 0, draw };
  const paint = () => {
    state.frame = 0;
    const ratio = (window.devicePixelRatio || 1) * zoomOf(box);
    const width = Math.floor(box.clientWidth);
    if (width < 40) return;
    if (width !== state.width || ratio !== state.ratio || canvas.height !== Math.round(state.height * ratio)) {
      Object.assign(state, { width, ratio });
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(state.height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${state.height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, state.height);
    draw(context, width, state.height, ratio);
  };
  state.request = () => { if (!state.frame) state.frame = requestAnimationFrame(paint); };
  state.observer = new ResizeObserver(state.request);
  state.observer.observe(box);
  state.stop = () => { state.observer.disconnect(); cancelAnimationFrame(state.frame); };
  return state;
}
