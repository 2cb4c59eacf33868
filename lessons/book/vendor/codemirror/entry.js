// What the exercise on a page needs of CodeMirror 6: `npm ci && npm run build` writes codemirror.js from this file.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null, tags.self], color: "var(--keyword)" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.comment, color: "var(--comment)", fontStyle: "italic" },
  { tag: tags.number, color: "var(--number)" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--name)" },
]);
const LOOK = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--panel)" },
  "&.cm-focused": { outline: "2px solid var(--link)" },
  ".cm-content": { fontFamily: "var(--code)", caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { color: "var(--soft)", backgroundColor: "var(--panel)", border: "0" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--link) 30%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--line)" },
});

/** A Python editor in `parent` with the text `doc`; changed(text) is called after each change. */
export function open(parent, doc, label, changed) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc,
      extensions: [
        lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), indentUnit.of("    "), python(),
        syntaxHighlighting(COLOURS), LOOK,
        EditorView.contentAttributes.of({ "aria-label": label, autocapitalize: "off" }),
        // After Escape, Tab leaves the text, until something is written.
        keymap.of([{ key: "Escape", run: (here) => { here.setTabFocusMode(true); return false; } }]),
        keymap.of([indentWithTab, ...defaultKeymap, ...historyKeymap]),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          view.setTabFocusMode(false);
          changed(view.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    get value() { return view.state.doc.toString(); },
    set value(text) { view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }); },
    focus() { view.contentDOM.focus({ preventScroll: true }); },
  };
}
