// How a run learned, at one moment: workers and model on the surface of the loss and, next to it, the class that the model
// predicts for every point of a square.
//
// The moment is that of the page's clock. If the clock has none, it is the end of the run or, if the run diverged, the moment
// when it left the picture for good; later moves are not drawn. If the workers stay close to the model during most of the
// run, a lens in a corner magnifies its surroundings.

const TALL = 430;      // px; a picture's greatest height
const FOOT = 20;       // px below a picture, for its title
const AHEAD = "0px 0px 50% 0px"; // request pictures that are up to half a screen below the visible part, before the reader scrolls to them

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
      this.near = frame.left === null ? this.closeness() : 0; // workers that diverge get no lens
      this.lines = frame.levels.map((level) => contour(frame.columns.ground, frame.rows, frame.cells, level));
      this.say();
    }
    this.surface.request();
  }
}

mixin(Landscape, Moments, Places, Scene, Trails, Legend);

const mount = mounting(Landscape);
