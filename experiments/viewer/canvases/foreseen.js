// What a recurrence predicts for a trouble: a sentence, and the spans that a timeline shows. A trouble is
// {kind: "slow", rank, value: times}, {kind: "lost", rank, value: s} or {kind: "latency", value: s of a message}.

const UNSEEN = "what comes of it, the run shows";
const ALIKE = 0.04;    // relative difference up to which ranks share one number in a sentence
const FAITHFUL = 0.03; // relative error in length up to which a recurrence without trouble counts as matching its run

class Foreseen {
  constructor(frame, spans, messages) {
    Object.assign(this, frame.trouble, { frame, table: spans, spans: spans.columns });
    this.names = frame.lanes;
    this.recurrence = frame.columns.recurrence ? new Recurrence(frame.columns.recurrence, spans.columns, messages.columns) : null;
  }

  // The run without trouble, computed by the recurrence; null if it does not match the actual run.
  get past() {
    if (this.before !== undefined || !this.recurrence) return this.before ?? null;
    const { since, until } = this.recurrence, past = this.recurrence.execute();
    past.length = Math.max(...past.rows.map(([, , end]) => end), since);
    return (this.before = past.ends.every(Number.isFinite) && Math.abs(past.length - until) < FAITHFUL * (until - since) ? past : null);
  }

  // The run with this trouble; null if it cannot be predicted.
  run({ kind, rank, value }) {
    if (!this.foresees.includes(kind) || !this.past) return null;
    return this.recurrence.execute({
      slow: new Map(kind === "slow" ? [[rank, value / (this.slow[rank] ?? 1)]] : []),
      lost: new Map(kind === "lost" ? [[rank, value]] : []),
      latency: kind === "latency" ? value - this.latency : 0,
    });
  }

  // How many times as long each worker takes, as [rank, ratio]; the ratio is infinite if the worker never ends.
  ratios(run) {
    const { since } = this.recurrence, { past, first } = this;
    return run.ends.map((end, rank) => [rank, (end - since) / (past.ends[rank] - since)]).slice(first);
  }

  // "worker 3: 4 times slower"
  title({ kind, rank, value }) {
    const name = this.names[rank];
    if (kind === "slow") return value === 1 ? `${name}: as fast as the others` : `${name}: ${many(value)} times slower`;
    return kind === "lost" ? `${name}: lost at ${inSeconds(value)}` : `latency ${inSeconds(this.latency)} → ${inSeconds(value)} on every wire`;
  }

  // The effect in words: "a step takes about 2.0 times as long".
  effect(trouble, run) {
    if (!run) return UNSEEN;
    const workers = this.ratios(run).filter(([rank]) => !(trouble.kind === "lost" && rank === trouble.rank));
    const stuck = workers.filter(([, ratio]) => !Number.isFinite(ratio));
    if (trouble.kind === "lost") return this.loss(trouble, run, workers, stuck);
    if (stuck.length) return UNSEEN;
    const of = (some) => {
      const least = Math.min(...some), most = Math.max(...some);
      const [from, to] = most / least < 1 + ALIKE ? [rounded(most), rounded(most)] : [rounded(least), rounded(most)];
      return from === to ? (to === "1.0" ? "no longer" : `about ${to} times as long`) : `about ${from} to ${to} times as long`;
    };
    const all = workers.map(([, ratio]) => ratio), own = workers.find(([rank]) => rank === trouble.rank);
    const others = workers.filter(([rank]) => rank !== trouble.rank).map(([, ratio]) => ratio);
    if (Math.max(...all) / Math.min(...all) < 1 + ALIKE || !own || !others.length) return `a step takes ${of(all)}`;
    return `its steps take ${of([own[1]])}, those of the others ${of(others)}`;
  }

  loss({ rank, value }, run, workers, stuck) {
    if (value >= this.past.ends[rank]) return "it has finished by then: choose an earlier moment";
    if (!workers.length) return "training ends";
    if (!stuck.length) return "the others go on without it";
    const whom = rank < this.first ? "the workers" : "the others", last = Math.max(...stuck.map(([one]) => run.reached[one]));
    return `${stuck.length < workers.length ? `${stuck.length} of ${whom}` : whom} wait for it forever, from ${inSeconds(last)} on`;
  }

  // The spans of a run with this trouble, in a table like a frame's. Waits fill the gaps between spans of work.
  picture(run, trouble) {
    const { kind, label, step, lane } = this.spans, { kinds } = this.frame, talk = this.talk(), end = Math.max(...run.rows.map((row) => row[2]));
    const [wait, communicate, idle] = ["wait", "communicate", "idle"].map((name) => kinds.indexOf(name));
    const none = this.table.labels.length, lanes = this.names.map(() => []);
    for (const [span, from, to] of run.rows) lanes[lane[span]].push([span, from, to]);
    const rows = []; // [lane, kind, start, end, step, label]
    lanes.forEach((some, rank) => {
      let now = this.recurrence.since;
      for (const [span, from, to] of some) {
        const gap = from - now, talks = Math.min(gap, trouble.kind === "latency" ? Math.max(0, gap - talk.waited[span]) : talk.talked[span]);
        if (gap - talks > 1e-9) rows.push([rank, wait, now, from - talks, step[span], none]);
        if (talks > 1e-9) rows.push([rank, communicate, from - talks, from, step[span], none]);
        rows.push([rank, kind[span], from, to, step[span], label[span]]);
        now = to;
      }
      if (!Number.isFinite(run.ends[rank])) rows.push([rank, trouble.rank === rank && trouble.kind === "lost" ? idle : wait, now, end * 1.02, -1, none]);
    });
    const column = (Kind, of) => Kind.from(rows, of);
    return { labels: [...this.table.labels, ""], columns: {
      lane: column(lane.constructor, (row) => row[0]), kind: column(Uint8Array, (row) => row[1]), start: column(Float32Array, (row) => row[2]),
      duration: column(Float32Array, (row) => row[3] - row[2]), step: column(Int32Array, (row) => row[4]), label: column(Uint16Array, (row) => row[5]),
    } };
  }

  // For each span, how long its rank has waited and communicated since its previous span of work: {waited, talked}.
  talk() {
    if (this.talks) return this.talks;
    const { kind, start, duration, lane } = this.spans, { kinds, work } = this.frame, wait = kinds.indexOf("wait");
    const waited = new Float32Array(start.length), talked = new Float32Array(start.length), works = new Set(this.past.rows.map(([span]) => span));
    let idle = 0, talk = 0;
    for (let n = 0; n < start.length; n++) {
      if (n && lane[n] !== lane[n - 1]) idle = talk = 0;
      if (!works.has(n)) { if (kind[n] === wait) idle += duration[n]; else if (kind[n] >= work) talk += duration[n]; continue; }
      [waited[n], talked[n]] = [idle, talk];
      idle = talk = 0;
    }
    return (this.talks = { waited, talked });
  }
}

// 2.04 -> "2.0", 12.3 -> "12"
function rounded(ratio) { return ratio < 1.005 && ratio > 0.995 ? "1.0" : ratio < 9.95 ? ratio.toFixed(1) : ratio.toFixed(0); }

// 4 -> "4", 2.5 -> "2.5"
function many(value) { return String(Number(value.toPrecision(3))); }
