// The menu of a lane: the troubles that the pointer can cause, in words, each with its effect.

const OFFERED = [2, 4, 10]; // times slower

class LaneMenu {
  constructor(trouble, box) {
    Object.assign(this, { trouble, box });
    const go = (way) => {
      const items = [...box.children], at = items.indexOf(box.getRootNode().activeElement);
      items[(at + way + items.length) % items.length].focus();
    };
    obey(box, { ArrowDown: () => go(1), ArrowUp: () => go(-1), Home: () => box.firstChild.focus(), End: () => box.lastChild.focus(), Escape: () => this.shut(), Tab: () => this.shut() });
    box.addEventListener("focusout", (event) => { if (!box.hidden && !box.contains(event.relatedTarget)) this.shut(false); });
  }

  // The troubles that the menu offers for a lane.
  entries(rank) {
    const { foreseen, timeline: t } = this.trouble, { slow, latency, loses } = foreseen, base = slow[rank] ?? 1;
    const at = t.looking() ? t.cursor : (t.from + Math.min(t.to, t.end)) / 2;
    return [
      ...OFFERED.filter((value) => value !== base).map((value) => ({ kind: "slow", rank, value })),
      ...(base === 1 ? [] : [{ kind: "slow", rank, value: 1 }]),
      ...(loses ? [{ kind: "lost", rank, value: Number(at.toPrecision(3)) }] : []),
      ...(latency === null ? [] : [{ kind: "latency", value: longer(latency) }]),
    ];
  }

  open(rank) {
    const { trouble, box } = this, { foreseen, timeline: t } = trouble;
    trouble.leave();
    const item = (title, effect, act, seen) => {
      const one = make("button", { type: "button", tabIndex: -1, onclick: act, onfocus: seen, onpointerenter: () => one.focus() }, make("b", {}, title), make("span", {}, effect));
      one.setAttribute("role", "menuitem");
      return one;
    };
    const items = this.entries(rank).map((one) => {
      const title = foreseen.title(one);
      return item(title[0].toUpperCase() + title.slice(1), foreseen.effect(one, foreseen.run(one)), () => { this.shut(); trouble.foresee(one); trouble.commit(); }, () => trouble.foresee(one));
    });
    const more = item("More …", "exact numbers, a pause, a restart", () => { this.shut(); t.events.tell("rank", { run: t.run, rank, at: (t.from + t.to) / 2 }); }, () => trouble.leave());
    box.replaceChildren(...items, more);
    box.setAttribute("aria-label", `Trouble for ${t.names[rank]}`);
    box.hidden = false;
    box.style.top = `${t.y(rank) + t.pitch + 2}px`;
    box.firstChild.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" }); // with the margins in trouble.css
  }

  // Close the menu; with `back`, return the focus to the lanes.
  shut(back = true) {
    if (this.box.hidden) return;
    this.box.hidden = true;
    if (!this.trouble.sent) this.trouble.leave();
    if (back) this.trouble.timeline.stage.focus();
  }
}

// Ten times the latency, or 1 ms if it is 0.
function longer(latency) { return latency > 0 ? Number((10 * latency).toPrecision(2)) : 1e-3; }
