// Questions to the program behind the page.

const LOST = "The program behind this page does not answer. Download your work, then start the program again.";

/** The answer to a question; a request that is rejected is an error. */
export async function ask(what, body, headers = { "Content-Type": "application/json" }) {
  const response = await fetch(what, { method: "POST", body, headers });
  if (response.status === 403) throw new Error(await response.text());
  return response.json();
}

/** A question whose answer may be a refusal; a broken connection counts as a refusal. */
export async function asked(what, request) {
  try {
    return await ask(what, JSON.stringify(request));
  } catch {
    return { ok: false, message: LOST };
  }
}

/** Send a file to be read. */
export async function askToRead(file) {
  const headers = {
    "Content-Type": "application/octet-stream",
    "X-File-Name": encodeURIComponent(file.name),
  };
  try {
    return await ask("read", await file.arrayBuffer(), headers);
  } catch {
    return { ok: false, message: "The file could not be read." };
  }
}
