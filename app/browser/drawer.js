// On a phone, Streamlit's side bar is a drawer over the page. Close it when the reader chooses a page or starts a run.
// Relies on the test ids of the page links and of the button that closes the side bar. Without them, it stays open.
const NARROW = "(max-width: 767px)"; // screens on which the side bar is a drawer
const CHOSEN = ".st-key-run button, .st-key-reset button, .st-key-mend button, .stSidebar [data-testid=stSidebarNavLink]";

document.addEventListener("click", (event) => {
  if (!matchMedia(NARROW).matches || !event.target.closest?.(CHOSEN)) return;
  setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click(), 50); // after Streamlit has handled the click
});
