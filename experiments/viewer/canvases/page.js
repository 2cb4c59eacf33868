// Canvases on a page without Streamlit. Each has a shadow root of its own and is redrawn when the page's colours change.

const shown = new Set();

function inShadow(inside, mount) {
  return (element, bytes, events) => {
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    if (!root.firstChild) root.innerHTML = inside;
    const canvas = mount(root, bytes, events);
    shown.add(canvas);
    return canvas;
  };
}

lockstep.bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
lockstep.redraw = () => shown.forEach((canvas) => canvas.redraw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", lockstep.redraw);
