// The timeline of a run or a schedule: one lane per rank, one bar per span, even for more than 50,000 spans.
//
// If few spans are in view, each is drawn, with its label and the arrows of messages. If there are many, each pixel column is
// a stack of the shares of time that each kind takes. The strip above shows the whole run and the position of the window.
//
// A cursor sweeps across the window while the run plays, or is dragged along the axis. It has its own canvas on top, so that
// moving it costs the same however many spans lie below.
//
// This file holds a timeline's state and takes over its frames; its behaviour is mixed in from lanes/.

const GUTTER = 84;   // px; width of the lanes' names
const STRIP = 16;    // px; height of the overview
const TOP = 34;      // px; top of the first lane
const AXIS = 22;     // px; height of the time axis
const TALLEST = 450; // px; greatest height of all lanes, beyond which they scroll
const READABLE = 14; // spans per lane up to which a run opens as a whole

// All timelines of the page. Those with the same `together` share one window.
globalThis.lockstepTimelines ??= new Set();
globalThis.lockstepTouched ??= false; // true if the reader caused trouble in a timeline, so that the next run is its result

class Timeline {
  constructor(root) {
    this.box = root.querySelector(".timeline");
    this.stage = root.querySelector(".stage");
    this.canvas = root.querySelector("canvas");
    this.playButton = root.querySelector('[data-do="play"]');
    this.speedButton = root.querySelector('[data-do="speed"]');
    this.tip = root.querySelector(".tip");
    this.status = root.querySelector(".status");
    this.legend = root.querySelector(".legend");
    this.keysButton = root.querySelector('[data-do="keys"]');
    this.keys = root.querySelector(".keys");
    this.messagesButton = root.querySelector('[data-do="messages"]');
    this.gone = new AbortController();
    this.opened = () => this.play();
    this.scroll = 0;
    this.arrows = true;
    this.pointers = new Map();
    this.surface = fit(this.canvas, this.stage, 200, (...args) => this.draw(...args));
    this.overlay = fit(root.querySelector(".overlay"), this.stage, 200, (...args) => {
      this.drawCursor(...args);
      if (this.played) this.say(); // in the same frame, so that picture and words agree on a busy machine, too
    });
    this.topology = new Topology(root, this);
    this.machinesButton = root.querySelector('[data-do="machines"]');
    if (matchMedia("(max-width: 640px)").matches) this.machinesButton.setAttribute("aria-pressed", "false"); // on a phone, the machines fill a screen of their own
    this.clock = new Clock();
    this.chipped = root.querySelector(".chips");
    this.speed = 0;
    this.hear();
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.calm.onchange = () => { this.clock.pause(this); this.offer(); };
    this.why = new Why(this, root);
    this.learned = new Learned(this, root);
    this.trouble = new Trouble(this, root);
    this.rank = new ChosenRank(this);
    this.offer();
    this.listen(root);
    lockstepTimelines.add(this);
  }

  stop() {
    lockstepTimelines.delete(this);
    this.gone.abort();
    this.surface.stop();
    this.overlay.stop();
    this.topology.stop();
    this.learned.stop();
    this.calm.onchange = null;
    this.deaf();
    this.unclosed();
    if (!this.clock.listeners.size) this.clock.stopped();
    clearTimeout(this.later);
    cancelAnimationFrame(this.morph?.frame);
  }

  redraw() {
    this.surface.request();
    this.overlay.request();
    this.topology.request();
    this.learned.redraw();
  }

  show(bytes) {
    const frame = decode(bytes);
    const spans = decode(frame.columns.timeline);
    const messages = decode(frame.columns.messages);
    const again = this.run === frame.run, before = again || this.calm.matches ? null : Morph.of(this);
    this.morph?.end();
    this.trouble.end();
    const { run, lanes: names, notes = [], ended = [], kinds, look, exact, spans: count } = frame;
    Object.assign(this, { run, names, notes, ended, kinds, look, exact, count, spans, messages, coarse: frame.columns.shares });
    const { whole = "whole run", readable = READABLE, brief = false, work = 2, unit = "s", opening = 0, flags = [], chips = [], colours } = frame;
    this.clickable = frame.clickable ?? false;
    this.together = frame.together;
    this.saved = frame.saved;
    this.openAt = frame.open ?? (opening ? [0, opening] : null); // recorded frames have `opening` instead
    const clock = frame.clock ? lockstepClock : this.clock === lockstepClock ? new Clock() : this.clock;
    if (clock !== this.clock) { this.clock = clock; this.hear(); }
    Object.assign(this, { whole, readable, brief, work, flags, colours, inTime: unit === "s" ? inSeconds : inUnits, timed: unit === "s" });
    const total = Math.max(frame.seconds, 1e-9), same = again && total === this.total; // a schedule's axis grows with the one it is compared with
    this.total = total;
    this.end = frame.end ?? this.total;
    this.index();
    this.goesOn = spans.columns.start.some((_, n) => this.endless(n));
    if (!same) {
      [this.from, this.to] = this.opening();
      this.scroll = 0;
      this.leave();
      for (const one of lockstepTimelines) if (one !== this && this.together && one.together === this.together) one.see(this.from, this.to);
    }
    this.offerPlaces(chips);
    const touched = frame.trouble && matchMedia("(pointer: coarse)").matches; // fingers need taller lanes
    this.pitch = Math.max(7, Math.min(touched ? 44 : 30, Math.floor(300 / this.names.length)));
    this.surface.height = this.overlay.height = TOP + Math.min(this.names.length * this.pitch, TALLEST) + AXIS;
    this.topology.show(frame.machines, frame.columns.held, this.surface.height + (frame.columns.why ? 84 : 52));
    this.machinesButton.hidden = !frame.machines;
    this.topology.box.hidden = !frame.machines || this.machinesButton.getAttribute("aria-pressed") === "false";
    this.messagesButton.hidden = !messages.columns.sent.length;
    this.stage.setAttribute("aria-label", frame.description);
    this.offerLegend();
    this.strip = null;
    this.learned.show(frame.learned, frame.columns);
    this.why.show(frame, again);
    this.trouble.show(frame);
    if (!again && frame.critical) this.why.mark(true);
    if (!again && frame.why) this.why.unfold(...frame.why);
    if (!again && (frame.why || frame.critical)) this.comeIntoView();
    this.redraw();
    this.say();
    const play = !again && (frame.play || lockstepTouched) && !this.calm.matches;
    if (!again) globalThis.lockstepTouched = false;
    if (before?.lanes === names.length && before.kinds === kinds.join() && !this.coarse) this.morph = new Morph(this, before, () => play && this.begin());
    else if (play) this.begin();
  }

  // Play, but not before the page's curtain has opened (opening.js), since no one would see it.
  begin() {
    if (!document.documentElement.classList.contains("opening")) this.play();
    else addEventListener("opened", this.opened, { once: true, signal: this.gone.signal });
  }

  // Show buttons that jump to places in the run: [{text, from, to}].
  offerPlaces(chips) {
    this.chipped.hidden = !chips.length;
    const go = (text, from, to) => {
      this.leave();
      this.window(from, to);
      if (text === "longest wait") this.why.pin(); // and explains it
    };
    this.chipped.replaceChildren(...chips.map(({ text, from, to }) => make("button", { type: "button", textContent: text, onclick: () => go(text, from, to) })));
  }

  // The word for any of its lanes: "worker" if all are workers, "rank" if they differ.
  get role() {
    const roles = new Set(this.names.map((name) => name.match(/^([a-z]+) \d+$/)?.[1]));
    return roles.size === 1 ? [...roles][0] ?? "rank" : "rank";
  }

  get beside() { return this.topology.machines && !this.topology.box.hidden ? this.topology.surface : null; }
}

mixin(Timeline, Spans, Viewport, Lanes, Bars, Shares, Messages, Legend, Cursor, Player, Words, Controls, Card);

const mount = mounting(Timeline);
