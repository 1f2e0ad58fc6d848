// The decision and the value, in a few words.

import { el, name, number, plural } from "../_page/text.js";

export function headline(doc, solved) {
  const first = solved.first === null ? ["Open nothing."]
    : ["Open ", name(doc.boxes[solved.first].name), " first."];
  const what = doc.objective === "minimise" ? "Loss and costs to expect" : "Worth of the search";
  const opened = `${number(solved.openings, 3)} of ${plural(doc.boxes.length, "box", "boxes")}`;
  const gap = solved.gap ? ` Error of the value: at most ${number(solved.gap, 2)}.` : "";
  return [
    el("h1", {}, ...first),
    el("p", { class: "value" }, el("span", {}, `${what} `),
      el("b", { id: "value" }, number(solved.value, 10))),
    el("p", { class: "hint" }, `${opened} opened on average, ${number(solved.spend)} spent.${gap}`),
  ];
}
