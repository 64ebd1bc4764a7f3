// A file that was dropped: what each column is, as the fields of commands, and how it is read.

import { button, bytes, checkbox, count, el, input, select, table } from "./dom.js";

// The roles that there are, as the server declares them; an interval has two columns.
let ROLES = [];
let NEW_ROLES = []; // of new predictions, what is not said is called as in the table that was learned from
let SEVERAL = [];
let SINGLE = [];

export function know(declared) {
  SEVERAL = declared.filter(({ role, several }) => several && role !== "interval").map(({ role }) => role);
  SINGLE = declared.filter(({ several }) => !several).map(({ role }) => role);
  const offered = declared.flatMap(({ role, words }) => (role === "interval" ? [["low", "lower limit"], ["high", "upper limit"]] : [[role, words]]));
  ROLES = [["", "no role"], ...offered];
  NEW_ROLES = [["", "as learned"], ...offered.filter(([role]) => ["uncertainty", "variance", "prediction"].includes(role))];
}
// Roles that rule out others.
const EITHER = [
  [["error"], ["reference", "prediction"]],
  [["uncertainty"], ["variance"], ["members"], ["quantile_columns"], ["low", "high"]],
];
const bare = (name) => name.replace(/[\d.]+/g, "");

// The role of each column, and back.
export function rolesOf(fields) {
  const roles = new Map();
  for (const role of ["features", "labels", "members"]) for (const name of fields[role] || []) roles.set(name, role);
  for (const each of fields.quantile_columns || []) roles.set(each.slice(0, each.lastIndexOf("=")), "quantile_columns");
  (fields.interval || []).forEach((name, i) => roles.set(name, i ? "high" : "low"));
  for (const role of SINGLE) if (fields[role]) roles.set(fields[role], role);
  return roles;
}

const levelOf = (fields, name) => {
  const found = (fields.quantile_columns || []).find((each) => each.slice(0, each.lastIndexOf("=")) === name);
  if (found) return found.slice(found.lastIndexOf("=") + 1);
  const digits = (name.match(/\d+(\.\d+)?/g) || ["50"]).pop();
  return String(digits.includes(".") ? Number(digits) : Number(`0.${digits.length > 1 ? digits : `0${digits}`}`));
};

function fieldsOf(roles, old) {
  const fields = {};
  for (const [key, value] of Object.entries(old)) {
    if (![...SINGLE, ...SEVERAL, "interval"].includes(key)) fields[key] = value; // how it is read
  }
  const named = (role) => [...roles.keys()].filter((name) => roles.get(name) === role);
  for (const role of SINGLE) if (named(role).length) fields[role] = named(role)[0];
  for (const role of ["features", "labels", "members"]) if (named(role).length) fields[role] = named(role);
  const quantiles = named("quantile_columns").map((name) => `${name}=${levelOf(old, name)}`);
  if (quantiles.length) fields.quantile_columns = quantiles;
  const limits = [...named("low"), ...named("high")];
  if (limits.length) fields.interval = limits;
  return fields;
}

function withRole(roles, name, role) {
  const kinds = EITHER.find((each) => each.flat().includes(role)) || [];
  const ruledOut = kinds.filter((kind) => !kind.includes(role)).flat();
  if (!SEVERAL.includes(role)) ruledOut.push(role);
  // members, and quantiles, are called alike but for a number
  const alike = ["members", "quantile_columns"].includes(role) && ![...roles.values()].includes(role);
  for (const other of roles.keys()) {
    if (ruledOut.includes(roles.get(other))) roles.set(other, "");
    if (alike && bare(other) === bare(name) && ["", "features"].includes(roles.get(other))) roles.set(other, role);
  }
  roles.set(name, role);
  return roles;
}

export function dropZone(slot, words, state, send, ...more) {
  const accept = slot === "recalibrator" ? ".json" : ".csv,.tsv,.tab,.txt,.gz,.parquet,.pq,.feather,.arrow,.ipc,.jsonl,.ndjson,.json,.xlsx";
  const small = Boolean(state.slots[slot]) || slot !== "table";
  return el(
    small ? "div.drop.small" : "div.drop",
    {
      "data-slot": slot,
      ondragenter: (event) => event.currentTarget.classList.add("over"),
      ondragleave: (event) => event.currentTarget.classList.remove("over"),
    },
    el("span", {}, words),
    el("input", { type: "file", id: `file-${slot}`, "data-key": `file ${slot}`, accept, onchange: (event) => event.target.files[0] && send(slot, event.target.files[0]) }),
    el("label.button", { for: `file-${slot}` }, "Choose a file"),
    more,
    !small && el("p.hint", {}, `CSV, TSV, Parquet, Feather, JSON lines or Excel; up to ${bytes(state.largest)}.`),
  );
}

// What a slot holds, with everything that can be said of it.
export function opened(slot, state, settle) {
  const { file, size, fields, view } = state.slots[slot];
  if (!view) return el("p", {}, el("strong", {}, file));
  if (slot === "recalibrator") return el("p", {}, el("strong", {}, file), ": ", view.words);
  const about = el("p", {}, el("strong", {}, file), `: ${count(view.rows, "row")}, ${bytes(size)}.`);
  const body = [columns(slot, fields, view, settle), reading(slot, fields, view, settle)];
  if (slot === "table") return [about, body];
  return [about, el("details", { "data-key": `columns ${slot}` }, el("summary", {}, "Columns"), body)];
}

function columns(slot, fields, view, settle) {
  const found = rolesOf(fields);
  const roles = new Map(view.columns.map(({ name }) => [name, found.get(name) || ""]));
  const choose = (name, role) => settle(slot, fieldsOf(withRole(roles, name, role), fields));
  const rest = view.columns.filter(({ name, may_be: role }) => role && !roles.get(name));
  const leftOut = view.columns.filter(({ name, may_be: role }) => !role && !roles.get(name)).map(({ name }) => name);
  const useRest = () => {
    for (const { name, may_be: role } of rest) roles.set(name, role);
    settle(slot, fieldsOf(roles, fields));
  };
  const level = (name, text) => {
    const others = fields.quantile_columns.filter((each) => each.slice(0, each.lastIndexOf("=")) !== name);
    settle(slot, { ...fields, quantile_columns: [...others, `${name}=${text}`] });
  };
  const anyMissing = view.columns.some(({ missing }) => missing);
  const rows = view.columns.map(({ name, kind, missing, first }) => [
    name,
    [
      select(`role ${slot} ${name}`, roles.get(name), slot === "new" ? NEW_ROLES : ROLES, (role) => choose(name, role), {
        "aria-label": `What column ${name} is`,
        "data-column": name,
        class: roles.get(name) ? null : "none",
      }),
      roles.get(name) === "quantile_columns" && input(`level ${name}`, levelOf(fields, name), (text) => level(name, text), { class: "short", "aria-label": `Level of ${name}` }),
    ],
    kind,
    first.join("  "),
    ...(anyMissing ? [missing ? missing.toLocaleString("en") : ""] : []),
  ]);
  return el(
    "div.columns",
    {},
    table("Columns and what they are", ["column", "is", "kind", "first rows", ...(anyMissing ? ["missing"] : [])], rows),
    slot !== "new" && rest.length > 0 &&
      el("p", {}, button(`features ${slot}`, rest.length === 1 ? `Use ${rest[0].name} as a feature` : `Use the other ${rest.length} columns as features`, useRest), " ", el("span.hint", {}, "Features say for which inputs u is right or wrong.", leftOut.length > 0 && ` No features by their names, or by their labels, which are too many: ${leftOut.slice(0, 8).join(", ")}${leftOut.length > 8 ? ", …" : ""}.`)),
    fields.interval && el("p", {}, el("label", {}, "Intervals claim to hold ", number(slot, fields, settle, "interval_coverage", "0.9"))),
  );
}

const number = (slot, fields, settle, name, hint) =>
  input(`${name} ${slot}`, fields[name], (text) => settle(slot, { ...fields, [name]: text === "" ? null : Number.isFinite(Number(text)) ? Number(text) : text }), { class: "short", placeholder: hint, "data-field": name });

function reading(slot, fields, view, settle) {
  const text = (name, words, hint, again) =>
    el("label", {}, words, " ", input(`${name} ${slot}`, fields[name] === "\t" ? "\\t" : fields[name], (value) => settle(slot, { ...fields, [name]: value === "\\t" ? "\t" : value || null }, again), { class: name === "where" ? null : "short", placeholder: hint, "data-field": name }));
  return el(
    "details",
    { "data-key": `reading ${slot}` },
    el("summary", {}, "How it is read"),
    el(
      "div.options",
      {},
      slot !== "new" && checkbox(`drop ${slot}`, fields.drop_missing, "Leave out rows with missing values", (value) => settle(slot, { ...fields, drop_missing: value })),
      text("where", "Only rows where", "split = 'test' AND mass < 120"),
      text("separator", "Between columns", ",", true),
      text("decimal", "Decimal mark", ".", true),
      el("label", {}, "Raise u to at least ", number(slot, fields, settle, "min_std", "0.01")),
    ),
  );
}
