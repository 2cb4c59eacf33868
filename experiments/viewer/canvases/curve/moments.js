// Following the page's clock: dots on the lines, and who has reached the finish.
// Mixed into Curve (curve.js), which is `this` here.

class Moments {
  // The last point that each line has reached by now: [{line, i}].
  reached() {
    const now = lockstepClock.seconds;
    if (now === null || !this.frame) return [];
    return this.lines.filter((line) => line.seconds).flatMap((line) => {
      const i = lastUntil(this.frame.columns[line.seconds], now);
      return i < 0 ? [] : [{ line, i }];
    });
  }

  // Say who has reached the finish by now.
  judge() {
    const { finish } = this.frame, now = lockstepClock.seconds;
    this.verdict.hidden = !finish;
    if (!finish) return;
    const [first, second] = finish.arrivals, there = first.seconds !== null && now >= first.seconds;
    const words = now === null || now >= finish.until ? finish.verdict
      : there ? `${first.name} is there after ${inSeconds(first.seconds)}. ${second.name} is still on its way.` : "Nobody is there yet.";
    if (this.verdict.textContent !== words) this.verdict.textContent = words;
  }

  // Redraw if a dot has moved.
  follow() {
    if (this.frame?.finish) { this.judge(); this.surface.request(); }
    const places = (dots) => dots.map(({ i }) => i).join();
    const dots = this.reached();
    if (places(dots) === places(this.dots)) return;
    this.dots = dots;
    this.surface.request();
  }

  // Set the clock to the time of the point nearest to x = `px`.
  seek(px) {
    const to = this.scales(this.surface.width, this.surface.height), line = this.lines.find((one) => one.seconds && this.frame.columns[one.x].length);
    if (line) lockstepClock.set(this.frame.columns[line.seconds][nearest(this.frame.columns[line.x], to.valueX(px))], this);
  }
}

// The index of the last value that is at most x, or -1; `xs` is sorted.
function lastUntil(xs, x) { return firstWhere(0, xs.length, (n) => xs[n] > x) - 1; }
