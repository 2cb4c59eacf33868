// *Try it here*: a button, then a form with a few settings, and the run, which the reader's own browser computes.
const trials = (() => {
  const SENTENCE = "Experiments can be run on this page in Chrome or Edge, version 137 or later.";
  const LONGEST = 300; // s that a run may take

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function input({ kind, value, options, least, most, whole, example, name }) {
    if (kind === "choice") {
      const list = element("select", { name }, ...options.map(([key, words]) => element("option", { value: key, textContent: words })));
      list.value = value;
      return list;
    }
    if (kind === "switch") return element("input", { type: "checkbox", name, checked: value });
    if (kind === "text") return element("input", { type: "text", name, value: value ?? "", placeholder: example ? `such as ${example}` : "", size: 10 });
    return element("input", { type: "number", name, value: value ?? "", min: least ?? "", max: most ?? "", step: whole ? 1 : "any" });
  }

  // A form in `box` for {query, fields, recorded}, or for {figure, fields, recorded}. The box gets an event "computed" with what each run measured.
  class Trial {
    constructor(box, data) {
      this.box = box;
      this.query = data.query;
      this.figure = data.figure;
      this.recorded = data.recorded ?? null;
      this.inputs = new Map(data.fields.map((field) => [field.name, input(field)]));
      this.given = this.values();
      const labels = data.fields.map((field) => element("label", { title: field.help }, element("span", { textContent: field.label }), this.inputs.get(field.name)));
      this.run = element("button", { type: "submit", className: "button", textContent: "Run" });
      this.stop = element("button", { type: "button", className: "button", textContent: "Stop", hidden: true, onclick: () => lockstep.live.end() });
      this.status = element("p", { className: "outcome" });
      this.status.setAttribute("role", "status");
      this.plots = [0, 1].map(() => element("div", { className: "plot", hidden: true }));
      this.form = element("form", { autocomplete: "off", onsubmit: (event) => { event.preventDefault(); this.start(); } },
        element("div", { className: "fields" }, ...labels), element("div", { className: "send" }, this.run, this.stop));
      this.about = element("p", { className: "note" });
      box.replaceChildren(this.form, this.status, ...this.plots, this.about);
    }

    value(one) { return one.type === "checkbox" ? String(one.checked) : one.value; }

    values() { return new Map([...this.inputs].map(([name, one]) => [name, this.value(one)])); }

    // What the reader has changed: {name: text}.
    changes() { return Object.fromEntries([...this.values()].filter(([name, value]) => value !== this.given.get(name))); }

    // Show the settings of the last run; changes() compares with these from now on.
    take({ query, values }) {
      this.query = query;
      for (const [name, one] of this.inputs) {
        if (one.type === "checkbox") one.checked = values[name] ?? false;
        else one.value = values[name] ?? "";
      }
      this.given = this.values();
    }

    async start() {
      if (!this.form.reportValidity()) return;
      this.busy(true);
      const heard = (words) => { this.status.textContent = `${words} …`; };
      try {
        const asked = { changes: this.changes(), recorded: this.recorded };
        const [answer, ...frames] = await lockstep.live.ask(
          this.figure ? { do: "figure", name: this.figure, ...asked } : { do: "run", query: this.query, ...asked }, { heard, seconds: LONGEST });
        if (answer.refused) this.status.textContent = answer.refused;
        else this.show(answer, frames);
      } catch (error) {
        this.status.textContent = error.message === "ended" ? "Stopped." : `This browser could not compute it: ${error.message}`;
      }
      this.busy(false);
    }

    show(answer, frames) {
      this.status.textContent = answer.words;
      this.about.textContent = lockstep.live.about();
      frames.forEach((frame, place) => {
        this.plots[place].hidden = false;
        lockstep[answer.canvases[place]](this.plots[place], frame);
      });
      if (answer.query) this.take(answer);
      this.box.dispatchEvent(new CustomEvent("computed", { detail: answer }));
    }

    busy(is) {
      this.run.disabled = is;
      this.stop.hidden = !is;
      this.form.setAttribute("aria-busy", is);
    }
  }

  // Put into each box a button that becomes a trial and starts its recorded run; if this browser cannot, one sentence.
  function offer(boxes, all) {
    if (!lockstep.live.possible) {
      boxes[0]?.append(element("p", { className: "outcome", textContent: SENTENCE }));
      return;
    }
    for (const box of boxes) {
      const button = element("button", { type: "button", className: "button", textContent: `Try it here (${lockstep.live.megabytes} MB)` });
      button.title = "Loads Python into this page, once, and computes the run with your settings";
      button.onclick = () => {
        const trial = new Trial(box, all[box.dataset.try]);
        trial.form.querySelector("input, select")?.focus({ preventScroll: true });
        trial.start();
      };
      box.append(button);
    }
  }

  return { Trial, offer, element, SENTENCE };
})();

trials.offer([...document.querySelectorAll("[data-try]")], reader.data.tries ?? {});
