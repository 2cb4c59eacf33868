// The selected moment: playing it, stepping through it, and describing it in words.
// Mixed into Landscape (landscape.js), which is `this` here.

const RUNNING = 12;    // s to play a whole run
const TICKS = 1000;    // positions of the slider
const SPOKEN_EVERY = 200; // ms between sentences while playing

class Moments {
  get time() { return Math.max(0, Math.min(this.total, lockstepClock.seconds ?? this.frame.left ?? this.total)); }

  // True if the run has left the picture for good.
  get gone() { return this.frame.left !== null && this.time > this.frame.left + this.total * 1e-6; }

  heard() {
    if (!this.paths) return;
    this.say(lockstepClock.playing);
    this.surface.request();
  }

  seek(time) { lockstepClock.set(Math.max(0, Math.min(this.total, time)), this); }

  // Go to the moment of the next move, or with -1 of the previous one.
  step(way) {
    const { at, tried } = this.frame.columns, moments = at.length > 4 * TICKS ? tried : at; // too many moves to step through: use evaluations
    const slack = this.total * 1e-6;
    const next = way > 0 ? first(moments, this.time + slack) : first(moments, this.time - slack) - 1;
    this.seek(next < 0 ? 0 : next >= moments.length ? this.total : moments[next]);
  }

  play() {
    if (this.calm.matches) return this.step(1);
    if (lockstepClock.playing) return lockstepClock.pause(this);
    if (this.time >= this.total) this.seek(0);
    lockstepClock.play(() => this.total / RUNNING, this.total, this);
  }

  get moves() { return this.paths ? this.total : 0; }

  film() { return { seconds: RUNNING, at: (share) => this.seek(share * this.total) }; }


  say(soon = false) {
    if (!this.paths) return;
    const now = performance.now();
    this.slider.value = String(Math.round((this.time / (this.total || 1)) * TICKS));
    this.slider.setAttribute("aria-valuetext", inSeconds(this.time));
    const calm = this.calm.matches, { playing } = lockstepClock;
    this.playButton.textContent = calm ? "Step" : playing ? "❚❚ Pause" : "▶\uFE0E Play";
    this.playButton.setAttribute("aria-label", calm ? "Step" : playing ? "Pause" : "Play how it learns");
    this.status.setAttribute("aria-live", playing ? "off" : "polite");
    if (soon && now - (this.said ?? 0) < SPOKEN_EVERY) return;
    this.said = now;
    this.status.textContent = this.moment();
  }

  // A sentence on this moment.
  moment() {
    const { tried, loss, accuracy } = this.frame.columns;
    const n = Math.max(0, first(tried, this.time + this.total * 1e-6) - 1);
    const parts = [`At ${inSeconds(this.time)}`];
    if (tried.length) {
      const large = loss[n] >= 1e6, digits = large ? loss[n].toExponential(2) : Number(loss[n].toPrecision(3));
      parts.push(`held-out loss ${Number.isFinite(loss[n]) ? digits : "diverged"}`);
      if (Number.isFinite(accuracy[n])) parts.push(`accuracy ${(100 * accuracy[n]).toFixed(1)} %`);
    }
    if (this.gone) return `${parts.join(" · ")} · left this picture after ${inSeconds(this.frame.left)}.`;
    const apart = this.apart();
    if (apart === 0 && this.workers.length > 1) parts.push(`on this plane all workers stand where the ${this.frame.model} does`);
    else if (apart !== null && this.workers.length > 1) parts.push(`distance of the ${this.frame.model} to the worker farthest from it: ${Number(apart.toPrecision(2))}, on this plane`);
    return `${parts.join(" · ")}.`;
  }

  listen(root) {
    const tools = { play: () => this.play(), back: () => this.step(-1), forth: () => this.step(1), };
    root.querySelectorAll("button").forEach((button) => button.addEventListener("click", () => tools[button.dataset.do]()));
    this.slider.addEventListener("input", () => this.seek((Number(this.slider.value) / TICKS) * this.total));
    obey(this.stage, {
      " ": () => this.play(), ".": () => this.step(1), ",": () => this.step(-1), Home: () => this.seek(0), End: () => this.seek(this.total),
      ArrowRight: () => this.seek(this.time + this.total / 40), ArrowLeft: () => this.seek(this.time - this.total / 40),
    });
  }
}
