// What the page asks the server, and the sign that it is gone.

const root = location.pathname.replace(/\/[^/]*$/, "/");

export const address = (path) => root + path;
export const file = (name, shown = false) =>
  root + "files/" + name.split("/").map(encodeURIComponent).join("/") + (shown ? "?show=1" : "");

export async function ask(method, path, body) {
  const json = body !== undefined && !(body instanceof Blob);
  const options = { method, cache: "no-store", body: json ? JSON.stringify(body) : body };
  if (json) options.headers = { "content-type": "application/json" };
  let answer = null;
  try {
    answer = await fetch(root + path, options);
  } catch {
    /* nobody answers */
  }
  const alive = answer !== null && answer.status !== 403; // or it was started again
  document.getElementById("stopped").hidden = alive;
  document.body.classList.toggle("stopped", !alive);
  if (!alive) throw { message: "The server has stopped.", code: "gone", fields: {} };
  const found = await answer.json().catch(() => ({ message: `The server answered ${answer.status}.`, code: "answer", fields: {} }));
  if (!answer.ok) throw found;
  return found;
}
