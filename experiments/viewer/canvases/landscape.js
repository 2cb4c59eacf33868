// How a run learned, at one moment of it: workers and model on the ground of the loss, and next to it the classes that
// the model gives to every point of a square.
//
// The moment is that of the page's clock, and while the clock shows none the end, or when the run left the picture for
// good: of a run that diverged no more is drawn than the move by which each leaves. Where workers are near each other on
// the whole path, a lens in a corner shows what is around the model.

const TALL = 430;      // px of a picture, at most
const FOOT = 20;       // px below a picture, for its title
const AHEAD = "0px 0px 50% 0px"; // how far below the screen pictures are asked for, as a reader who scrolls comes to them

class Landscape {
  constructor(root) {
    this.box = root.querySelector(".landscape");
    this.stage = root.querySelector(".stage");
    this.note = root.querySelector(".note");
    this.slider = root.querySelector("input");
    this.status = root.querySelector(".status");
    this.about = root.querySelector(".about");
    this.player = root.querySelector(".player");
    this.playButton = root.querySelector('[data-do="play"]');
    this.surface = fit(root.querySelector("canvas"), this.stage, TALL + FOOT, (...args) => this.draw(...args));
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.deaf = lockstepClock.listen(() => this.heard());
    this.listen(root);
  }

  stop() {
    this.surface.stop();
    this.watcher?.disconnect();
    this.deaf();
    if (!lockstepClock.listeners.size) lockstepClock.pause();
  }

  redraw() { this.images = null; this.surface.request(); }

  show(bytes) {
    const frame = decode(bytes);
    Object.assign(this, { frame, saved: frame.saved });
    this.watcher?.disconnect();
    this.player.style.visibility = frame.pending ? "hidden" : "";
    this.note.hidden = !frame.pending;
    this.images = null;
    this.box.classList.toggle("single", !frame.boundary);
    this.box.classList.toggle("pending", Boolean(frame.pending));
    if (frame.pending) {
      this.paths = null;
      this.note.textContent = frame.pending;
      this.status.textContent = this.about.textContent = "";
      if (!frame.asks) return this.surface.request();
      this.watcher = new IntersectionObserver((entries) => {
        if (entries.some((one) => one.isIntersecting)) this.events?.ask?.("seen", frame.run);
      }, { rootMargin: AHEAD });
      this.watcher.observe(this.stage);
    } else {
      this.paths = paths(frame);
      this.total = frame.seconds;
      this.about.textContent = frame.description;
      this.stage.setAttribute("aria-label", `How the model learns. ${frame.description}`);
      this.near = frame.left === null ? this.closeness() : 0; // workers that part for good are in no lens
      this.lines = frame.levels.map((level) => contour(frame.columns.ground, frame.rows, frame.cells, level));
      this.say();
    }
    this.surface.request();
  }
}

mixin(Landscape, Moments, Places, Scene, Trails, Legend);

const mount = mounting(Landscape);
