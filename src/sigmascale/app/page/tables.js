// A table that was dropped: its columns, its first rows, and what cannot be used.

import { bytes, count, el, table } from "./dom.js";
import { term } from "./tips.js";

const ROLES = {
  error: "error",
  reference: "reference",
  prediction: "prediction",
  uncertainty: "uncertainty",
  variance: "variance (u²)",
  member: "ensemble member",
  quantile: "quantile",
  low: "lower limit",
  high: "upper limit",
  feature: "feature",
  label: "labels",
  groups: "groups",
  ignored: "ignored",
};

// Of some roles there are several columns; of the others one. And some rule out others.
const SEVERAL = ["member", "quantile", "feature", "label", "ignored"];
const EITHER = [
  [["error"], ["reference", "prediction"]],
  [["uncertainty"], ["variance"], ["member"], ["quantile"], ["low", "high"]],
];
const bare = (name) => name.replace(/[\d.]+/g, "");

// Of new predictions, what is not said is called as in the table that was learned from.
const NEW_ROLES = { ignored: "as learned", uncertainty: "uncertainty", variance: "variance (u²)", prediction: "prediction" };

export function dropZone({ slot, title, largest, small, send, more }) {
  const input = el("input", {
    type: "file",
    id: `file-${slot}`,
    "data-key": `file ${slot}`,
    accept: slot === "scaler" ? ".json" : ".csv,.tsv,.tab,.txt,.gz,.parquet,.pq,.feather,.arrow,.ipc,.jsonl,.ndjson,.json,.xlsx",
    onchange: (event) => event.target.files[0] && send(slot, event.target.files[0]),
  });
  return el(
    small ? "div.drop.small" : "div.drop",
    {
      "data-slot": slot,
      ondragenter: (event) => event.currentTarget.classList.add("over"),
      ondragleave: (event) => event.currentTarget.classList.remove("over"),
    },
    el("label", { for: `file-${slot}` }, el("strong", {}, title), small ? "" : " or choose a file"),
    input,
    !small && el("p.hint", {}, `CSV, TSV, Parquet, Feather, JSON lines or Excel; up to ${bytes(largest)}.`),
    more,
  );
}

export function columnsOf(slot, found, settle) {
  if (!found.columns.length) return null;
  const change = (name, role) => {
    const roles = { ...found.settings.roles };
    const kinds = EITHER.find((each) => each.flat().includes(role)) || [];
    const ruledOut = kinds.filter((kind) => !kind.includes(role)).flat();
    if (!SEVERAL.includes(role)) ruledOut.push(role);
    // members, and quantiles, are called alike but for a number
    const alike = ["member", "quantile"].includes(role) && !Object.values(roles).includes(role);
    for (const other of Object.keys(roles)) {
      if (ruledOut.includes(roles[other])) roles[other] = "ignored";
      if (alike && bare(other) === bare(name) && ["ignored", "feature"].includes(roles[other])) roles[other] = role;
    }
    roles[name] = role;
    settle(slot, { roles });
  };
  const choices = slot === "new" ? NEW_ROLES : ROLES;
  const anyMissing = found.columns.some((column) => column.missing);
  const anyBad = found.columns.some((column) => column.bad);
  const header = ["column", "taken for", "type", ...(anyMissing ? ["missing"] : []), ...(anyBad ? ["unusable"] : [])];
  const rows = found.columns.map((column) => [
    column.name,
    el(
      "select",
      {
        "aria-label": `What column ${column.name} is`,
        "data-key": `role ${slot} ${column.name}`,
        "data-column": column.name,
        class: column.role === "ignored" ? "ignored" : null,
        onchange: (event) => change(column.name, event.target.value),
      },
      Object.entries(choices).map(([role, words]) => el("option", { value: role, selected: role === column.role }, words)),
    ),
    column.type,
    ...(anyMissing ? [column.missing ? column.missing.toLocaleString("en") : ""] : []),
    ...(anyBad ? [column.bad ? el("span.bad-count", {}, column.bad.toLocaleString("en")) : ""] : []),
  ]);
  const head = found.head;
  return el(
    "div",
    {},
    slot === "table" && el("h3", {}, "Columns"),
    slot === "new"
      ? el("p.hint", {}, "Columns are found by their names. Say which one is the uncertainty, or the prediction, if it is called otherwise here.")
      : el("p.hint", {}, "What each was taken for. Change it by a click: ", term("uncertainty"), ", ", term("feature"), ", ", term("groups"), "."),
    el("div.columns", {}, table(header, rows, { caption: "Columns and what they were taken for" })),
    found.columns.some(({ role }) => role === "low" || role === "high") &&
      el("p", {}, setting(slot, found, settle, "interval_coverage", "Intervals claim to hold", "0.9")),
    el(
      "details",
      { "data-key": `head ${slot}`, open: slot === "table" },
      el("summary", {}, `The first ${count(head.cells.length, "row")}`),
      table(["row", ...head.columns], head.cells.map((cells, i) => [head.places[i], ...cells]), { caption: "First rows" }),
    ),
  );
}

export function unusable(found) {
  const bad = found.bad;
  if (!bad || !bad.count) return null;
  return el(
    "details.notice",
    { "data-key": "unusable", open: true },
    el("summary", {}, `${count(bad.count, "row")} of ${found.rows.toLocaleString("en")} cannot be used as they are`),
    table(["row", ...bad.columns], bad.cells.map((cells, i) => [bad.places[i], ...cells]), {
      caption: "Rows that cannot be used",
      marks: bad.marks.map((row) => [false, ...row]),
    }),
    bad.cells.length < bad.count && el("p.hint", {}, `The first ${bad.cells.length} are shown.`),
  );
}

// A text that says how a table is read; other columns may come of separators and marks.
function setting(slot, found, settle, name, words, hint, wide) {
  const now = found.settings[name];
  const again = ["separator", "decimal"].includes(name) ? { roles: null } : {};
  const onchange = ({ target }) => settle(slot, { [name]: target.value === "\\t" ? "\t" : target.value || null, ...again });
  const field = { type: "text", value: now === "\t" ? "\\t" : now || "", placeholder: hint, "data-key": `${name} ${slot}`, "data-setting": name, onchange };
  return el("label", {}, words, " ", el(wide ? "input" : "input.short", field));
}

export function readingOf(slot, found, settle) {
  const now = found.settings;
  const text = (...about) => setting(slot, found, settle, ...about);
  return el(
    "details",
    { "data-key": `reading ${slot}` },
    el("summary", {}, "How it is read"),
    el(
      "div.options",
      {},
      el("label", {}, el("input", { type: "checkbox", checked: now.drop_missing, "data-key": `drop ${slot}`, "data-setting": "drop_missing", onchange: (event) => settle(slot, { drop_missing: event.target.checked }) }), " Leave out rows with missing values"),
      text("where", "Only rows where", "split = 'test' AND mass < 120", true),
      text("separator", "Between columns", ","),
      text("decimal", "Decimal mark", "."),
      text("minimum", "Lift uncertainties to", "0.01"),
    ),
  );
}
