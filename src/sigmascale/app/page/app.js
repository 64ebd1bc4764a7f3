// The page: five steps, drawn from what the server knows.

import { dropZone, know, opened, rolesOf } from "./columns.js";
import { bytes, button, checkbox, count, el, input, select, show, table } from "./dom.js";
import { address, ask, file } from "./server.js";

const place = (id) => document.getElementById(id);
const KEPT = `sigmascale ${location.pathname}`; // of this start of the server
const KINDS = { pass: "good", FAIL: "bad", "?": "unsure" };
let state = { revision: -1, slots: {}, results: {}, problems: {}, job: null };
let failures = {}; // what was refused at once, by step or file
let sending = "";
const ui = { fit: { test_share: 0.3 }, apply: {}, along: {}, ...JSON.parse(sessionStorage.getItem(KEPT) || "{}") };

// -- talking to the server ------------------------------------------------------------

async function refresh() {
  const found = await ask("GET", `api/state?known=${state.revision}`);
  const isNew = found.revision !== state.revision;
  state = { ...state, ...found };
  if (found.roles) know(found.roles);
  if (isNew) draw();
  drawBusy();
  const unread = Object.keys(state.slots).find((slot) => !state.slots[slot].view && !state.problems[slot]);
  if (unread && !state.job) await act(unread, () => ask("POST", `api/examine/${unread}`));
}

async function act(where, work) {
  delete failures[where];
  try {
    await work();
  } catch (problem) {
    failures[where] = problem;
  }
  state.revision = -1; // draw, whatever has changed
  await refresh().catch(() => {});
}

async function poll() {
  await refresh().catch(() => {}); // the page says if the server is gone
  setTimeout(poll, state.job ? 250 : 1500);
}

const send = (slot, chosen) =>
  act(slot, async () => {
    if (chosen.size > state.largest) throw { message: `${chosen.name} has ${bytes(chosen.size)}; this page takes up to ${bytes(state.largest)}. Use the command line, which knows no limit.`, code: "too-large", fields: {} };
    sending = chosen.name;
    drawBusy();
    try {
      await ask("PUT", `api/table/${slot}?name=${encodeURIComponent(chosen.name)}`, chosen);
    } finally {
      sending = "";
    }
  });

// Other fields of a file; it is looked at again where other columns may come of them.
const settle = (slot, fields, again = false) =>
  act(slot, async () => {
    const said = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== false));
    await ask("POST", `api/fields/${slot}`, said);
    if (again) await ask("POST", `api/examine/${slot}`);
  });
const run = (step, fields) => act(step, () => ask("POST", `api/run/${step}`, fields));

// -- drawing --------------------------------------------------------------------------

function draw() {
  sessionStorage.setItem(KEPT, JSON.stringify(ui));
  place("version").textContent = state.version;
  show(place("table"), tableStep());
  show(place("check"), checkStep());
  show(place("fit"), fitStep());
  show(place("apply"), applyStep());
  show(place("take"), takeStep());
  const { check, fit, apply } = state.results;
  const done = [usable(), check, fit, apply, check || fit || apply].map(Boolean);
  [...place("steps").children].forEach((step, i) => {
    step.classList.toggle("done", done[i]);
    if (i === done.indexOf(false)) step.firstElementChild.setAttribute("aria-current", "step");
    else step.firstElementChild.removeAttribute("aria-current");
  });
  document.body.dataset.revision = state.revision; // what is shown, for whoever waits
}

function drawBusy() {
  const { job } = state;
  place("busy").hidden = !job && !sending;
  place("cancel").hidden = !job;
  place("busy-words").textContent = job ? `${job.words} … ${Math.floor(job.seconds)} s` : `sending ${sending} …`;
}

const choose = (part, change) => {
  Object.assign(ui[part], change);
  draw();
};

// What a click can do about a problem, by its code: other fields, and how they are called.
const REMEDIES = {
  separator: ({ separator, decimal }) => {
    const words = `Read it with ${separator === "\t" ? "tabs" : `“${separator}”`} between columns`;
    return decimal === "," ? [{ separator, decimal }, `${words} and decimal commas`, true] : [{ separator }, words, true];
  },
  "decimal-comma": () => [{ decimal: "," }, "Read commas as decimal marks", true],
  "missing-values": () => [{ drop_missing: true }, "Exclude rows with missing values"],
};

// What is wrong with a step or a file, with the click that mends it.
function trouble(name, slot = "table", problem = failures[name] || state.problems[name]) {
  if (!problem) return null;
  if (problem.code === "stopped") return el("p.hint", { role: "status" }, "Stopped. Start it again when you like.");
  const [change, words, again] = state.slots[slot] && problem.code in REMEDIES ? REMEDIES[problem.code](problem.fields) : [];
  const mend = () => settle(slot, { ...state.slots[slot].fields, ...change }, again);
  return el("div.problem", { role: "alert", "data-code": problem.code }, el("p", {}, problem.message), change && el("p", {}, button(`mend ${name}`, words, mend, { primary: true })));
}

const warned = (found) => found.warnings.length > 0 && el("ul.warned", {}, found.warnings.map((words) => el("li", {}, words)));
const hint = (words) => el("p.hint", {}, words);

// -- 1 table --------------------------------------------------------------------------

function usable() {
  const slot = state.slots.table;
  if (!slot || !slot.view) return false;
  const roles = new Set(rolesOf(slot.fields).values());
  const made = ["members", "quantile_columns", "low"].some((role) => roles.has(role));
  const hasError = roles.has("error") || (roles.has("reference") && (roles.has("prediction") || made));
  return hasError && (made || roles.has("uncertainty") || roles.has("variance"));
}

function tableStep() {
  const slot = state.slots.table;
  return [
    dropZone("table", slot ? "Drop another table, or" : "Drop a table with predictions, true values and uncertainties", state, send, button("demo", "Take the demo", () => act("table", () => ask("POST", "api/demo")))),
    trouble("table"),
    slot && opened("table", state, settle),
    slot && slot.view && !usable() && trouble("table", "table", slot.view.problem || { message: "Say which column is the uncertainty, and which the error, or the true value and the prediction.", code: "column", fields: {} }),
    usable() && el("p", {}, button("check", state.results.check ? "Test again" : "Test the uncertainties", () => run("check", {}), { primary: true, disabled: Boolean(state.job) })),
  ];
}

// -- 2 result ------------------------------------------------------------------------

// Lines of checks: the result, the check and its subgroup, and the estimate.
const results = ({ stage, head, column, lines }) =>
  el(
    "table.results",
    {},
    el("tr", {}, el("th", { colspan: "2" }, stage && el("b", {}, stage), head), el("th", {}, column)),
    lines.map(({ mark, name, where, numbers, check }) => el("tr", { "data-check": check }, el(`td.mark.${KINDS[mark] || "none"}`, {}, mark), el("td", {}, name, where && el("small", {}, where)), el("td.n", {}, numbers))),
  );

// What can be done next, by the command that does it: the button, and what it does.
const ACTIONS = {
  fit: (options) => ["Recalibrate", () => recalibrate(options)],
  apply: () => ["Recalibrate new predictions", () => place("step-apply").scrollIntoView()],
  check: (options) => ["Test intervals alone", () => run("check", options)],
  groups: () => ["Choose the column of groups", () => place("step-table").scrollIntoView()],
};

// The results of a step: boxes, a picture, a line for each check, and what to do next.
function verdict(step, found) {
  const along = found.figures.find((each) => each.name === ui.along[step]) || found.figures[1] || found.figures[0];
  const first = found.figures.find((each) => each !== along);
  const picture = (each) => el("img", { src: `${file(each.file, true)}&r=${state.revision}`, alt: each.title, width: each.width, height: each.height });
  const action = ({ what, verb, options }) => {
    const [label, act] = ACTIONS[verb] ? ACTIONS[verb](options) : [];
    return el("li", {}, what, " ", label && button(`do ${what}`, label, act));
  };
  return [
    el("div.boxes", { "data-result": found.result }, found.boxes.map(({ stage, kind, word, rest, numbers }) => el(`div.box.${kind}`, {}, stage && el("small", {}, stage), el("b", {}, word), el("span", {}, rest), el("small", {}, numbers)))),
    warned(found),
    along &&
      el(
        "div.answer",
        {},
        first && el("figure.main", {}, picture(first)),
        el(
          "figure.main",
          { "data-along": along.name },
          picture(along),
          el("figcaption", {}, el("label", {}, "Along ", select(`along ${step}`, along.name, found.figures.map(({ name, words }) => [name, words]), (name) => choose("along", { [step]: name })))),
        ),
      ),
    el("div.answer", {}, found.tables.map(results)),
    el("dl.statements", {}, found.statements.flatMap(([topic, words]) => [el("dt", {}, topic), el("dd", {}, words)])),
    found.next_steps.length > 0 && el("div.next", {}, el("strong", {}, "Next"), el("ul", {}, found.next_steps.map(action))),
    el("p", {}, el("a", { href: file(found.report, true), target: "_blank", rel: "noopener" }, "Read the report")),
  ];
}

// What a result advises, as fields of step 3, which then begins.
function recalibrate(options) {
  Object.assign(ui.fit, { scaling: null, bias: null, parts: null }, options);
  place("step-fit").scrollIntoView();
  run("fit", fitFields());
}

function checkStep() {
  const found = state.results.check;
  if (found) return verdict("check", found);
  return [trouble("check"), !state.problems.check && hint(usable() ? "Not tested yet." : "First, a table.")];
}

// -- 3 recalibrate --------------------------------------------------------------------

function fitFields() {
  const { second, ...fields } = ui.fit;
  if (second) delete fields.test_share;
  for (const name of Object.keys(fields)) if (!fields[name]) delete fields[name];
  return fields;
}

function fitStep() {
  const found = state.results.fit;
  if (!usable()) return [trouble("fit"), hint("First, a table.")];
  const { second } = ui.fit;
  const way = (value, words) => el("label", {}, el("input", { type: "radio", name: "second", "data-key": `second ${value}`, checked: Boolean(second) === value, onchange: () => choose("fit", { second: value }) }), " ", words);
  const share = input("share", ui.fit.test_share, (text) => choose("fit", { test_share: Number(text) || text }), { class: "short", "aria-label": "Share of the rows" });
  return [
    el(
      "div.options",
      {},
      el("label", {}, "How ", select("scaling", ui.fit.scaling || "boosted", state.slots.table.view?.scalings || [], (scaling) => choose("fit", { scaling }))),
      checkbox("bias", ui.fit.bias, "Correct the bias of predictions, where that helps", (on) => choose("fit", { bias: on ? "auto" : null })),
      ui.fit.parts && checkbox("parts", true, `Guarantee coverage in each label or fifth of ${ui.fit.parts.join(" and ")}`, () => choose("fit", { parts: null })),
    ),
    el("div.options", {}, way(false, "Fit this table, and test on a share of it that is held out: "), share, way(true, "Fit another file, and test on this table")),
    second && [dropZone("known", state.slots.known ? "Drop another file, or" : "Drop the file to fit, or", state, send), trouble("known", "known"), state.slots.known && opened("known", state, settle)],
    trouble("fit", second ? "known" : "table"),
    el("p", {}, button("fit", found ? "Recalibrate again" : "Recalibrate", () => run("fit", fitFields()), { primary: true, disabled: Boolean(state.job || (second && !state.slots.known)) })),
    found && [verdict("fit", found), el("h3", {}, "The fitted correction"), el("p", {}, found.fitted)],
  ];
}

// -- 4 new predictions ----------------------------------------------------------------

function applyStep() {
  const learned = state.results.fit;
  const found = state.results.apply;
  const source = learned && ui.apply.source !== "file" ? "fit" : "file";
  const way = (value, words) => el("label", {}, el("input", { type: "radio", name: "source", "data-key": `source ${value}`, checked: source === value, onchange: () => choose("apply", { source: value }) }), " ", words);
  const levels = String(ui.apply.quantiles || "").split(/[\s,;]+/).filter(Boolean).map((each) => (Number.isFinite(Number(each)) ? Number(each) : each));
  const fields = { source, ...(levels.length ? { quantiles: levels } : {}), ...(ui.apply.coverage ? { coverage: Number(ui.apply.coverage) || ui.apply.coverage } : {}) };
  const drop = dropZone("new", state.slots.new ? "Drop another table, or" : "Drop predictions whose true values nobody knows yet, or", state, send);
  if (!state.slots.new) return [drop, trouble("new", "new")];
  return [
    drop,
    trouble("new", "new"),
    opened("new", state, settle),
    learned && el("div.options", {}, way("fit", "By the recalibrator of step 3"), way("file", "By a recalibrator from a file")),
    source === "file" && [dropZone("recalibrator", state.slots.recalibrator ? "Drop another recalibrator, or" : "Drop a recalibrator (JSON), or", state, send), trouble("recalibrator", "recalibrator"), state.slots.recalibrator && opened("recalibrator", state, settle)],
    el(
      "div.options",
      {},
      el("label", {}, "Coverage of intervals ", input("coverage", ui.apply.coverage, (coverage) => choose("apply", { coverage }), { class: "short", placeholder: "0.95" })),
      el("label", {}, "Quantiles ", input("quantiles", ui.apply.quantiles, (quantiles) => choose("apply", { quantiles }), { placeholder: "0.05, 0.5, 0.95" })),
    ),
    trouble("apply", "new"),
    el("p", {}, button("apply", "Recalibrate these", () => run("apply", fields), { primary: true, disabled: Boolean(state.job || (source === "file" && !state.slots.recalibrator)) })),
    found && [warned(found), table("First rows of the recalibrated table, the new columns first", found.head.columns, found.head.rows), el("p", {}, link(found.files[0]))],
  ];
}

// -- 5 download ---------------------------------------------------------------------

const link = (name) => el("a", { href: file(name), download: name }, name);
const ABOUT = [
  [/_report\.html$/, "the report on the table as it is"],
  [/_card\.html$/, "the card: the results on one page"],
  [/_before_after\.html$/, "the report before and after recalibration"],
  [/_recalibrator\S*\.json$/, "the recalibrator, for step 4, Python and the command line"],
  [/_recalibrated/, "the table with recalibrated uncertainties and intervals"],
];

function takeStep() {
  const found = ["check", "fit", "apply"].map((step) => state.results[step]).filter(Boolean);
  if (!found.length) return hint("Nothing to download yet.");
  const files = found.flatMap((each) => each.files);
  const lines = found.flatMap((each) => each.lines).join("\n");
  const copy = async ({ target }) => {
    try {
      await navigator.clipboard.writeText(lines);
      target.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(place("lines"));
      target.textContent = "Selected: copy it";
    }
  };
  return [
    el("ul.files", {}, files.map((name) => el("li", {}, link(name), " ", el("span.hint", {}, (ABOUT.find(([pattern]) => pattern.test(name)) || [])[1])))),
    el("p", {}, el("a", { href: address("all.zip"), download: "sigmascale.zip" }, "All of these files in one (ZIP)")),
    el("h3", {}, "The same by the command line"),
    el("pre", { id: "lines", tabindex: "0", "aria-label": "Lines to type" }, lines),
    button("copy", "Copy", copy),
  ];
}

// -- beginning ------------------------------------------------------------------------

place("cancel").addEventListener("click", () => act("cancel", () => ask("POST", "api/cancel")));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  const zone = event.target.closest?.("[data-slot]");
  const chosen = event.dataTransfer.files[0];
  if (chosen) send(zone ? zone.dataset.slot : "table", chosen);
});
await poll();
