// Pointer, keys and buttons, and what each of them does.
// Mixed into Timeline (timeline.js), which is `this` here.

class Controls {
  listen(root) {
    const at = (event) => within(this.canvas, event);
    const jump = (x) => {
      const plot = this.surface.width - GUTTER - 4, span = this.to - this.from;
      const time = ((x - GUTTER) / plot) * this.total;
      this.window(time - span / 2, time + span / 2);
    };
    this.stage.addEventListener("pointerdown", (event) => {
      const [x, y] = at(event);
      this.stage.setPointerCapture(event.pointerId);
      this.morph?.end();
      this.pressed = null;
      if (this.trouble.press(x, y, event.pointerType)) return;
      this.pointers.set(event.pointerId, [x, y]);
      this.pressed = [x, y];
      this.onStrip = y < STRIP + 6 && x >= GUTTER;
      this.onAxis = !this.onStrip && this.axis(x, y);
      if (this.onStrip) jump(x);
      else if (this.onAxis) this.seek(this.time(x));
    });
    this.stage.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      const before = this.pointers.get(event.pointerId);
      if (this.trouble.drag(x)) return;
      if (!before) return this.hover(x, y);
      if (this.onStrip) jump(x);
      else if (this.onAxis) this.seek(this.time(x));
      else if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
        const was = Math.abs(before[0] - other[0]), is = Math.abs(x - other[0]);
        if (was > 10 && is > 10) this.zoom(was / is, this.time((x + other[0]) / 2));
      } else {
        this.scroll -= y - before[1];
        this.pan((before[0] - x) / this.scaleX);
      }
      this.pointers.set(event.pointerId, [x, y]);
    });
    this.stage.addEventListener("pointerup", (event) => {
      const [x, y] = at(event);
      if (this.trouble.release() || !this.pressed || Math.hypot(x - this.pressed[0], y - this.pressed[1]) > 4) return;
      if (event.pointerType !== "mouse") this.hover(x, y); // a finger arrives without a pointermove
      if (this.over >= 0 && this.why.waits(this.over)) { this.why.pin(this.over); this.tip.hidden = true; }
    });
    this.stage.addEventListener("click", (event) => { // not pointerup: after a touch, the lanes get the focus only when the finger is lifted
      const [x, y] = at(event), lane = this.named(x, y);
      if (lane < 0 || !this.trouble.offered || !this.pressed || Math.hypot(x - this.pressed[0], y - this.pressed[1]) > 4) return;
      this.trouble.menu.open(lane);
    });
    this.stage.addEventListener("pointercancel", () => this.trouble.leave());
    for (const name of ["pointerup", "pointercancel"]) this.stage.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    this.stage.addEventListener("pointerleave", () => { this.hide(); this.surface.request(); });
    this.stage.addEventListener("dblclick", (event) => this.zoom(1 / 3, this.time(at(event)[0])));
    this.stage.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey || event.shiftKey || root.activeElement === this.stage)) return;
      event.preventDefault();
      const turn = event.deltaY || event.deltaX;
      this.zoom(Math.exp(Math.max(-60, Math.min(60, turn)) * 0.006), this.time(at(event)[0]));
    }, { passive: false });
    const keys = {
      ArrowLeft: () => this.pan(-(this.to - this.from) / 5), ArrowRight: () => this.pan((this.to - this.from) / 5),
      ArrowUp: () => { this.scroll -= this.pitch * 3; this.moved(); }, ArrowDown: () => { this.scroll += this.pitch * 3; this.moved(); },
      "+": () => this.zoom(1 / 1.6), "=": () => this.zoom(1 / 1.6), "-": () => this.zoom(1.6),
      Home: () => this.window(0, this.total, true), m: () => this.toggle(),
      " ": () => this.play(), ".": () => this.step(1), ",": () => this.step(-1),
      r: () => this.rank.next(1), R: () => this.rank.next(-1), Enter: () => this.rank.enter(),
      w: () => this.why.walk(), W: () => this.why.walk(-1), c: () => this.why.mark(!this.why.marked),
      "?": () => this.explain(), Escape: () => (!this.keys.hidden ? this.explain() : this.trouble.leave() || this.why.close() || this.rank.leave() || this.leave()),
    };
    obey(this.stage, keys);
    const ends = [closing(this.tip, () => { this.hide(); this.surface.request(); }), closing(this.keys, () => this.explain())];
    this.unclosed = () => ends.forEach((end) => end());
    const heard = root.querySelector("[data-keep]"), kept = () => { try { return localStorage; } catch { return {}; } };
    heard.checked = kept()[heard.dataset.keep] !== "off";
    heard.addEventListener("change", () => { try { localStorage.setItem(heard.dataset.keep, heard.checked ? "on" : "off"); } catch { /* no storage: the choice lasts until the page is reloaded */ } });
    const tools = { play: () => this.play(), back: () => this.step(-1), step: () => this.step(1), keys: () => this.explain(), shut: () => this.explain(), machines: () => this.toggleMachines(), speed: () => this.faster(), in: () => this.zoom(1 / 2), out: () => this.zoom(2), all: () => this.window(0, this.total, true), messages: () => this.toggle(), critical: () => this.why.mark(!this.why.marked) };
    root.querySelectorAll(".tools button, .keys button").forEach((button) => button.addEventListener("click", () => tools[button.dataset.do]()));
  }

  // True on the axis, or on the strip above the lanes that holds the cursor's handle.
  axis(x, y) { return x >= GUTTER - 6 && (y >= this.surface.height - AXIS || (y >= STRIP + 6 && y < TOP - 2)); }

  // The lane at (x, y), including its name; -1 if there is none.
  laneAt(x, y) {
    const lane = Math.floor((y - TOP + this.scroll) / this.pitch);
    const inside = x >= 0 && x <= this.surface.width && y >= TOP && y < this.surface.height - AXIS && lane >= 0 && lane < this.names.length;
    return inside ? lane : -1;
  }

  // The lane whose name is at (x, y) if names can be clicked, otherwise -1.
  named(x, y) { return this.clickable && x < GUTTER ? this.laneAt(x, y) : -1; }

  // Show or hide the list of keys.
  explain() {
    this.keys.hidden = !this.keys.hidden;
    this.keysButton.setAttribute("aria-expanded", String(!this.keys.hidden));
    if (this.keys.hidden && this.keys.contains(this.keys.getRootNode().activeElement)) this.keysButton.focus();
  }

  toggleMachines() {
    const { box } = this.topology;
    box.hidden = !box.hidden;
    this.machinesButton.setAttribute("aria-pressed", String(!box.hidden));
    this.topology.request();
  }

  toggle() {
    this.arrows = !this.arrows;
    this.messagesButton.setAttribute("aria-pressed", String(this.arrows));
    this.surface.request();
  }
}
