// Words of the documentation, where a term is hovered or has the focus.

import { el } from "./dom.js";
import { get } from "./server.js";

let terms = {};
const tip = document.getElementById("tip");

export async function loadWords() {
  const found = await get("static/words.json");
  terms = found.terms;
  return found.methods;
}

export function term(key, words = key) {
  if (!terms[key]) return words;
  const found = el("span.term", { tabindex: "0", role: "button", "aria-label": words === "?" ? `What ${key} means` : words, "data-term": key }, words);
  const open = () => {
    tip.replaceChildren(el("strong", {}, key), " ", terms[key]);
    tip.hidden = false;
    const box = found.getBoundingClientRect();
    const width = Math.min(320, innerWidth - 20);
    tip.style.width = `${width}px`;
    tip.style.left = `${Math.max(10, Math.min(box.left, innerWidth - width - 10)) + scrollX}px`;
    tip.style.top = `${box.bottom + scrollY + 6}px`;
    found.setAttribute("aria-describedby", "tip");
  };
  const close = () => {
    tip.hidden = true;
    found.removeAttribute("aria-describedby");
  };
  for (const name of ["pointerenter", "focus", "click"]) found.addEventListener(name, open);
  for (const name of ["pointerleave", "blur"]) found.addEventListener(name, close);
  found.addEventListener("keydown", (event) => event.key === "Escape" && close());
  return found;
}
