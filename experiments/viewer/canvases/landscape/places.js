// Where everyone is at a moment, and how far apart.
// Mixed into Landscape (landscape.js), which is `this` here.

class Places {
  point(place) { const { points } = this.frame.columns; return [points[2 * place], points[2 * place + 1]]; }

  // How many moves `who` has made by now.
  made(who) {
    const path = this.paths.get(who);
    return path ? first(path.at, this.time + this.total * 1e-6) : 0;
  }

  // The place where `who` is now; null before its first move.
  stands(who) { const n = this.made(who); return n ? this.paths.get(who).place[n - 1] : null; }

  get workers() { return [...this.paths.keys()].filter((who) => who !== this.frame.ranks); }

  // The distance, on the plane, from the model to the worker farthest from it; null without model or workers.
  apart() {
    const model = this.stands(this.frame.ranks);
    if (model === null) return null;
    const [u, v] = this.point(model);
    const far = this.workers.map((who) => this.stands(who)).filter((place) => place !== null).map((place) => {
      const [x, y] = this.point(place);
      return Math.hypot(x - u, y - v);
    });
    return far.length ? Math.max(...far) : null;
  }

  // The 60th percentile of the distance from workers to the model, as a share of the picture's width; 0 without a model.
  closeness() {
    const { frame } = this, [left, right] = frame.box, found = [];
    for (const who of this.workers) {
      const path = this.paths.get(who), model = this.paths.get(frame.ranks);
      if (!model) return 0;
      for (let i = 0; i < path.at.length; i += 1 + (path.at.length >> 7)) {
        const n = first(model.at, path.at[i + 1] ?? this.total); // just before the worker moves on, when the model is farthest away
        if (!n) continue;
        const [u, v] = this.point(model.place[n - 1]), [x, y] = this.point(path.place[i]);
        found.push(Math.hypot(x - u, y - v) / (right - left));
      }
    }
    return found.length ? found.sort((a, b) => a - b)[Math.floor(0.6 * (found.length - 1))] : 0;
  }
}

// The index of the first value above `limit`; `values` is sorted.
function first(values, limit) { return firstWhere(0, values.length, (n) => values[n] > limit); }

// The moves of each worker and of the model: {at, place, joined}. `joined` marks moves by which workers that were apart meet
// at one model, because they averaged. If the run leaves the picture for good, the first move after that is the last one.
function paths(frame) {
  const { who, at, place } = frame.columns, found = new Map(), met = new Map(), left = frame.left ?? Infinity;
  for (let i = 0; i < who.length; i++) {
    if (!found.has(who[i])) found.set(who[i], { at: [], place: [], joined: [] });
    const path = found.get(who[i]);
    if (path.at.at(-1) > left) continue;
    path.at.push(at[i]);
    path.place.push(place[i]);
    if (who[i] === frame.ranks) continue;
    if (!met.has(place[i])) met.set(place[i], new Set());
    met.get(place[i]).add(who[i]);
  }
  const shared = (where) => (met.get(where)?.size ?? 0) > 1;
  for (const [one, path] of found) {
    const worker = one !== frame.ranks && frame.averages;
    path.joined = path.place.map((where, i) => worker && i > 0 && shared(where) && !shared(path.place[i - 1]));
  }
  return found;
}
