// Presentation size: P switches it on and off, and ?size=large opens a page with it. The page's style sheet defines it.
const root = document.documentElement;
const large = () => root.dataset.size === "large";
let opened = false;

function show(yes) {
  root.dataset.size = yes ? "large" : "";
  const address = new URL(location.href);
  if (yes) address.searchParams.set("size", "large"); else address.searchParams.delete("size");
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}

// True if the key is typed into a field.
const written = (event) => event.composedPath().some((one) => one.matches?.('input, textarea, select, [contenteditable="true"], [role="combobox"], [role="listbox"]'));

// True if the reader has switched this key off in a timeline's list of keys.
function off() {
  try { return localStorage.getItem("presentation-key") === "off"; } catch { return false; }
}

// Adds a visible button to leave the large size, because no one can guess the key. The page's style sheet says when it shows
// and where: in the header of the app, and on top of everything else on other pages.
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
