// Verdicts, scores and the pictures that answer.

import { chart, range, shownName } from "./chart.js";
import { count, el, number, table } from "./dom.js";
import { post } from "./server.js";
import { term } from "./tips.js";

const TERMS = { average: "calibrated", u: "consistent", joint: null, bias: null, coverage: null };

export function stageCard(stage, pick) {
  const { marks, verdicts } = stage.found;
  return el(
    "div.card",
    { "data-stage": stage.name },
    el("h3", {}, stage.name),
    el(
      "ul",
      {},
      verdicts.map((verdict) => {
        const [sign, kind] = marks[verdict.answer];
        const word = verdict.name in TERMS ? TERMS[verdict.name] : "adaptive";
        return el(
          "li",
          { "data-verdict": verdict.name },
          el(`span.mark.${kind}`, {}, el("span", { "aria-hidden": "true" }, sign), " ", verdict.answer),
          el(
            "div",
            {},
            el("strong", {}, verdict.question, word && ["\u00a0", term(word, "?")]),
            el("span.sentence", {}, verdict.sentence),
            verdict.note && el("small", {}, verdict.note),
            verdict.region && el("button.link", { type: "button", "data-key": `rows ${stage.name} ${verdict.name}`, onclick: () => pick(verdict.region) }, "Show these rows"),
          ),
        );
      }),
    ),
  );
}

export function scoreTable(stages) {
  const isLesser = (score) => /^(ENCE|UCE)_/.test(score.name);
  const part = (wanted) => stages[0].found.scores.filter((score) => isLesser(score) === wanted);
  return el(
    "div",
    {},
    scoreRows(stages, part(false)),
    el("details", { "data-key": `lesser ${stages[0].name}` }, el("summary", {}, "ENCE and UCE"), scoreRows(stages, part(true))),
  );
}

function scoreRows(stages, scores) {
  const header = ["score", ...stages.flatMap((stage) => [stage.name, "attainable"])];
  const rows = scores.map((score) => {
    const cells = stages.flatMap((stage) => {
      const same = stage.found.scores.find((each) => each.name === score.name);
      return same ? [same.value, same.attainable] : ["–", "–"];
    });
    return [el("span", {}, score.name, score.meaning && el("small", {}, score.meaning)), ...cells];
  });
  return table(header, rows, { caption: "Scores, and what is attainable" });
}

// Local calibration of a variable, of one stage or two, with everything that moves it.
export function panel({ key, stages, bins, most, ui, changed }) {
  const view = (ui.views[key] ||= {});
  const variables = Object.keys(stages[stages.length - 1].found.local);
  const variable = variables.includes(view.variable) ? view.variable : variables[0];
  const nBins = view.bins || bins;
  const locals = stages.map((stage, i) => (view.bins && view.local && view.local[i] ? view.local[i] : stage.found.local));
  const shown = stages
    .map((stage, i) => [stage, locals[i][variable] && { ...locals[i][variable], band: stage.found.local[variable]?.band }])
    .filter(([, local]) => local);
  const set = (change) => {
    Object.assign(view, change);
    changed();
  };
  const rebin = async (value) => {
    view.bins = value;
    view.failure = "";
    try {
      const found = [];
      for (const stage of stages) found.push(await post("api/bins", { result: stage.result, after: stage.after, bins: value }));
      view.local = found;
    } catch (problem) {
      view.failure = problem.message;
      view.bins = null;
    }
    changed();
  };
  const choice = (name, words, options) =>
    el("label", {}, words, " ", el("select", { "data-key": `${key} ${name}`, "data-control": name, onchange: (event) => set({ [name]: event.target.value }) }, options.map(([value, text]) => el("option", { value, selected: value === (view[name] || options[0][0]) }, text))));
  const output = el("output", {}, String(nBins));
  const limits = range(shown.map(([, local]) => local));
  return el(
    "div.panel",
    { "data-panel": key },
    el("h3", {}, "Local calibration"),
    el("p.hint", {}, "⟨Z²⟩ of each ", term("bin"), " with its interval; 1 is right, above it uncertainties are too small. Crosses are bins whose interval misses 1; grey ones have too few rows to tell. The shaded band holds every label, or every tenth of the rows, at once: the verdict rests on it. The square is the mean of all rows. A click shows the rows of a bin."),
    el(
      "div.options",
      {},
      el("label", {}, "Variable ", el("select", { "data-key": `${key} variable`, "data-control": "variable", onchange: (event) => set({ variable: event.target.value }) }, variables.map((name) => el("option", { value: name, selected: name === variable }, shownName(name))))),
      el("label", {}, "Bins ", el("input", { type: "range", min: 2, max: Math.max(most, nBins), value: nBins, "data-key": `${key} bins`, "data-control": "bins", oninput: (event) => { output.textContent = event.target.value; }, onchange: (event) => rebin(Number(event.target.value)) }), " ", output),
      choice("x", "Along", [["auto", "as it suits"], ["log", "log"], ["linear", "linear"]]),
      choice("y", "⟨Z²⟩", [["log", "log"], ["linear", "linear"]]),
    ),
    view.failure && el("div.problem", { role: "alert" }, view.failure),
    el(
      "div.row",
      {},
      shown.map(([stage, local]) =>
        el(
          "figure",
          {},
          chart(local, { xLog: view.x, yLog: view.y, limits, label: `${stage.name}: local calibration along ${shownName(local.name)}`, pick: (region) => ui.pick(key, stage, region) }),
          el("figcaption", {}, el("strong", {}, stage.name), `: ${Math.round(100 * local.fraction_valid)} % of ${local.n.length} bins are `, term("valid"), "."),
        ),
      ),
    ),
    view.rows && rowsOf(view, changed),
  );
}

function rowsOf(view, changed) {
  const found = view.rows;
  const close = el("button", { type: "button", onclick: () => { view.rows = null; changed(); } }, "Close");
  if (found.failure) return el("div.problem", { role: "alert" }, el("p", {}, found.failure), close);
  return el(
    "div.rows",
    { role: "region", "aria-label": "Rows of the region" },
    el("h4", {}, `${count(found.count, "row")} with ${found.where} (${found.of})`),
    el("p.hint", {}, `⟨Z²⟩ = ${number(found.zms)}. ${found.cells.length < found.count ? `The worst ${found.cells.length} are shown, ` : "They are shown "}by |z|.`),
    table(["row", "z", ...found.columns], found.cells.map((cells, i) => [found.places[i], found.z[i].toFixed(2), ...cells]), { caption: "Rows" }),
    close,
  );
}
