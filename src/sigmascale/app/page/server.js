// What the page asks the server, and the sign that it is gone.

const root = location.pathname.replace(/\/[^/]*$/, "/");
let alive = true;

export const address = (path) => root + path;
export const file = (name, shown = false) =>
  root + "files/" + name.split("/").map(encodeURIComponent).join("/") + (shown ? "?show=1" : "");

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(root + path, { cache: "no-store", ...options });
  } catch (problem) {
    setAlive(false);
    throw new Error("The server has stopped.");
  }
  setAlive(true);
  if (answer.status === 403) {
    setAlive(false);
    throw new Error("The server was started again, with another address.");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.problem || `The server answered ${answer.status}.`);
  return found;
}

function setAlive(now) {
  if (now !== alive) {
    alive = now;
    document.getElementById("stopped").hidden = now;
    document.body.classList.toggle("stopped", !now);
  }
}

export const get = (path) => ask(path);
export const post = (path, body = {}) =>
  ask(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
export const put = (path, body) => ask(path, { method: "PUT", body });
export const remove = (path) => ask(path, { method: "DELETE" });
