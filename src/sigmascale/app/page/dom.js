// Elements from text: what comes from a file is always a text node, never markup.

export function el(tag, options = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const found = document.createElement(name);
  if (classes.length) found.className = classes.join(" ");
  for (const [key, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) found.addEventListener(key.slice(2), value);
    else if (key === "value") found.value = value;
    else found.setAttribute(key, value === true ? "" : value);
  }
  add(found, children);
  return found;
}

export function svg(tag, options = {}, ...children) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(options)) {
    if (key.startsWith("on")) found.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) found.setAttribute(key, value);
  }
  add(found, children);
  return found;
}

function add(parent, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

export function show(place, ...children) {
  // what has the focus keeps it, if it is still there by its key
  const active = document.activeElement;
  const key = place.contains(active) ? active.dataset.key : null;
  const open = new Set([...place.querySelectorAll("details[open]")].map((d) => d.dataset.key));
  const made = document.createDocumentFragment();
  add(made, children);
  place.replaceChildren(made);
  for (const details of place.querySelectorAll("details")) {
    if (open.has(details.dataset.key)) details.open = true;
  }
  if (key) {
    const again = [...place.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key);
    if (again) again.focus({ preventScroll: true });
  }
}

export function table(header, rows, { caption, rowHeads = true, marks, wide = true } = {}) {
  const made = el(
    "table",
    {},
    el("thead", {}, el("tr", {}, header.map((cell) => el("th", { scope: "col" }, cell)))),
    el(
      "tbody",
      {},
      rows.map((row, i) =>
        el(
          "tr",
          {},
          row.map((cell, j) => {
            const kind = marks && marks[i] && marks[i][j] ? ".bad-cell" : "";
            return j === 0 && rowHeads
              ? el("th", { scope: "row" }, cell)
              : el(`td${kind}`, {}, cell);
          }),
        ),
      ),
    ),
  );
  return wide
    ? el("div.wide", { tabindex: "0", role: "region", "aria-label": caption }, made)
    : made;
}

export const number = (x, digits = 4) =>
  x === null || x === undefined ? "–" : Number(x.toPrecision(digits)).toString();

export const bytes = (n) =>
  n < 1024 ? `${n} bytes` : n < 2 ** 20 ? `${(n / 1024).toFixed(0)} KiB` : `${(n / 2 ** 20).toFixed(1)} MiB`;

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
