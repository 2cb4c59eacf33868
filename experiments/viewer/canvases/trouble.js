// Trouble that the reader causes by touching the timeline: dragging a box to make it longer, dropping a turtle or a bolt on a
// lane, stretching a wire (stretch.js), or choosing from a lane's menu (lane_menu.js). The effect predicted by foreseen.js is
// shown at once, until the actual run arrives.

const HOLD = { mouse: 7, touch: 22 };     // px on each side of a box's end within which it can be grabbed
const GRABBED = { mouse: 14, touch: 44 };  // px; narrower boxes cannot be dragged
const SLOWER = 4;                          // how many times slower a turtle makes a rank
const LONGEST = 100;                       // the largest factor
const STIRRED = 5;                         // px after which a press counts as a drag

class Trouble {
  constructor(timeline, root) {
    Object.assign(this, { timeline, offered: false, now: null, kept: null, words: "" });
    this.badge = root.querySelector(".forecast");
    this.tokens = root.querySelector(".tokens");
    this.menu = new LaneMenu(this, root.querySelector(".lane-menu"));
    this.grip = -1;   // the span whose end is under the pointer
    this.held = null; // the box being dragged: {span, rank, left, offset, wide}
    this.armed = "";  // the token to drop with the next press on a lane
    this.listen();
  }

  // Take over a frame: the predicted run has arrived, or is no longer wanted.
  show(frame) {
    this.end();
    this.arm("");
    this.offered = Boolean(frame.trouble && this.timeline.events?.tell);
    this.frame = this.offered ? frame : null;
    this.made = null;
    if (this.timeline.box.matches(":hover")) this.prepare();
    this.tokens.hidden = !this.offered;
    if (!this.offered) return;
    const [slow, lost] = this.tokens.querySelectorAll("button"), role = frame.lanes[frame.trouble.first].split(" ")[0];
    slow.lastChild.textContent = ` Slow a ${role}`;
    lost.lastChild.textContent = ` Lose a ${role}`;
    lost.hidden = !frame.trouble.loses;
  }

  // When a pointer comes near, make one prediction, a step in each idle moment: until the browser has compiled this code, a
  // prediction takes ten times as long.
  prepare() {
    const { frame } = this;
    if (!frame || this.prepared === frame) return;
    this.prepared = frame;
    const trial = { kind: "slow", rank: frame.trouble.first, value: SLOWER }, idle = globalThis.requestIdleCallback ?? setTimeout;
    let run = null;
    const steps = [() => this.foreseen, () => this.foreseen.past, () => { run = this.foreseen.run(trial); }, () => run && this.foreseen.picture(run, trial)];
    const next = () => {
      if (this.frame !== frame || this.now) return; // the reader has asked for a prediction
      steps.shift()();
      if (steps.length) idle(next);
    };
    idle(next);
  }

  // Made only when a pointer comes near, so that a page that no one touches does not read the recurrence.
  get foreseen() {
    const { spans, messages } = this.kept ?? this.timeline;
    return (this.made ??= new Foreseen(this.frame, spans, messages));
  }

  // ---- showing a prediction

  // Show the effect of this trouble. If span `held` is being dragged, the window moves with it.
  foresee(trouble, held = -1) {
    const { foreseen, timeline: t } = this, run = foreseen.run(trouble);
    this.now = trouble;
    this.words = `${foreseen.title(trouble)}; ${foreseen.effect(trouble, run)}`;
    if (run && this.covers()) this.picture(run, trouble, held);
    else this.restore();
    this.badge.replaceChildren(make("b", {}, foreseen.title(trouble)), make("span", {}, foreseen.effect(trouble, run)), make("i", {}, run ? "predicted" : ""));
    this.badge.hidden = false;
    t.hide();
    t.say();
    t.redraw();
  }

  // True if the recurrence covers the window.
  covers() {
    const { recurrence } = this.foreseen, { from, to, end } = this.kept ?? this.timeline;
    return recurrence && from >= recurrence.since - 1e-9 && Math.min(to, end) <= recurrence.until * 1.05;
  }

  picture(run, trouble, held) {
    const t = this.timeline, { spans, messages, total, end, from, to, coarse, flags, notes, ended, over } = t;
    this.kept ??= { spans, messages, total, end, from, to, coarse, flags, notes, ended, over, rows: t.why.rows, trail: t.why.trail };
    const { kept } = this, table = this.foreseen.picture(run, trouble), { start, duration } = table.columns;
    let last = 0;
    for (let n = 0; n < start.length; n++) last = Math.max(last, start[n] + duration[n]);
    const row = held < 0 ? null : run.rows.find(([span]) => span === held), shift = row ? row[1] - kept.spans.columns.start[held] : 0;
    const empty = Object.fromEntries(Object.entries(kept.messages.columns).map(([name, column]) => [name, column.slice(0, 0)]));
    Object.assign(t, {
      spans: table, messages: { ...kept.messages, columns: empty }, total: Math.max(last, kept.to + shift), end: last, coarse: undefined, strip: null, over: -1,
      from: kept.from + shift, to: kept.to + shift, ended: [], notes: trouble.rank === undefined ? kept.notes : kept.notes.with(trouble.rank, "predicted"),
      flags: trouble.kind === "lost" ? [{ at: trouble.value, lane: trouble.rank, text: "lost" }] : [],
    });
    Object.assign(t.why, { rows: new Map(), trail: [] });
    this.veil("hidden");
    t.index();
  }

  // Show the actual run again.
  restore() {
    if (!this.kept) return;
    const { rows, trail, ...kept } = this.kept, t = this.timeline;
    Object.assign(t, kept, { strip: null });
    Object.assign(t.why, { rows, trail });
    this.veil("");
    this.kept = null;
    t.index();
  }

  // Hide or show the texts about the actual run, which do not apply to a prediction.
  veil(visibility) {
    const { why, learned } = this.timeline;
    for (const one of [why.box, why.headline, learned.box]) one.style.visibility = visibility;
  }

  // Discard the trouble. Return true if there was any.
  end() {
    const any = Boolean(this.now || this.armed);
    Object.assign(this, { now: null, held: null, words: "", sent: false });
    this.badge.hidden = true;
    this.restore();
    return any;
  }

  // Ask the page to run the experiment with this trouble; the prediction stays until the run arrives.
  commit(trouble = this.now) {
    if (!trouble) return;
    const { timeline: t } = this, same = trouble.kind === "slow" && trouble.value === (this.foreseen.slow[trouble.rank] ?? 1);
    if (same) return this.leave();
    this.held = null;
    this.sent = true;
    globalThis.lockstepTouched = true;
    t.events.tell("trouble", { run: t.run, ...trouble });
    this.words = `Predicted: ${this.words}. The run follows`;
    t.say();
  }

  // ---- the pointer on the lanes

  // The span of computing whose end is at (x, y) and can be dragged; -1 if there is none.
  edge(x, y, by) {
    const t = this.timeline, lane = Math.floor((y - TOP + t.scroll) / t.pitch);
    if (!this.offered || this.sent || !t.near() || x < GUTTER || y < TOP || y >= t.surface.height - AXIS || lane < 0 || lane >= t.names.length) return -1;
    const reach = HOLD[by], { start, duration, kind } = t.spans.columns, [i, j] = t.within(lane, t.time(x - reach), t.time(x + reach));
    let best = -1, least = reach + 1;
    for (let n = i; n < j; n++) {
      const far = Math.abs(t.x(start[n] + duration[n]) - x);
      if (kind[n] < t.work - 1 && duration[n] * t.scaleX >= GRABBED[by] && far < least) [best, least] = [n, far];
    }
    return best;
  }

  // Show a handle if the pointer is over the end of a box that can be dragged. Return the cursor's shape, or "".
  hover(x, y) {
    if (this.armed) this.over(x, y);
    const grip = this.armed ? -1 : this.edge(x, y, "mouse");
    if (grip !== this.grip) { this.grip = grip; this.timeline.surface.request(); }
    return this.armed || this.sent ? "copy" : grip >= 0 ? "col-resize" : "";
  }

  // Handle a press at (x, y). Return true if it drops a token or grabs a box.
  press(x, y, pointer) {
    if (!this.offered) return false;
    const lane = this.timeline.laneAt(x, y);
    if (this.armed) {
      const token = this.armed;
      this.arm("");
      if (lane < 0) this.leave(); else { this.drop(token, lane, x); this.commit(); }
      return true;
    }
    if (this.sent) this.leave();
    const span = this.edge(x, y, pointer === "mouse" ? "mouse" : "touch");
    if (span < 0) return false;
    const { start, duration, lane: lanes } = this.timeline.spans.columns;
    this.held = { span, rank: lanes[span], left: this.timeline.x(start[span]), offset: this.timeline.x(start[span] + duration[span]) - x, wide: duration[span] * this.timeline.scaleX };
    return true;
  }

  // Handle a move to x. Return true if a box is being dragged.
  drag(x) {
    if (!this.held) return false;
    const { span, rank, left, offset, wide } = this.held, base = this.foreseen.slow[rank] ?? 1;
    this.later(() => this.foresee({ kind: "slow", rank, value: snapped((base * (x + offset - left)) / wide) }, span));
    return true;
  }

  release() {
    if (!this.held) return false;
    this.soon?.();
    if (this.now) this.commit(); else this.leave();
    return true;
  }

  leave() {
    const any = this.end();
    this.arm("");
    if (any) { this.timeline.say(); this.timeline.redraw(); }
    return any;
  }

  // Predict at most once per animation frame.
  later(act) {
    if (!this.soon) requestAnimationFrame(() => this.soon?.());
    this.soon = () => { this.soon = null; act(); };
  }

  // ---- turtle and bolt

  // Show the predicted effect of a token dropped at x on a lane.
  drop(token, rank, x) {
    const base = this.foreseen.slow[rank] ?? 1, at = Math.max(this.timeline.from, Math.min(this.timeline.time(x), this.timeline.end));
    if (token === "slow") this.foresee({ kind: "slow", rank, value: Math.min(LONGEST, base < SLOWER ? SLOWER : 2 * base) });
    else this.foresee({ kind: "lost", rank, value: Number(at.toPrecision(3)) });
  }

  // Show the effect of a token held over (x, y).
  over(x, y, token = this.armed) {
    this.restore();
    const lane = this.timeline.laneAt(x, y);
    this.later(() => {
      if (lane >= 0) this.drop(token, lane, x);
      else { this.end(); this.timeline.say(); this.timeline.redraw(); }
    });
  }

  // Make the next press on a lane drop this token; "" for none.
  arm(token) {
    this.armed = token;
    this.tokens.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.token === token)));
    this.timeline.box.classList.toggle("armed", Boolean(token));
  }

  listen() {
    const { timeline: t } = this, signal = t.gone.signal;
    t.box.addEventListener("pointerenter", () => this.prepare());
    this.tokens.querySelectorAll("button").forEach((button) => {
      const { token } = button.dataset, at = (event) => within(t.canvas, event);
      let from = null, carried = false;
      const put = (x, y) => { button.style.transform = carried ? `translate(${x}px, ${y}px)` : ""; button.classList.toggle("carried", carried); };
      const stop = () => { from = null; carried = false; put(0, 0); };
      button.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY]; button.setPointerCapture(event.pointerId); });
      button.addEventListener("pointermove", (event) => {
        if (!from) return;
        const moved = [event.clientX - from[0], event.clientY - from[1]];
        carried ||= Math.hypot(...moved) > STIRRED;
        if (!carried) return;
        put(...moved.map((one) => one / zoomOf(button)));
        this.over(...at(event), token);
      });
      button.addEventListener("pointerup", (event) => {
        const was = carried;
        stop();
        if (!was) return;
        const [x, y] = at(event), lane = t.laneAt(x, y);
        this.soon = null;
        this.restore();
        if (lane < 0) this.leave(); else { this.drop(token, lane, x); this.commit(); }
        this.carriedAt = performance.now();
      });
      button.addEventListener("pointercancel", () => { stop(); this.leave(); });
      button.addEventListener("click", (event) => {
        if (performance.now() - (this.carriedAt ?? -1e3) < 400) return; // this click ends the drag
        if (!event.detail) return this.menu.open(Math.max(0, t.rank.lane)); // pressed with a key
        const armed = this.armed === token ? "" : token;
        this.leave();
        this.arm(armed);
        this.words = armed ? told(armed, matchMedia("(pointer: coarse)").matches) : "";
        t.say();
      });
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") this.leave(); }, { signal });
    addEventListener("popstate", () => this.leave(), { signal });
  }

  // ---- drawing

  // Draw the handle of the box under the pointer.
  draw(g, page) {
    const t = this.timeline, span = this.held?.span ?? this.grip, { start, duration, lane } = t.spans.columns;
    if (span < 0 || this.kept || !(span < start.length)) return;
    const x = t.x(start[span] + duration[span]), y = t.y(lane[span]) + 3, high = t.pitch - 9;
    plate(g, page, 1, x - 3, y, 6, high);
    g.strokeStyle = page.text;
    g.lineWidth = 1.2;
    g.strokeRect(x - 3, y, 6, high);
    strokeLine(g, [x, y + 3], [x, y + high - 3]);
  }
}

// What to do with a chosen token, in words.
function told(token, finger) {
  const does = token === "slow" ? `it computes ${SLOWER} times slower` : "it is lost at that moment";
  return `${finger ? "Tap" : "Click"} a lane: ${does}. ${finger ? "The same button again" : "Escape"} leaves it`;
}

// A factor rounded to a number that is easy to say: 1.5, 4, 12.
function snapped(factor) {
  const step = factor < 3 ? 0.1 : factor < 10 ? 0.5 : 1;
  return Number(Math.max(1, Math.min(LONGEST, Math.round(factor / step) * step)).toFixed(1));
}
