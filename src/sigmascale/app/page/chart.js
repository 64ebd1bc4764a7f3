// Local calibration as a picture that answers: hover, keys and clicks.

import { count, el, number, svg } from "./dom.js";

const HEIGHT = 320;
const EDGE = { left: 56, right: 30, top: 12, bottom: 46 };
export const narrow = matchMedia("(max-width: 40rem)"); // where letters must not shrink

// As the pictures of the report decide it: does it bring the median to the middle?
const logHelps = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, middle, high] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted[sorted.length - 1]];
  if (!(low > 0) || high < 3 * low) return false;
  const linear = Math.abs((middle - low) / (high - low) - 0.5);
  const log = Math.abs(Math.log(middle / low) / Math.log(high / low) - 0.5);
  return log < (high > 30 * low ? linear + 0.1 : linear - 0.1);
};

function scale(low, high, from, to, log) {
  const f = log ? Math.log10 : (x) => x;
  const [a, b] = [f(low), f(high)];
  return (x) => from + ((f(x) - a) / (b - a || 1)) * (to - from);
}

function linearTicks(low, high, wanted = 5) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= raw) || 10);
  const found = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * step; x += step) {
    found.push(Number(x.toPrecision(10)));
  }
  return found;
}

function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const factors = decades > 3 ? [1] : decades > 1.5 ? [1, 3] : decades > 0.6 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const found = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += 1) {
    for (const f of factors) {
      const x = f * 10 ** e;
      if (x >= low * 0.999 && x <= high * 1.001) found.push(Number(x.toPrecision(6)));
    }
  }
  return found.length < 2 && low < high ? linearTicks(low, high, 4).filter((x) => x > 0) : found;
}

const short = (text, n = 14) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

export const shownName = (name) => (name === "u" ? "uncertainty u" : name);

export function words(local, i) {
  const where = local.grouped
    ? `${shownName(local.name)} = ${local.x[i]}`
    : `${shownName(local.name)} from ${number(local.x_min[i])} to ${number(local.x_max[i])}`;
  const state = local.grey[i] ? "too few rows to tell" : local.valid[i] ? "valid" : "interval misses 1";
  return [
    `Bin ${i + 1} of ${local.n.length}: ${state}`,
    where,
    `⟨Z²⟩ = ${number(local.zms[i])}, interval ${number(local.low[i])} to ${number(local.high[i])}`,
    count(local.n[i], "row"),
  ];
}

// Ranges that several pictures of one variable share.
export function range(locals) {
  const bands = locals.flatMap((l) => (l.band ? [...l.band.low, ...l.band.high] : []));
  const all = locals.flatMap((l) => [...l.zms, ...l.low, ...l.high]).concat(bands.filter((x) => x > 0.02 && x < 50)).filter((x) => x > 0);
  return [Math.min(...all, 0.5) * 0.9, Math.max(...all, 2) * 1.1];
}

// Between which ⟨Z²⟩ is, at once along the variable: an area, or a bar for each label.
function bandOf(local, x, inY) {
  const { x: at, low, high } = local.band;
  if (local.grouped) {
    const half = Math.min(14, (x(1) - x(0)) * 0.3);
    return local.x.flatMap((label, i) => {
      const k = at.findIndex((each) => String(each) === String(label));
      return k < 0 ? [] : [`M${x(i) - half} ${inY(low[k])}H${x(i) + half}V${inY(high[k])}H${x(i) - half}Z`];
    });
  }
  if (at.length < 2) return [];
  const clip = (v) => Math.min(Math.max(v, local.x[0]), local.x[local.x.length - 1]);
  const edge = (values) => values.map((v, i) => `${x(clip(at[i]))} ${inY(v)}`);
  return [`M${[...edge(high), ...edge(low).reverse()].join("L")}Z`];
}

export function chart(local, { xLog, yLog, limits, pick, label }) {
  const WIDTH = narrow.matches ? 360 : 560;
  const [bottom, top] = limits;
  const useLog = yLog !== "linear";
  const yLow = useLog ? bottom : 0;
  const plot = { left: EDGE.left, right: WIDTH - EDGE.right, top: EDGE.top, bottom: HEIGHT - EDGE.bottom };
  const y = scale(yLow, top, plot.bottom, plot.top, useLog);
  const inY = (value) => y(Math.min(top, Math.max(useLog ? bottom : 0, value)));
  let xs, xTicks, x;
  if (local.grouped) {
    xs = local.x.map((_, i) => i);
    x = scale(-0.5, xs.length - 0.5, plot.left, plot.right, false);
    const step = Math.ceil((xs.length * 70) / WIDTH);
    xTicks = xs.filter((i) => i % step === 0).map((i) => [i, short(String(local.x[i]), 9)]);
  } else {
    xs = local.x;
    const isLog = xLog === "log" ? xs.every((v) => v > 0) : xLog === "linear" ? false : logHelps(xs);
    let low = Math.min(...xs);
    let high = Math.max(...xs);
    if (low === high) [low, high] = isLog ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
    const room = isLog ? (high / low) ** 0.04 : (high - low) * 0.04;
    [low, high] = isLog ? [low / room, high * room] : [low - room, high + room];
    x = scale(low, high, plot.left, plot.right, isLog);
    xTicks = (isLog ? logTicks(low, high) : linearTicks(low, high, WIDTH / 110)).map((t) => [t, number(t)]);
  }
  const yTicks = useLog ? logTicks(bottom, top) : linearTicks(0, top);
  const tip = el("div.tip", { hidden: true, "aria-hidden": "true" });
  let active = -1;
  const marks = xs.map((value, i) => {
    const kind = local.grey[i] ? "grey" : local.valid[i] ? "valid" : "invalid";
    const [cx, cy] = [x(value), inY(local.zms[i])];
    const cross = `M${cx - 4} ${cy - 4}L${cx + 4} ${cy + 4}M${cx - 4} ${cy + 4}L${cx + 4} ${cy - 4}`;
    return svg(
      "g",
      { class: `bin ${kind}`, "data-bin": i },
      svg("line", { x1: cx, x2: cx, y1: inY(local.low[i]), y2: inY(local.high[i]) }),
      kind === "invalid" ? svg("path", { d: cross }) : svg("circle", { cx, cy, r: 3.4 }),
    );
  });
  const places = xs.map((value) => x(value));
  const edges = local.band ? bandOf(local, x, inY) : [];
  const picture = svg(
    "svg",
    {
      class: "chart",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      tabindex: "0",
      "aria-label": `${label}. Arrow keys go from bin to bin, Enter shows the rows of a bin.`,
      "data-key": `chart ${label}`,
    },
    svg("title", {}, label),
    yTicks.map((t) => [
      svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(t), y2: y(t) }),
      svg("text", { x: plot.left - 7, y: y(t) + 4, class: "end" }, number(t)),
    ]),
    edges.map((d) => svg("path", { class: "band", d })),
    svg("line", { class: "target", x1: plot.left, x2: plot.right, y1: inY(1), y2: inY(1) }),
    xTicks.map(([t, name]) => [
      svg("line", { class: "tick", x1: x(t), x2: x(t), y1: plot.bottom, y2: plot.bottom + 5 }),
      svg("text", { x: x(t), y: plot.bottom + 18, class: "middle" }, name),
    ]),
    svg("path", { class: "axis", d: `M${plot.left} ${plot.top}V${plot.bottom}H${plot.right}` }),
    svg("text", { x: (plot.left + plot.right) / 2, y: HEIGHT - 8, class: "middle name" }, short(shownName(local.name), WIDTH / 9)),
    svg("text", { x: 0, y: 0, class: "middle name", transform: `translate(13 ${(plot.top + plot.bottom) / 2}) rotate(-90)` }, "local ⟨Z²⟩"),
    svg(
      "g",
      { class: "overall" },
      svg("line", { x1: plot.right + 14, x2: plot.right + 14, y1: inY(local.overall[1]), y2: inY(local.overall[2]) }),
      svg("rect", { x: plot.right + 10.5, y: inY(local.overall[0]) - 3.5, width: 7, height: 7 }),
      svg("title", {}, `All rows: ⟨Z²⟩ = ${number(local.overall[0])}`),
    ),
    marks,
    svg("rect", { class: "catch", x: plot.left - 8, y: plot.top, width: plot.right - plot.left + 16, height: plot.bottom - plot.top }),
  );
  const live = el("p.tip-words", { "aria-live": "polite" }, "");
  const select = (i, quiet) => {
    if (active >= 0) marks[active].classList.remove("active");
    active = i;
    tip.hidden = i < 0;
    if (i < 0) return;
    marks[i].classList.add("active");
    const told = words(local, i);
    tip.replaceChildren(...told.map((line, j) => el(j ? "div" : "strong", {}, line)));
    const share = places[i] / WIDTH;
    tip.classList.toggle("left", share > 0.5);
    tip.style.left = `${100 * share}%`;
    if (!quiet) live.textContent = told.join("; ");
  };
  const nearest = (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    let best = 0;
    places.forEach((p, i) => {
      if (Math.abs(p - at) < Math.abs(places[best] - at)) best = i;
    });
    return best;
  };
  const rowsOf = (i) => pick && pick(local.grouped
    ? { variable: local.name, low: String(local.x[i]), high: String(local.x[i]), where: `${local.name} = ${local.x[i]}` }
    : { variable: local.name, low: local.x_min[i], high: local.x_max[i], where: words(local, i)[1] });
  picture.addEventListener("pointermove", (event) => select(nearest(event), true));
  picture.addEventListener("pointerleave", () => select(-1));
  picture.addEventListener("click", (event) => rowsOf(nearest(event)));
  picture.addEventListener("blur", () => select(-1));
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      select(Math.min(xs.length - 1, Math.max(0, active + step)));
      event.preventDefault();
    } else if (event.key === "Home" || event.key === "End") {
      select(event.key === "Home" ? 0 : xs.length - 1);
      event.preventDefault();
    } else if (event.key === "Escape") {
      select(-1);
    } else if (event.key === "Enter" && active >= 0) {
      rowsOf(active);
    }
  });
  return el("div.chart-box", {}, picture, tip, live);
}
