// Formulas: TeX in elements of class `math`, drawn by KaTeX.
const SHORT = 3; // pieces of a formula between which a line may be broken; with more it may be wider than a phone
const typeset = (root) => {
  for (const element of root.querySelectorAll(".math:not(.drawn)")) {
    katex.render(element.textContent, element, { displayMode: element.classList.contains("block"), throwOnError: false });
    element.classList.add("drawn");
    join(element);
  }
};
// Keep the punctuation after a short formula on the same line: a browser would break the line between the two.
function join(formula) {
  const mark = formula.nextSibling?.nodeType === Node.TEXT_NODE && formula.nextSibling.data.match(/^[.,;:!?)]+/)?.[0];
  if (!mark || formula.classList.contains("block") || formula.querySelectorAll(".katex-base").length > SHORT) return;
  formula.nextSibling.splitText(mark.length);
  const box = document.createElement("span");
  box.className = "joined";
  formula.replaceWith(box);
  box.append(formula, box.nextSibling);
}
typeset(document);
