// The page: five steps, drawn from what the server knows.

import { narrow } from "./chart.js";
import { bytes, count, el, show, table } from "./dom.js";
import { address, file, get, post, put, remove } from "./server.js";
import { panel, stageCard, scoreTable } from "./results.js";
import { columnsOf, dropZone, readingOf, unusable } from "./tables.js";
import { loadWords, term } from "./tips.js";

const place = (id) => document.getElementById(id);
let state = null;
let full = { revision: -1, tables: {}, results: {} };
let failures = {};
let sending = null;
let drawn = "";
const KEPT = `sigmascale ${location.pathname}`; // of this start of the server
const ui = restored();

function restored() {
  try {
    return { plan: {}, views: {}, wanted: {}, ...JSON.parse(sessionStorage.getItem(KEPT) || "{}") };
  } catch {
    return { plan: {}, views: {}, wanted: {} };
  }
}

function remember() {
  sessionStorage.setItem(KEPT, JSON.stringify({ plan: ui.plan, views: ui.views, wanted: ui.wanted }));
}

// -- talking to the server ------------------------------------------------------------

async function refresh() {
  state = await get("api/state");
  if (state.revision !== full.revision) full = await get("api/everything");
  draw();
}

async function act(where, work) {
  delete failures[where];
  try {
    await work();
  } catch (problem) {
    failures[where] = problem.message;
  }
  await refresh().catch(() => {});
}

let timer = null;
async function poll() {
  clearTimeout(timer);
  try {
    await refresh();
  } catch {
    /* the page says that the server is gone */
  }
  timer = setTimeout(poll, state && state.job ? 250 : 1500);
}

// What is about to change is taken from the page first: its pictures will be gone.
function forget(...names) {
  for (const name of names) {
    delete full.results[name];
    const key = name === "recalibrated" ? name : "verdict";
    const { bins, local, rows, ...axes } = ui.views[key] || {};
    if (name !== "new") ui.views[key] = axes;
  }
  full.revision = -1;
  draw();
}

const changedBy = (slot) => ({ table: ["table", "recalibrated", "new"], known: ["recalibrated", "new"], other: ["other"] })[slot] || ["new"];

const send = (slot, chosen) =>
  act(slot, async () => {
    if (chosen.size > state.largest) {
      throw new Error(`${chosen.name} has ${bytes(chosen.size)}; this page takes up to ${bytes(state.largest)}. Use the command line, which knows no limit.`);
    }
    sending = { slot, name: chosen.name };
    forget(...changedBy(slot));
    try {
      await put(`api/table/${slot}?name=${encodeURIComponent(chosen.name)}`, chosen);
    } finally {
      sending = null;
    }
  });
const settle = (slot, change) =>
  act(slot, () => {
    forget(...changedBy(slot));
    return post(`api/settings/${slot}`, { ...full.tables[slot].settings, ...change });
  });
const judge = (slot) => act(slot, () => post(`api/judge/${slot}`)).then(poll);
const takeDemo = () =>
  act("table", () => {
    forget("table", "other", "recalibrated", "new");
    return post("api/demo");
  });
const picture = (slot) => act(slot, () => post(`api/report/${slot}`)).then(poll);
const recalibrate = () =>
  act("recalibrated", () => {
    forget("recalibrated", "new");
    return post("api/recalibrate", planned());
  }).then(poll);
const applyNew = (source) =>
  act("new", () => {
    forget("new");
    return post("api/apply", { ...ui.wanted, source });
  }).then(poll);

// -- drawing --------------------------------------------------------------------------

function draw() {
  drawBusy();
  remember();
  const now = JSON.stringify([narrow.matches, full.revision, state.slots, state.problems, failures, ui, Boolean(state.job)]);
  if (now === drawn) return;
  drawn = now;
  document.body.dataset.revision = full.revision; // what is shown, for whoever waits
  place("about").textContent = `sigmascale ${state.version}. Everything on this page is computed on this machine.`;
  show(place("table"), ...tableStep());
  show(place("verdict"), ...verdictStep());
  show(place("recalibrate"), ...recalibrateStep());
  show(place("new"), ...newStep());
  show(place("take"), ...takeStep());
  const { table: judged, recalibrated: learned, new: fresh } = full.results;
  const done = [ready("table"), judged, learned, fresh, learned || fresh || judged?.report].map(Boolean);
  [...place("steps").children].forEach((step, i) => {
    step.classList.toggle("done", done[i]);
    const current = i === done.indexOf(false) || (i === 4 && !done.includes(false));
    if (current) step.firstElementChild.setAttribute("aria-current", "step");
    else step.firstElementChild.removeAttribute("aria-current");
  });
}

function drawBusy() {
  const job = state && state.job;
  place("busy").hidden = !job && !sending;
  if (sending) {
    place("busy-words").textContent = `sending ${sending.name} …`;
    place("cancel").hidden = true;
    return;
  }
  if (!job) return;
  place("cancel").hidden = false;
  const found = /^(.*?) \[#* *\] +(\d+)%/.exec(job.progress);
  const told = found ? `${found[1]}, ${found[2]} %` : job.progress.replace(/ \.\.\.$/, "");
  const words = told && told !== job.what ? `${job.what}: ${told}` : job.what;
  place("busy-words").textContent = `${words} … ${Math.floor(job.seconds)} s`;
  const bar = place("busy").querySelector("i");
  bar.classList.toggle("known", Boolean(found));
  bar.style.width = found ? `${found[2]}%` : "";
}

const problem = (words, ...more) => words && el("div.problem", { role: "alert" }, el("p", {}, words), more);
const failure = (name) => problem(failures[name] || (state.problems[name] !== "Stopped." && state.problems[name]));
const stopped = (name) => state.problems[name] === "Stopped." && el("p.hint", { role: "status" }, "Stopped. Start it again when you like.");
const ready = (slot) => full.tables[slot] && !full.tables[slot].problem && full.tables[slot].columns.length;

// What a click can do about a problem, by its code: other settings, and how they are called.
const commas = "Read commas as decimal marks";
const REMEDIES = {
  separator: ({ separator, decimal }) => {
    const words = `Read it with ${separator === "\t" ? "tabs" : `“${separator}”`} between columns`;
    return decimal === "," ? [{ separator, decimal }, `${words}, ${commas}`] : [{ separator }, words];
  },
  "decimal-comma": () => [{ decimal: "," }, commas],
  "missing-values": () => [{ drop_missing: true }, "Leave out rows with missing values"],
};

function openedTable(slot) {
  const found = state.slots[slot] && full.tables[slot];
  const told = slot === "new" ? [] : [failure(slot), stopped(slot)]; // its own step tells it
  if (!found) return told;
  const [change, words] = found.code in REMEDIES ? REMEDIES[found.code](found.fields) : [];
  return [
    ...told,
    el("p", {}, el("strong", {}, state.slots[slot].file), slot === "scaler" ? (found.words ? `: ${found.words}` : "") : `: ${count(found.rows, "row")}, ${bytes(state.slots[slot].size)}.`),
    problem(
      found.problem,
      change && el("p", {}, el("button.primary", { type: "button", "data-key": `fix ${slot}`, onclick: () => settle(slot, change) }, words)),
    ),
    unusable(found),
    slot === "table"
      ? columnsOf(slot, found, settle)
      : found.columns.length > 0 && el("details", { "data-key": `columns ${slot}`, open: Boolean(found.problem) }, el("summary", {}, "Columns"), columnsOf(slot, found, settle)),
    slot !== "scaler" && readingOf(slot, found, settle),
  ];
}

// What must be there first.
const firstTable = () => el("p.hint", {}, state.slots.table ? "The table cannot be used yet: step 1 says why." : "First, a table.");

function tableStep() {
  const found = full.tables.table;
  return [
    dropZone({
      slot: "table",
      title: found ? "Another table" : "Drop a table here",
      largest: state.largest,
      small: Boolean(found),
      send,
      more: el("button", { type: "button", "data-key": "demo", onclick: takeDemo }, "Take the demo"),
    }),
    ...openedTable("table"),
    ready("table") &&
      el("p", {}, el("button.primary.large", { type: "button", "data-key": "judge", disabled: Boolean(state.job), onclick: () => judge("table") }, full.results.table ? "Judge again" : "Judge the uncertainties")),
  ];
}

function verdictStep() {
  const found = full.results.table;
  const failed = [failure("table-judge"), full.tables.table && !full.tables.table.problem && failure("table"), stopped("table")];
  if (!found || !state.slots.table) return [...failed, ready("table") ? el("p.hint", {}, "Not judged yet: see step 1.") : firstTable()];
  const other = state.slots.other && full.results.other;
  const stages = [{ name: state.slots.table.file, found: found.found, result: "table", after: false }];
  if (other) stages.push({ name: state.slots.other.file, found: other.found, result: "other", after: false });
  return [
    ...failed,
    el("p", {}, found.told),
    warned(found),
    other && el("p", {}, other.told),
    el("div.row", {}, stages.map((stage) => stageCard(stage, (region) => pick("verdict", stage, region)))),
    meanings(found.found),
    panel({ key: "verdict", stages, bins: found.bins, most: found.most_bins, ui, changed: draw }),
    el("h3", {}, "Scores"),
    el("p.hint", {}, "Beside each score stands what is ", term("attainable"), ": verdicts do not rest on these scores, which depend on the bins."),
    scoreTable(stages),
    pictures(found, "table"),
    el(
      "details",
      { "data-key": "beside" },
      el("summary", {}, "Another table, or another uncertainty, beside it"),
      dropZone({
        slot: "other",
        title: state.slots.other ? "Another one instead" : "Drop the second table here",
        largest: state.largest,
        small: true,
        send,
        more: [
          el("button", { type: "button", "data-key": "same", onclick: () => act("other", () => post("api/same")) }, "The same table, with another uncertainty"),
          state.slots.other && el("button", { type: "button", "data-key": "no other", onclick: () => act("other", () => remove("api/table/other")) }, "Without it"),
        ],
      }),
      ...openedTable("other"),
      ready("other") &&
        el("p", {}, el("button.primary", { type: "button", "data-key": "judge other", disabled: Boolean(state.job), onclick: () => judge("other") }, "Judge it beside")),
    ),
  ];
}

const warned = (found) => (found.warnings || []).map((words) => el("p.notice", {}, words));

function meanings(found) {
  return el(
    "details",
    { "data-key": "meanings" },
    el("summary", {}, "What the answers mean"),
    el("dl.plain", {}, Object.entries(found.meanings).map(([answer, words]) => el("div", {}, el("dt", {}, answer), el("dd", {}, words)))),
  );
}

function pictures(found, slot) {
  if (!found.pictures) {
    if (!slot) return null;
    return el(
      "p",
      {},
      el("button", { type: "button", "data-key": `draw ${slot}`, disabled: Boolean(state.job), onclick: () => picture(slot) }, "Draw the other pictures"),
      " ",
      el("span.hint", {}, "Reliability, confidence curve, errors; and the report."),
    );
  }
  const rest = found.pictures.filter((each) => !each.title.startsWith("Local calibration"));
  return el(
    "div",
    {},
    el("h3", {}, "More pictures"),
    el(
      "div.row",
      {},
      rest.map((each) =>
        el(
          "figure",
          {},
          el("img", { src: `${file(`${found.parts}/${each.name}.svg`, true)}&r=${full.revision}`, alt: `${each.title}. ${each.caption}`, width: 450, height: 320, loading: "lazy" }),
          el("figcaption", {}, el("strong", {}, each.title), " ", each.caption),
        ),
      ),
    ),
  );
}

async function pick(key, stage, region) {
  const view = (ui.views[key] ||= {});
  try {
    const found = await post("api/rows", { result: stage.result, after: stage.after, ...region });
    view.rows = { ...found, where: region.where, of: stage.name };
  } catch (problem) {
    view.rows = { failure: problem.message };
  }
  draw();
}
ui.pick = pick;

// -- recalibration --------------------------------------------------------------------

const METHODS = {};

function planned() {
  const plan = { kind: state.slots.known ? "file" : "random", share: 0.5, method: "boosted", together: true, ...state.plan, ...ui.plan };
  if (plan.kind === "file" && !state.slots.known) plan.kind = plan.waiting ? "file" : "random";
  const column = (full.tables.table?.columns || []).find((c) => c.name === plan.column);
  plan.numeric = Boolean(column && column.numeric);
  return plan;
}

function choose(change) {
  ui.plan = { ...ui.plan, ...change };
  draw();
}

function recalibrateStep() {
  if (!ready("table")) return [firstTable()];
  const plan = planned();
  const found = full.results.recalibrated;
  const columns = full.tables.table.columns.filter((c) => c.values);
  const groups = full.tables.table.columns.find((c) => c.role === "groups");
  const radio = (kind, title, ...more) =>
    el(
      "div.choice",
      {},
      el("label", {}, el("input", { type: "radio", name: "kind", "data-key": `kind ${kind}`, checked: plan.kind === kind, onchange: () => choose({ kind, waiting: kind === "file" }) }), " ", title),
      plan.kind === kind && el("div.more", {}, more),
    );
  const column = columns.find((c) => c.name === plan.column) || columns[0];
  if (plan.kind === "column" && column && plan.column !== column.name) ui.plan = { ...ui.plan, column: column.name, value: column.values[0] };
  const ready2 = plan.kind !== "file" || ready("known");
  return [
    el(
      "fieldset",
      {},
      el("legend", {}, "Learn from which rows? ", el("span.hint", {}, "The others judge what was learned.")),
      radio(
        "random",
        "A random share of the table",
        el("label", {}, "Share to learn from ", el("input.short", { type: "number", min: 0.05, max: 0.95, step: 0.05, value: plan.share, "data-key": "share", onchange: (e) => choose({ share: Number(e.target.value) }) })),
        groups &&
          el("label", {}, el("input", { type: "checkbox", "data-key": "together", checked: plan.together, onchange: (e) => choose({ together: e.target.checked }) }), ` Keep rows of one ${groups.name} together`),
      ),
      columns.length > 0 &&
        radio(
          "column",
          "Those that a column names",
          column && [
            el("label", {}, "Column ", el("select", { "data-key": "column", onchange: (e) => choose({ column: e.target.value, value: columns.find((c) => c.name === e.target.value).values[0] }) }, columns.map((c) => el("option", { selected: c.name === column.name, value: c.name }, c.name)))),
            el("label", {}, "Learn where it is ", el("select", { "data-key": "value", onchange: (e) => choose({ value: e.target.value }) }, column.values.map((v) => el("option", { selected: v === (plan.value ?? column.values[0]), value: v }, v)))),
          ],
        ),
      radio(
        "file",
        "A second file with known errors",
        dropZone({ slot: "known", title: state.slots.known ? "Another one instead" : "Drop the second file here", largest: state.largest, small: true, send }),
        openedTable("known"),
      ),
    ),
    el(
      "fieldset",
      {},
      el("legend", {}, "How? "),
      el(
        "label",
        {},
        term("recalibrator", "Recalibrator"),
        " ",
        el("select", { "data-key": "method", onchange: (e) => choose({ method: e.target.value, bins: null }) }, state.methods.map((m) => el("option", { value: m, selected: m === plan.method }, m === "boosted" ? "boosted (the default)" : m === "auto" ? "auto (chosen by cross-validation)" : m))),
      ),
      METHODS[plan.method] && el("p.hint", {}, METHODS[plan.method]),
      ["binwise", "raked"].includes(plan.method) &&
        el("label", {}, "Bins ", el("input.short", { type: "number", min: 1, max: 1000, value: plan.bins || "", placeholder: "usual", "data-key": "method bins", onchange: (e) => choose({ bins: e.target.value ? Number(e.target.value) : null }) })),
      el("p", {}, levels("plan quantiles", plan.quantiles, (quantiles) => choose({ quantiles })), " ", el("span.hint", {}, "to take along, such as 0.05, 0.95")),
    ),
    failure("recalibrated"),
    stopped("recalibrated"),
    el("p", {}, el("button.primary.large", { type: "button", "data-key": "recalibrate", disabled: Boolean(state.job) || !ready2, onclick: recalibrate }, found ? "Recalibrate again" : "Recalibrate")),
    ...(found ? recalibrated(found) : []),
  ];
}

function recalibrated(found) {
  const stages = [
    { name: "Before", found: found.before, result: "recalibrated", after: false },
    { name: "After", found: found.after, result: "recalibrated", after: true },
  ];
  const chosen = found.candidates;
  return [
    el("p", {}, `Learned from ${count(found.rows[0], "row")}, judged by ${count(found.rows[1], "other row")}.`),
    warned(found),
    el("div.row", {}, stages.map((stage) => stageCard(stage, (region) => pick("recalibrated", stage, region)))),
    panel({ key: "recalibrated", stages, bins: found.bins, most: found.most_bins, ui, changed: draw }),
    el("h3", {}, "What was learned"),
    el("p", {}, found.words),
    found.factors && el("p", {}, found.factors),
    chosen && [
      el("h3", {}, "Why this method"),
      el("div.candidates", {}, table(chosen.header, chosen.rows.map((row, i) => [chosen.chosen[i] ? el("span", {}, row[0], " ", el("span.tick", { role: "img", "aria-label": "chosen" }, "✓")) : row[0], ...row.slice(1)]), { caption: "Candidates and the reason of the choice" })),
    ],
    el("h3", {}, "Scores"),
    scoreTable(stages),
    pictures(found, null),
  ];
}

// -- new predictions ------------------------------------------------------------------

const levels = (key, value, set) => el("label", {}, "Quantiles ", el("input", { type: "text", size: 12, value: value || "", placeholder: "none", "data-key": key, onchange: (e) => set(e.target.value) }));

function newStep() {
  const learned = full.results.recalibrated;
  const source = learned && ui.wanted.source !== "file" ? "learned" : "file";
  const found = full.results.new;
  const want = (change) => {
    Object.assign(ui.wanted, change);
    draw();
  };
  const choice = (kind, title, ...more) => el("div.choice", {}, learned && el("label", {}, el("input", { type: "radio", name: "source", "data-key": `source ${kind}`, checked: source === kind, onchange: () => want({ source: kind }) }), " ", title), source === kind && el("div.more", {}, more));
  const drop = (slot, title) => dropZone({ slot, title: state.slots[slot] ? "Another one instead" : title, largest: state.largest, small: true, send });
  return [
    el("p.hint", {}, "Predictions whose errors nobody knows yet get honest uncertainties from what was learned of others."),
    drop("new", "Drop a table of new predictions here"),
    ...openedTable("new"),
    el(
      "fieldset",
      {},
      el("legend", {}, "By which ", term("recalibrator"), "? "),
      learned && choice("learned", `What step 3 has learned: ${learned.files.scaler}`),
      choice("file", "A file that was taken along before", drop("scaler", "Drop a recalibrator (JSON) here"), openedTable("scaler")),
    ),
    el(
      "fieldset",
      {},
      el("legend", {}, "What else, beside uncertainties? "),
      el(
        "div.options",
        {},
        levels("new quantiles", ui.wanted.quantiles, (quantiles) => want({ quantiles })),
        el("label", {}, "Intervals that hold ", el("input.short", { type: "text", value: ui.wanted.coverage || "", placeholder: "none", "data-key": "new coverage", onchange: (e) => want({ coverage: e.target.value }) })),
        el("label", {}, el("input", { type: "checkbox", "data-key": "new shift", checked: ui.wanted.shift, onchange: (e) => want({ shift: e.target.checked }) }), " Shifted predictions"),
      ),
      el("p.hint", {}, "Levels such as 0.05, 0.95, and a share such as 0.9. They are about the value, if there is a prediction, and otherwise about the error."),
    ),
    failure("new"),
    stopped("new"),
    el("p", {}, el("button.primary.large", { type: "button", "data-key": "apply", disabled: Boolean(state.job) || !ready("new") || (source === "file" && !full.tables.scaler) || Boolean(source === "file" && full.tables.scaler.problem), onclick: () => applyNew(source) }, "Recalibrate these")),
    found && [
      warned(found),
      el("p", {}, `${count(found.rows, "row")} recalibrated by ${found.scaler}. `, el("a", { href: file(found.files.new), download: found.files.new }, `Download ${found.files.new}`)),
      table(["row", ...found.head.columns], found.head.cells.map((cells, i) => [found.head.places[i], ...cells]), { caption: "First rows of the recalibrated table, the new columns first" }),
    ],
  ];
}

// -- take along -----------------------------------------------------------------------

const link = (name, words) => el("li", {}, el("a", { href: file(name), download: name.split("/").pop() }, words || name));

function copied(title, text, key, kind = "pre") {
  return el(
    "div.copy",
    {},
    el("h3", {}, title),
    el(kind, { tabindex: "0", "aria-label": title }, text),
    el("button", {
      type: "button",
      "data-key": key,
      onclick: async (event) => {
        const button = event.target;
        try {
          await navigator.clipboard.writeText(text);
          button.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(button.previousElementSibling);
          button.textContent = "Selected: copy it";
        }
      },
    }, "Copy"),
  );
}

function parts(found) {
  return el(
    "details",
    { "data-key": `pictures ${found.parts}` },
    el("summary", {}, `${count(found.pictures.length, "picture")}, as SVG and PNG`),
    el("ul.files", {}, found.pictures.map((each) => el("li", {}, `${each.title}: ${each.caption.split(":")[0]} `, el("a", { href: file(`${found.parts}/${each.name}.svg`), download: `${each.name}.svg` }, "SVG"), " ", el("a", { href: file(`${found.parts}/${each.name}.png`), download: `${each.name}.png` }, "PNG")))),
  );
}

function takeStep() {
  const found = full.results.recalibrated;
  const verdict = full.results.table;
  const fresh = full.results.new;
  if (!verdict && !found && !fresh) return [el("p.hint", {}, state.slots.table || state.slots.new ? "Nothing was made yet." : "First, a table.")];
  const made = [];
  if (found) {
    made.push(
      el(
        "ul.files",
        {},
        link(found.files.table, `${found.files.table}: the table, with recalibrated uncertainties`),
        link(found.files.scaler, `${found.files.scaler}: the recalibrator`),
        link(found.files.report, `${found.files.report}: the report`),
        found.files.calibration && link(found.files.calibration, `${found.files.calibration}: the rows learned from`),
        found.files.test && link(found.files.test, `${found.files.test}: the rows judged by`),
        found.files.onnx && link(found.files.onnx, `${found.files.onnx}: the recalibrator for ONNX Runtime`),
      ),
      el("p", {}, el("a", { href: file(found.files.report, true), target: "_blank", rel: "noopener" }, "Read the report")),
      parts(found),
    );
  }
  if (verdict) {
    made.push(
      el("h3", {}, "On the table as it is"),
      verdict.report
        ? [el("ul.files", {}, link(verdict.report, `${verdict.report}: the report`)), parts(verdict)]
        : el("p", {}, el("button", { type: "button", "data-key": "make report", disabled: Boolean(state.job), onclick: () => picture("table") }, "Make the report and its pictures")),
    );
  }
  if (fresh) made.push(el("h3", {}, "New predictions"), el("ul.files", {}, link(fresh.files.new, `${fresh.files.new}: the table, with recalibrated uncertainties`)));
  if (found || fresh || verdict.report) made.push(el("p", {}, el("a", { href: address("all.zip"), download: "sigmascale.zip" }, "All of these files in one (ZIP)")));
  const commands = [...(verdict ? [verdict.command] : []), ...(found ? found.commands : []), ...(fresh ? fresh.commands : [])];
  made.push(copied("The same by the command line", commands.join("\n"), "copy commands"));
  if (found) made.push(copied("The same in Python", found.python, "copy python"));
  const methods = (found || verdict)?.methods;
  if (methods) made.push(copied("Methods, for a paper", methods, "copy methods", "pre.prose"));
  return made;
}

// -- beginning ------------------------------------------------------------------------

place("cancel").addEventListener("click", () => act("cancel", () => post("api/cancel")));
narrow.addEventListener("change", draw);
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  const zone = event.target.closest?.("[data-slot]");
  const chosen = event.dataTransfer.files[0];
  if (chosen) send(zone ? zone.dataset.slot : "table", chosen);
});
Object.assign(METHODS, await loadWords());
await poll();
