// Makes screen readers read the text of the help marks next to controls. Streamlit puts the description on the element
// around the button, but a screen reader reads only the button.
// Relies on the test id of the element around a help mark. Without it, a screen reader says "Help" but not the help text.
document.addEventListener("focusin", ({ target }) => {
  const around = target.matches?.("button") && target.closest('[data-testid="stTooltipHoverTarget"]');
  if (!around) return;
  const describe = () => {
    const told = around.getAttribute("aria-describedby");
    if (told) target.setAttribute("aria-describedby", told);
    else target.removeAttribute("aria-describedby");
  };
  describe();
  const watch = new MutationObserver(describe);
  watch.observe(around, { attributeFilter: ["aria-describedby"] });
  target.addEventListener("blur", () => { watch.disconnect(); target.removeAttribute("aria-describedby"); }, { once: true });
});

// Name the mark next to a heading after that heading; Streamlit calls every one of them "Help".
let due = 0;
function name() {
  due = 0;
  for (const mark of document.querySelectorAll('[data-heading-text] button[aria-label="Help"]')) {
    mark.ariaLabel = `Help for ${mark.closest("[data-heading-text]").textContent.trim()}`;
  }
}
new MutationObserver(() => { due ||= requestAnimationFrame(name); }).observe(document.body, { childList: true, subtree: true });
