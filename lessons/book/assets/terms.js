// Terms of the glossary: when one is focused or tapped, its meaning appears below it, inside the window, with a link to
// the glossary. When the pointer is over one, the browser shows its title.
(() => {
  const box = document.createElement("span"), words = document.createElement("span"), link = document.createElement("a");
  box.className = "meaning-of";
  box.role = "note";
  link.textContent = "Glossary";
  box.append(words, " ", link);

  function show(term) {
    words.textContent = `${term.title}.`;
    link.href = `glossary.html#term-${term.dataset.term}`;
    term.after(box);
    const at = term.getBoundingClientRect(), from = box.offsetParent.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, root.clientWidth - box.offsetWidth - 8));
    box.style.left = `${left - from.left}px`;
    box.style.top = `${at.bottom - from.top + 5}px`;
  }

  addEventListener("focusin", ({ target }) => { if (target.matches(".term")) show(target); else if (!box.contains(target)) box.remove(); });
  addEventListener("pointerdown", ({ target }) => { if (!target.closest(".term, .meaning-of")) box.remove(); });
  addEventListener("keydown", ({ key }) => { if (key === "Escape") box.remove(); });
})();
