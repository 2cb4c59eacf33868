// Search in all chapters. The index is a script, loaded when the field is first used: a page from disk cannot fetch.
(() => {
  const field = document.getElementById("search"), list = document.getElementById("found");
  const SHOWN = 12, AROUND = 70;
  let index = null, chosen = -1;

  function load() {
    if (index || document.getElementById("search-index")) return;
    const script = document.createElement("script");
    script.id = "search-index";
    script.src = "assets/search-index.js";
    script.onload = () => { index = searchIndex.map((one) => ({ ...one, plain: `${one.title} ${one.text}`.toLowerCase(), head: one.title.toLowerCase() })); find(); };
    document.head.append(script);
  }

  const starts = (text, word) => { let count = 0; for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) if (!at || !/[\p{L}\p{N}]/u.test(text[at - 1])) count++; return count; };

  function find() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!index || !words.length || field.value.trim().length < 2) return show([], words);
    const found = [];
    for (const one of index) {
      let score = 0;
      for (const word of words) {
        const there = starts(one.plain, word);
        if (!there) { score = 0; break; }
        score += Math.min(there, 5) + (starts(one.head, word) ? 20 : 0) + (starts(one.chapter.toLowerCase(), word) ? 5 : 0);
      }
      if (score) found.push({ one, score });
    }
    show(found.sort((a, b) => b.score - a.score).map(({ one }) => one), words);
  }

  function show(found, words) {
    chosen = -1;
    const closed = (one) => !document.documentElement.classList.contains("all-open") && one.behind.some((name) => !reader.passed(name, one.page));
    const visible = found.filter((one) => !closed(one)), later = found.length - visible.length;
    list.replaceChildren(...visible.slice(0, SHOWN).map((one, number) => {
      const item = document.createElement("li"), link = document.createElement("a"), head = document.createElement("b"), where = document.createElement("span"), text = document.createElement("p");
      item.id = `found-${number}`;
      item.role = "option";
      link.href = `${one.page}.html${one.anchor ? `#${one.anchor}` : ""}`;
      link.tabIndex = -1;
      head.textContent = one.title || one.chapter;
      where.textContent = one.title ? one.chapter : "";
      text.append(...around(one.text, words));
      link.append(head, where, text);
      item.append(link);
      return item;
    }));
    if (later) say(`${later}${found.length > later ? " more" : ""} ${later > 1 ? "sections that come" : "section that comes"} after a prediction.`);
    if (!found.length && words.length && index) {
      const near = words.map(nearest);
      if (near.every(Boolean)) propose(near.join(" "));
      else say("Nothing found.");
    }
    list.hidden = !list.children.length;
    field.setAttribute("aria-expanded", !list.hidden);
    field.removeAttribute("aria-activedescendant");
  }

  function say(...words) {
    const line = document.createElement("li");
    line.append(...words);
    list.append(line);
  }

  function propose(words) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = words;
    button.onclick = (event) => { event.stopPropagation(); field.value = words; field.focus(); find(); };
    say("Nothing found. Did you mean ", button, "?");
  }

  // Return the book's word that differs by the fewest letters, at most two; "" if there is none.
  function nearest(word) {
    const known = new Set(index.flatMap((one) => one.plain.match(/[\p{L}\p{N}]{3,}/gu) ?? []));
    let best = "", least = 3;
    for (const other of known) {
      const changes = Math.abs(other.length - word.length) < least ? distance(word, other) : least;
      if (changes < least) { best = other; least = changes; }
    }
    return best;
  }

  function distance(one, other) {
    let row = [...Array(other.length + 1).keys()];
    for (let i = 1; i <= one.length; i++) {
      const next = [i];
      for (let j = 1; j <= other.length; j++) next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] !== other[j - 1])));
      row = next;
    }
    return row.at(-1);
  }

  // Return the text around the first of the words, with the words marked.
  function around(text, words) {
    const plain = text.toLowerCase(), at = Math.max(0, Math.min(...words.map((word) => plain.indexOf(word)).filter((n) => n >= 0), text.length));
    const from = at === text.length ? 0 : Math.max(0, text.lastIndexOf(" ", Math.max(0, at - AROUND / 2)));
    const piece = text.slice(from, from + 2 * AROUND);
    const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return [from ? "… " : "", ...piece.split(new RegExp(`(${escaped.join("|")})`, "i")).map((bit, number) => {
      if (!(number % 2)) return bit;
      const mark = document.createElement("mark");
      mark.textContent = bit;
      return mark;
    }), text.length > from + 2 * AROUND ? " …" : ""];
  }

  function choose(step) {
    const items = [...list.querySelectorAll("[role=option]")];
    if (!items.length) return;
    items[chosen]?.removeAttribute("aria-selected");
    chosen = (chosen + step + items.length) % items.length;
    items[chosen].setAttribute("aria-selected", "true");
    items[chosen].scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", items[chosen].id);
  }

  const close = () => { list.hidden = true; field.setAttribute("aria-expanded", "false"); };
  field.addEventListener("focus", load);
  field.addEventListener("input", () => { load(); find(); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); choose(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Enter") { (list.querySelector("[aria-selected=true] a") ?? list.querySelector("a"))?.click(); close(); }
    else if (event.key === "Escape") { close(); field.blur(); }
  });
  list.addEventListener("click", close);
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".search")) close(); });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, .plot")) return;
    event.preventDefault();
    field.focus();
  });
})();
