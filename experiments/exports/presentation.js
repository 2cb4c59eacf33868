// The size of a presentation: P turns it on and off, and so does ?size=large. What it changes is in the page's sheet.
const root = document.documentElement;
const large = () => root.dataset.size === "large";
let opened = false;

function show(yes) {
  root.dataset.size = yes ? "large" : "";
  const address = new URL(location.href);
  if (yes) address.searchParams.set("size", "large"); else address.searchParams.delete("size");
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}

// Whether the key is written somewhere, and not pressed.
const written = (event) => event.composedPath().some((one) => one.matches?.('input, textarea, select, [contenteditable="true"], [role="combobox"], [role="listbox"]'));

// Whether the reader has turned the key off, among the keys of a timeline.
function off() {
  try { return localStorage.getItem("presentation-key") === "off"; } catch { return false; }
}

// A way out that is seen, since nobody knows a key that stands nowhere. Where it stands, and when, is in the page's sheet:
// in the header of the app, which has a place of its own for it, and above all else on other pages.
function leaving() {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "leave-large", textContent: "Leave the large size (P)" });
  button.addEventListener("click", () => show(false));
  (document.querySelector('[data-testid="stApp"]') ?? document.body).prepend(button);
  return button;
}

function presenting() {
  if (!opened) show(new URL(location.href).searchParams.get("size") === "large");
  opened = true;
  const press = (event) => {
    if (event.key.toLowerCase() !== "p" || event.ctrlKey || event.metaKey || event.altKey || event.repeat || written(event) || off()) return;
    show(!large());
  };
  document.addEventListener("keydown", press);
  const button = leaving();
  return () => { document.removeEventListener("keydown", press); button.remove(); };
}
