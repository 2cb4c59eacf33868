// On a phone Streamlit's side bar is a drawer over the page. It closes once a page or a run has been chosen in it.
// Relies on the test ids of the links to pages and of the button that closes the side bar. Without them it stays open.
const NARROW = "(max-width: 767px)"; // where the side bar is a drawer
const CHOSEN = ".st-key-run button, .st-key-reset button, .st-key-mend button, .stSidebar [data-testid=stSidebarNavLink]";

document.addEventListener("click", (event) => {
  if (!matchMedia(NARROW).matches || !event.target.closest?.(CHOSEN)) return;
  setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click(), 50); // after Streamlit has heard it
});
