// Formulas: TeX in elements of class `math`, drawn by KaTeX.
const typeset = (root) => {
  for (const element of root.querySelectorAll(".math:not(.drawn)")) {
    katex.render(element.textContent, element, { displayMode: element.classList.contains("block"), throwOnError: false });
    element.classList.add("drawn");
  }
};
typeset(document);
