// On paper a page is as wide as it was on the screen, and smaller: pictures were drawn for that width, and a script
// that drew them anew would come too late.
// Relies on the test id of Streamlit's block of the page. Without it pictures are cut off at the edge of the paper.
const PAPER = 1032; // px between the margins of an A4 page that lies on its side
const NARROW = 720; // px that tables need, which a phone scrolls
addEventListener("beforeprint", () => {
  const main = document.querySelector('[data-testid="stMainBlockContainer"]');
  if (!main) return;
  const { style } = document.documentElement;
  const wide = Math.max(main.offsetWidth, NARROW);
  style.setProperty("--printed", `${wide}px`);
  style.setProperty("--scale", Math.min(1, PAPER / wide));
});
