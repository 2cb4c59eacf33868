// The little question marks next to controls: what one says is read out with its name. Streamlit says it of what is
// around the button, and a screen reader reads the button alone.
// Relies on the test id of what a help mark hangs on. Without it a screen reader says "Help" and not what the help is.
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

// The one next to a heading is called "Help" and no more: it is named after its heading.
let due = 0;
function name() {
  due = 0;
  for (const mark of document.querySelectorAll('[data-heading-text] button[aria-label="Help"]')) {
    mark.ariaLabel = `Help for ${mark.closest("[data-heading-text]").textContent.trim()}`;
  }
}
new MutationObserver(() => { due ||= requestAnimationFrame(name); }).observe(document.body, { childList: true, subtree: true });
