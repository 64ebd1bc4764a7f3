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

function add(parent, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

export function show(place, ...children) {
  // what has the focus keeps it, and what is open stays so, if it is still there by its key
  const active = document.activeElement;
  const key = place.contains(active) ? active.dataset.key : null;
  const open = new Map([...place.querySelectorAll("details")].map((d) => [d.dataset.key, d.open]));
  const made = document.createDocumentFragment();
  add(made, children);
  place.replaceChildren(made);
  for (const details of place.querySelectorAll("details")) {
    if (open.has(details.dataset.key)) details.open = open.get(details.dataset.key);
  }
  if (key) {
    const again = [...place.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key);
    if (again) again.focus({ preventScroll: true });
  }
}

export function table(caption, header, rows) {
  const cells = (row) => row.map((cell, i) => (i ? el("td", {}, cell) : el("th", { scope: "row" }, cell)));
  return el(
    "div.wide",
    { tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, header.map((cell) => el("th", { scope: "col" }, cell)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, cells(row)))),
    ),
  );
}

export const button = (key, words, onclick, options = {}) =>
  el(`button${options.primary ? ".primary" : ""}`, { type: "button", "data-key": key, onclick, disabled: options.disabled }, words);

// A list of choices, given as pairs of a value and its words.
export const select = (key, value, choices, onchange, options = {}) =>
  el(
    "select",
    { "data-key": key, onchange: (event) => onchange(event.target.value), ...options },
    choices.map(([each, words]) => el("option", { value: each, selected: each === value }, words)),
  );

export const input = (key, value, onchange, options = {}) =>
  el("input", { type: "text", "data-key": key, value: value ?? "", onchange: (event) => onchange(event.target.value), ...options });

export const checkbox = (key, checked, words, onchange) =>
  el("label", {}, el("input", { type: "checkbox", "data-key": key, checked, onchange: (event) => onchange(event.target.checked) }), " ", words);

export const bytes = (n) =>
  n < 1024 ? `${n} bytes` : n < 2 ** 20 ? `${(n / 1024).toFixed(0)} KiB` : `${(n / 2 ** 20).toFixed(1)} MiB`;

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
