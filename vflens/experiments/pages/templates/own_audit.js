const find = (id) => document.getElementById(id);
const KINDS = [["", "numbers"], ["one_hot", "a few different words"], ["ordinal", "words in an order"], ["date", "dates"]];
function made(tag, given, ...inside) {
  const one = Object.assign(document.createElement(tag), given);
  one.append(...inside);
  return one;
}
// An answer, or a sentence on the page and null.
async function asked(place, options) {
  accept();
  const answer = await fetch(place, options).catch(() => null);
  const found = answer && await answer.json().catch(() => null);
  if (answer?.ok) return found;
  refuse(found?.words ? found : {words: "The command that serves this page has ended: start it again.", field: ""});
  return null;
}
const fields = () => document.querySelectorAll("[data-field]");
function accept() {
  for (const place of document.querySelectorAll(".refusal")) place.hidden = true;
  for (const input of fields()) for (const name of ["aria-invalid", "aria-errormessage"]) input.removeAttribute(name);
}
// The sentence stands at its field, which gets the focus.
function refuse({words, field}) {
  const input = [...fields()].find((one) => one.dataset.field === field);
  const place = find(input ? `refusal-${field}` : "refusal");
  Object.assign(place, {textContent: words, hidden: false});
  if (!input) return;
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-errormessage", place.id);
  input.focus();
}
const post = (place, file) => asked(`${place}?name=${encodeURIComponent(file.name)}`, {method: "POST", body: file});

// -- the table -------------------------------------------------------------------------------------------------
function line(column) {
  const kinds = KINDS.some(([kind]) => kind === column.kind) ? KINDS : [...KINDS, [column.kind, column.kind]];
  const use = made("input", {type: "checkbox", checked: column.use, ariaLabel: `share ${column.name}`});
  const kind = made("select", {ariaLabel: `${column.name} holds`}, ...kinds.map(([value, text]) => made("option", {value}, text)));
  kind.value = column.kind;
  const row = made("tr", {}, made("td", {}, use), made("th", {scope: "row"}, column.name), made("td", {}, kind), made("td", {className: "words"}, column.words));
  row.dataset.column = column.name;
  return row;
}
function describe(table) {
  find("about").textContent = [`${table.rows} rows.`, ...table.rest].join(" ");
  find("id").replaceChildren(...table.names.map((name) => made("option", {value: name}, name)));
  find("id").value = table.id_column;
  find("columns").replaceChildren(...table.columns.map(line));
  const labels = ["", ...table.names.filter((name) => name !== table.id_column)];
  find("label").replaceChildren(...labels.map((value) => made("option", {value}, value || "none")));
  plan();
  find("ask").hidden = false;
}
find("file").addEventListener("change", async ({target}) => {
  const [file] = target.files;
  find("ask").hidden = find("verdict").hidden = true;
  const table = file && await post("table", file);
  if (table) describe(table);
});
find("id").addEventListener("change", async ({target}) => {
  const table = await asked(`columns?id=${encodeURIComponent(target.value)}`);
  if (table) describe(table);
});
// A label tells its classes, and is no column to share.
function plan() {
  const label = find("label").value, trained = !find("of-model").hidden;
  find("of-plan").hidden = trained;
  find("of-label").hidden = !label;
  find("of-classes").hidden = Boolean(label);
  find("classes").disabled = trained || Boolean(label);
  for (const row of find("columns").rows) row.hidden = !trained && row.dataset.column === label;
}
find("label").addEventListener("change", plan);
// A trained model knows its classes. One that is refused stays chosen: no audit of another model begins unasked.
let fits = true;
async function sendModel() {
  const [file] = find("weights").files;
  find("without").hidden = !file;
  const model = file && await post("weights", file);
  find("model").textContent = model ? `The model has ${model.words}.` : "";
  find("of-model").hidden = !model;
  plan();
  return !file || Boolean(model);
}
find("weights").addEventListener("change", () => { fits = sendModel(); });
find("without").addEventListener("click", () => {
  find("weights").value = "";
  accept();
  fits = sendModel();
  find("weights").focus();
});

// -- the audit -------------------------------------------------------------------------------------------------
function form() {
  const rows = [...find("columns").rows].filter((row) => !row.hidden && row.querySelector("input").checked);
  const weights = find("weights").files.length > 0, label = weights ? "" : find("label").value;
  return {
    id_column: find("id").value, missing: find("missing").value,
    columns: Object.fromEntries(rows.map((row) => [row.dataset.column, row.querySelector("select").value])),
    weights, inputs: weights ? find("inputs").value : "", label, label_kind: label ? find("label_kind").value : "",
    classes: weights || label ? null : Number(find("classes").value),
    known: Number(find("known").value), training: document.querySelector("[name=training]:checked").value,
    thresholds: find("thresholds").value.split("\n").filter((line) => line.trim()), beats_blind: find("beats").checked,
  };
}
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  find("verdict").hidden = true;
  if (!await fits && !await (fits = sendModel())) return;
  const state = await asked("start", {method: "POST", body: JSON.stringify(form())});
  if (state) show(state);
});
function conclude({verdict: [decision, ...others], thresholds}) {
  find("decision").textContent = decision;
  find("sentences").replaceChildren(...others.map((words) => made("p", {}, words)));
  find("outcomes").replaceChildren(...thresholds.map((words) => made("li", {}, words)));
  find("outcomes").hidden = !thresholds.length;
  find("verdict").hidden = false;
  find("decision").focus();
}
function show(state) {
  const running = state.state === "running";
  find("running").hidden = !running;
  find("ask").inert = running;
  if (state.state === "refused") refuse(state);
  if (state.state === "finished") conclude(state);
  if (!running) return;
  find("stage").textContent = `${state.stage}: ${state.done} of ${state.total}`;
  Object.assign(find("progress"), {max: state.total || 1, value: state.done});
  setTimeout(async () => { const next = await asked("state"); if (next) show(next); else find("ask").inert = false; }, 500);
}
const begun = await asked("state");
if (begun && begun.state !== "empty" && begun.state !== "described") show(begun);
