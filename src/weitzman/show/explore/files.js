// Files: where Save writes, and the question before a file is replaced.

import { el, refill } from "../page/text.js";
import { asked, askToRead } from "./ask.js";
import { fromFile, toFile } from "./edit.js";

const SAVED = /\.(json|json\.gz|wz|csv|tsv|xlsx)$/i;

/** A name for a file of boxes like another one. */
function savedName(title) {
  return SAVED.test(title) ? title : `${title.replace(/\.[a-z]+$/i, "")}.json`;
}

/**
 * `page` has doc(), file() (the name that Save writes to, or null), version(name) (of that file, as
 * this tab has read or written it), saved(doc, name, version), load(doc, name), announce(text), alert(text).
 */
export class Files {
  constructor(place, page, folder) {
    this.page = page;
    this.place = place;
    this.name = el("input", { id: "save-name", size: 28, autocomplete: "off", spellcheck: "false",
      oninput: () => this.#ready(false) });
    this.go = el("button", { type: "submit", class: "main" }, "Save");
    this.about = el("p", { class: "hint", role: "status" });
    const close = el("button", { type: "button", onclick: () => this.close() }, "Cancel");
    refill(place, el("form", { onsubmit: (event) => this.#submit(event) },
      el("label", {}, "Save as ", this.name), this.go, close,
      el("span", { class: "hint" }, "in ", el("bdi", {}, folder)), this.about));
    place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  /** Save to the file at hand; without one, ask for a name. */
  async save() {
    const file = this.page.file();
    if (file === null) this.saveAs();
    else await this.#write(file, true);
  }

  saveAs(message = "") {
    this.place.hidden = false;
    this.name.value = savedName(this.page.file() ?? this.page.title());
    this.#ready(false);
    this.about.textContent = message;
    this.name.focus();
    this.name.select();
  }

  close() {
    if (this.place.hidden) return;
    this.place.hidden = true;
    document.getElementById("save").focus();
  }

  #ready(replace) {
    this.replace = replace;
    this.go.textContent = replace ? "Replace it" : "Save";
  }

  async #submit(event) {
    event.preventDefault();
    await this.#write(this.name.value.trim(), false, this.replace);
  }

  /** `own`: the boxes come from the file of that name, so the user means to replace it. */
  async #write(name, own, anyway = false) {
    const doc = this.page.doc();
    const answer = await asked("save", { document: toFile(doc), name, own, anyway,
      version: this.page.version(name) });
    if (answer.ok && !answer.taken) {
      this.close();
      this.page.saved(doc, answer.file, answer.version);
      this.page.announce(`Saved to ${answer.file}.`);
      return;
    }
    if (!answer.taken && this.place.hidden) {
      this.page.alert(answer.message);
      return;
    }
    if (this.place.hidden) this.saveAs();
    this.name.value = name;
    this.#ready(Boolean(answer.taken));
    this.about.textContent = answer.message;
    if (answer.taken) this.go.focus();
  }

  async open(file) {
    const answer = await askToRead(file);
    if (!answer.ok) {
      this.page.alert(answer.message);
      return;
    }
    this.close();
    this.page.load(fromFile(answer.document), file.name,
      `${file.name} is open. Nothing is written until you save, and Save asks for a name.`);
  }

  download() {
    const title = savedName(this.page.file() ?? this.page.title())
      .replace(/(\.json)?\.gz$|\.(wz|csv|tsv|xlsx)$/i, ".json");
    const text = `${JSON.stringify(toFile(this.page.doc()), null, 1)}\n`;
    give(text, "application/json", title);
    this.page.announce(`Downloaded as ${title}.`);
  }

  async report() {
    const title = (this.page.file() ?? this.page.title()).replace(/\.[a-z.]+$/i, "");
    this.page.announce("Writing the report …");
    const answer = await asked("report", { document: toFile(this.page.doc()), title });
    if (!answer.ok) {
      this.page.alert(answer.message);
      return;
    }
    give(answer.html, "text/html", `${title}-report.html`);
    this.page.announce(`The report was downloaded as ${title}-report.html.`);
  }
}

function give(text, type, title) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: url, download: title }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
