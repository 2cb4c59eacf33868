// Prints the page at its width on the screen, scaled down to fit the paper: pictures are drawn for that width, and it is too
// late to redraw them when printing begins.
// Relies on the test id of Streamlit's main block. Without it, pictures are cut off at the edge of the paper.
const PAPER = 1032; // px between the margins of a landscape A4 page
const NARROW = 720; // px that tables need; on a phone they scroll
addEventListener("beforeprint", () => {
  const main = document.querySelector('[data-testid="stMainBlockContainer"]');
  if (!main) return;
  const { style } = document.documentElement;
  const wide = Math.max(main.offsetWidth, NARROW);
  style.setProperty("--printed", `${wide}px`);
  style.setProperty("--scale", Math.min(1, PAPER / wide));
});
