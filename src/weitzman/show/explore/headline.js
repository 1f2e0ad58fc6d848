// The decision and the value, or what is wrong, in a few words.

import { about, amount, el, margin, name, plural } from "../page/text.js";
import { isEndless } from "./edit.js";

export function headline(doc, solved) {
  const first = solved.first_box === null ? ["Open nothing."]
    : ["Open ", name(solved.first_box), " first."];
  const later = solved.factors ? ", discounted" : "";
  const what = solved.risk !== null ? "Certainty equivalent of the search"
    : `${doc.objective === "minimize" ? "Expected loss and costs" : "Worth of the search"}${later}`;
  const all = doc.boxes.every((box) => box.count === 1 && !isEndless(box)); // written one by one
  const boxes = all ? `of ${plural(doc.boxes.length, "box", "boxes")}`
    : solved.openings === 1 ? "box" : "boxes";
  const opened = `${about(solved.openings)} ${boxes}`;
  const gap = solved.gap ? ` Error of the value: at most ${margin(solved.gap)}.` : "";
  const time = solved.durations ? ` It takes ${about(solved.time)} on average.` : "";
  const places = solved.prizes > 1
    ? ` ${about(solved.prizes - solved.outside)} of ${solved.prizes} prizes taken.` : "";
  return [
    el("h1", {}, ...first),
    el("p", { class: "value" }, el("span", {}, `${what} `),
      el("b", { id: "value" }, amount(solved.value, solved.gap))),
    el("p", { class: "hint" },
      `${opened} opened on average, ${amount(solved.spend)} spent${later}.${time}${places}${gap}`),
  ];
}

/** A message about a file in the words of the page: "boxes[2] ('C'): law[0]" is a chance of C. */
export function complaint(message) {
  const found = message.match(/^boxes\[\d+\] \((['"])(.*?)\1\): (.*)$/s);
  if (!found) return message;
  const state = (y) => `state ${Number(y) + 1}`;
  const rest = found[3]
    .replace(/^law\[(\d+)\]\[(\d+)\]/, (_, s, y) => `the chance of ${state(y)} (column ${Number(s) + 1})`)
    .replace(/^law\[(\d+)\]/, (_, y) => `the chance of ${state(y)}`)
    .replace(/^rewards\[(\d+)\]/, (_, y) => `the reward of ${state(y)}`)
    .replace(/^states\[(\d+)\]/, (_, y) => `the name of ${state(y)}`)
    .replace(/^(cost|duration|factor)(\[\d+\])*/, "the $1")
    .replace(/^count/, "the number of copies");
  return `Box ${found[2]}: ${rest}`;
}
