// A prediction: executes the recurrence of a run (recurrence.py) again, with trouble. It draws nothing.
//
// The rank with the earliest clock always executes its next operation, so messages reach ports in the order in which they
// were sent. A server with a queue handles each request when it arrives, with the operations that followed it in the run.

const [WORK, DELAY, SEND, RECEIVE, JOIN] = [0, 1, 2, 3, 4]; // and FINISH

class Recurrence {
  // `bytes` is the packed recurrence; `spans` and `messages` are the columns that it refers to.
  constructor(bytes, spans, messages) {
    Object.assign(this, decode(bytes), { spans, messages });
    const { columns: { from, op, of, collective }, messages: { src, dst, bytes: size }, servers } = this;
    this.ranks = from.length - 1;
    this.rings = new Map(); // collective -> its ranks in ring order, the place of each, the bytes of a piece
    const next = new Map();
    collective.forEach((g, m) => { if (g >= 0) next.set(g, (next.get(g) ?? new Map()).set(src[m], [dst[m], size[m]])); });
    for (const [g, right] of next) {
      const [first] = right.keys(), order = [first];
      while (order.length <= right.size && right.get(order.at(-1))?.[0] !== first) order.push(right.get(order.at(-1))?.[0]);
      const whole = order.length === right.size, steps = 2 * (order.length - 1);
      this.rings.set(g, { order, whole, size: right.size, steps, piece: right.get(first)[1] / steps, places: new Map(order.map((rank, n) => [rank, n])), add: 0 });
    }
    this.services = new Map(); // message to a server -> [from, to), the operations that follow it
    this.opening = Array.from({ length: servers }, (_, s) => {
      let since = -1, opening = from[s + 1];
      for (let n = from[s]; n <= from[s + 1]; n++) {
        if (n < from[s + 1] && op[n] !== RECEIVE) continue;
        if (since < 0) opening = n;
        else this.services.set(of[since], [since + 1, n]);
        since = n;
      }
      return opening;
    });
    this.measure();
  }

  // Set `add` of each ring: the time per step in the run that its messages do not explain.
  measure() {
    const { columns: { from, op, of, seconds }, ranks, rings } = this;
    const joins = new Map(), ends = new Map();
    for (let rank = 0; rank < ranks; rank++) {
      for (let n = from[rank]; n < from[rank + 1]; n++) {
        if (op[n] === JOIN) joins.set(of[n], (joins.get(of[n]) ?? new Map()).set(rank, -seconds[n]));
        else if (op[n] > JOIN) ends.set(of[n], Math.max(ends.get(of[n]) ?? 0, seconds[n]));
      }
    }
    for (const [g, ring] of rings) {
      const joined = joins.get(g);
      ring.size = joined?.size ?? ring.size;
      ring.whole &&= this.link && joined?.size === ring.order.length;
      if (!ring.whole) continue;
      const bare = Math.max(...this.turn(ring, joined, 0, new Float64Array(ranks), new Float64Array(ranks)).values());
      ring.add = Math.max(0, (ends.get(g) - bare) / (ring.order.length - 1));
    }
  }

  // When each rank of a ring has the sum, as Map of rank -> s, given when each joined (cluster/simulated/ring_recurrence.py).
  turn({ order, steps, piece, add }, joined, latency, out, into) {
    const { link } = this, count = order.length, wire = piece * link.per_byte, now = order.map((rank) => joined.get(rank));
    for (let step = 0; step < steps; step++) {
      const arrives = order.map((rank, n) => {
        const leaves = Math.max(now[n] + link.overhead, out[rank]), right = order[(n + 1) % count];
        out[rank] = leaves + wire;
        return (into[right] = Math.max(leaves + link.latency + latency, into[right]) + wire);
      });
      for (let n = 0; n < count; n++) now[n] = Math.max(now[n] + link.overhead, arrives[(n + count - 1) % count]) + (step < count - 1 ? add : 0);
    }
    return new Map(order.map((rank, n) => [rank, now[n]]));
  }

  // Execute the recurrence with slower ranks (Map of rank -> factor by which it is slower than before), lost ranks (Map of
  // rank -> s), and a latency that is `latency` s longer. Return when each rank ended (Infinity if it was lost or waits
  // forever), the time that each reached, and the rows of work: [span, start, end, operation].
  execute({ slow = new Map(), lost = new Map(), latency = 0 } = {}) {
    const { ranks, servers, since, link, rings, services } = this, { from, op, of, seconds } = this.columns;
    const { src, dst, bytes, sent: left, arrived } = this.messages, { kind } = this.spans;
    const place = Uint32Array.from(from.subarray(0, ranks)), until = Uint32Array.from(from.subarray(1, ranks + 1));
    this.opening.forEach((end, s) => { until[s] = end; });
    const time = new Float64Array(ranks).fill(since), out = new Float64Array(ranks), into = new Float64Array(ranks);
    const arrival = new Float64Array(src.length).fill(NaN), sent = new Uint8Array(src.length), rows = [];
    for (let n = 0; n < op.length; n++) if (op[n] === SEND) sent[of[n]] = 1;
    const joined = new Map(), ended = new Map(), blocked = new Map(), requests = this.opening.map(() => []);
    const ready = new Set(time.keys()), gone = new Set(), stuck = new Set();
    const block = (rank, what) => { blocked.set(what, [...(blocked.get(what) ?? []), rank]); stuck.add(rank); ready.delete(rank); };
    const wake = (what) => { for (const rank of blocked.get(what) ?? []) { stuck.delete(rank); ready.add(rank); } blocked.delete(what); };
    while (ready.size) {
      let rank = -1;
      for (const one of ready) if (rank < 0 || time[one] < time[rank]) rank = one;
      const end = lost.get(rank) ?? Infinity, n = place[rank], what = of[n];
      if (time[rank] >= end) { time[rank] = end; gone.add(rank); ready.delete(rank); continue; }
      if (n >= until[rank]) {
        if (rank >= servers) { ready.delete(rank); continue; }
        const queue = requests[rank];
        if (!queue.length) { block(rank, `server ${rank}`); continue; }
        const next = queue.reduce((best, one) => (arrival[one] < arrival[best] ? one : best));
        queue.splice(queue.indexOf(next), 1);
        time[rank] = Math.max(time[rank], arrival[next]);
        [place[rank], until[rank]] = services.get(next);
        continue;
      }
      if (op[n] === WORK) {
        const start = time[rank], takes = seconds[n] * (kind[what] < this.slowed ? slow.get(rank) ?? 1 : 1); // computing and updating
        time[rank] = Math.min(start + takes, end);
        rows.push([what, start, time[rank], n]);
      } else if (op[n] === DELAY) time[rank] += seconds[n];
      else if (op[n] === SEND) {
        if (link) {
          const wire = bytes[what] * link.per_byte, leaves = Math.max(time[rank], out[rank]), at = dst[what];
          out[rank] = leaves + wire;
          arrival[what] = into[at] = Math.max(leaves + link.latency + latency, into[at]) + wire;
        } else arrival[what] = time[rank] + arrived[what] - left[what] + latency;
        if (dst[what] < servers) requests[dst[what]].push(what);
        wake(dst[what] < servers ? `server ${dst[what]}` : what);
      } else if (op[n] === RECEIVE) {
        if (sent[what] && Number.isNaN(arrival[what])) { block(rank, what); continue; }
        if (sent[what]) time[rank] = Math.max(time[rank], arrival[what]);
      } else if (op[n] === JOIN) {
        const all = (joined.get(what) ?? new Map()).set(rank, time[rank]), ring = rings.get(what);
        joined.set(what, all);
        if (all.size >= ring.size) {
          const last = Math.max(...all.values());
          ended.set(what, ring.whole ? this.turn(ring, all, latency, out, into) : last + latency * ring.steps);
          wake(`collective ${what}`);
        }
      } else {
        const ends = ended.get(what);
        if (ends === undefined && joined.has(what)) { block(rank, `collective ${what}`); continue; }
        if (ends !== undefined) time[rank] = Math.max(time[rank], ends instanceof Map ? ends.get(rank) : ends + seconds[n]);
      }
      place[rank] = n + 1;
    }
    const never = (rank) => gone.has(rank) || (rank >= servers && stuck.has(rank));
    return { ends: Array.from(time, (at, rank) => (never(rank) ? Infinity : at)), reached: Array.from(time), rows };
  }
}
