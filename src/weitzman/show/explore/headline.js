// The decision and the value, or what is wrong, in a few words.

import { about, amount, el, margin, name, plural } from "../page/text.js";
import { base, isEndless } from "./edit.js";

export function headline(doc, solved) {
  const first = solved.first_box === null ? ["Open nothing."]
    : ["Open ", name(solved.first_box), " first."];
  const later = solved.factors ? ", discounted" : "";
  const what = solved.risk !== null ? "Certainty equivalent of the search"
    : `${doc.objective === "minimize" ? "Expected loss and costs" : "Expected value"}${later}`;
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

const SAID = { cost: "cost", duration: "duration", factor: "factor" };

/** What has to be entered before the boxes can be solved, or null: the first field in question. */
export function toEnter(doc) {
  const wrong = (x, what, box, sure = true) => {
    if (!sure && base(x) !== x) return null; // a range
    const of = box ? ` for ${box.name}` : "";
    if (x === "") return `Enter ${what}${of}.`;
    const more = /^[\d.]+ *[^\d\s]+$/.test(x) ? ` If “${x}” has a point between thousands, leave it out.` : "";
    return typeof x === "string" ? `Enter ${what}${of} as a number, such as 1500, 40% or 1/2${sure ? "" : ", or as a range such as 80/100/130"}: “${x}” is none.${more}`
      : null;
  };
  const first = (list) => list.find((message) => message !== null) ?? null;
  const settings = [wrong(doc.outside, "what you get without opening anything"),
    ...["rate", "risk_tolerance", "prizes"].map((key) =>
      wrong(doc.terms[key] ?? 0, `the ${key.replace("_", " ")}`))];
  return first(settings) ?? first(doc.boxes.flatMap((box) => {
    if (box.name === "") return ["Enter a name for every box."];
    const prices = ["cost", doc.time].filter((what) => what && box[what]);
    return [
      ...prices.flatMap((what) => box[what].flat().map((x) => wrong(x, `a ${SAID[what]}`, box, what === "factor"))),
      ...box.rewards.map((x, y) => wrong(x, `the reward of state ${y + 1}`, box, false)),
      ...box.law.flatMap((row) => row.map((x, y) => wrong(x, `the chance of state ${y + 1}`, box, false))),
      wrong(box.count, "the number of copies", box),
    ];
  }));
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
