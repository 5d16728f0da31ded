// Every cell of a sweep: filtered, sorted, and one figure drawn over another. Names are untrusted: nodes get them as
// text, and Plotly's markup in them is escaped.
// Answers the function that shows the rows anew.
function explore(root) {
  const {dimensions, settings, words, blind, quantiles, opening} = JSON.parse(root.querySelector(".explained").textContent);
  const PAGE_ROWS = 100, FACETS = 9, CURVES = 20;
  const COLOURS = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"], DASHES = ["solid", "dot", "dashdot"];
  const chosen = {find: "", only: {}, each: false, x: "", y: "", colour: "defense", facet: "attack", by: "", down: false, page: 0, ...opening};
  const collator = new Intl.Collator(undefined, {numeric: true});
  const make = (tag, attributes = {}, text = "") => {
    const made = Object.assign(document.createElement(tag), attributes);
    if (text !== "") made.textContent = text;
    return made;
  };
  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const isDimension = (name) => dimensions.includes(name) || name.startsWith(settings);
  const named = (name) => words[name] ?? name.replace(settings, "").replaceAll("_", " ");
  const number = (value) => (value === "∞" ? Infinity : value);
  const shownNumber = (value) => (Math.abs(value) === Infinity ? "∞" : String(Number(value.toPrecision(4))));

  // -- the rows, and their points: means over seeds ------------------------------------------------------------
  const parsed = new WeakMap();
  function rowsOf(script) {
    if (!parsed.has(script)) {
      const {heads, rows} = JSON.parse(script.textContent);
      parsed.set(script, rows.map((row) => ({heads, at: Object.fromEntries(heads.map((name, i) => [name, row[i]]))})));
    }
    return parsed.get(script);
  }
  const everything = () => [...document.querySelectorAll("script.rows")].flatMap(rowsOf);
  function sorted(values) {
    return [...new Set(values)].filter((value) => value !== null && value !== undefined).sort(collator.compare);
  }
  function fields(rows) {
    const heads = new Set([...new Set(rows.map((row) => row.heads))].flat());
    const of = (name) => sorted(rows.map(({at}) => at[name]));
    const dims = [...heads].filter(isDimension);
    return {dims, figures: [...heads].filter((name) => !isDimension(name)), values: Object.fromEntries(dims.map((d) => [d, of(d)]))};
  }
  function wanted({dims}) {
    const terms = chosen.find.toLowerCase().split(/\s+/).filter(Boolean);
    const only = Object.entries(chosen.only).filter(([, value]) => value !== "");
    return (row) => only.every(([name, value]) => String(row.at[name] ?? "") === value) && (!terms.length || has(row, dims, terms));
  }
  function has(row, dims, terms) {
    row.text ??= dims.map((name) => row.at[name] ?? "").join(" ").toLowerCase();
    return terms.every((term) => row.text.includes(term));
  }
  function points(rows, dims) {
    const kept = dims.filter((name) => chosen.each || name !== "seed"), found = new Map();
    for (const {at} of rows) {
      const key = kept.map((name) => at[name]).join("\0");
      if (!found.has(key)) found.set(key, {at: Object.fromEntries(kept.map((name) => [name, at[name]])), rows: [], seen: {}});
      found.get(key).rows.push(at);
    }
    return [...found.values()];
  }
  // Mean and 95 % half width over seeds (Student's t); undefined where no row has the figure.
  function figure(point, name) {
    if (!(name in point.seen)) {
      const values = point.rows.map((row) => number(row[name])).filter((value) => typeof value === "number");
      point.seen[name] = name === "relative" ? pooled(point.rows.map(errors)) : values.length ? interval(values) : undefined;
    }
    return point.seen[name];
  }
  // A row's error and its blind guess's, of one unit: MSE, or shares of wrong answers.
  function errors({mse, label_accuracy, membership_auc, source_right, share, blind}) {
    const right = label_accuracy ?? membership_auc ?? source_right ?? share;
    return typeof mse === "number" ? [mse, blind] : typeof right === "number" ? [1 - right, 1 - blind] : [];
  }
  // Errors are added before they are divided, and 0/0 is left out; the interval is that of the ratio estimator.
  function pooled(pairs) {
    const found = pairs.filter(([error, guess]) => Number.isFinite(error) && Number.isFinite(guess) && (error || guess));
    if (!found.length) return undefined;
    const [sum, blindSum] = [0, 1].map((i) => found.reduce((total, pair) => total + pair[i], 0)), mean = sum / blindSum;
    if (!Number.isFinite(mean)) return {mean, half: 0, n: found.length};
    const {half} = interval(found.map(([error, guess]) => (error - mean * guess) * found.length / blindSum));
    return {mean, half, n: found.length};
  }
  function interval(values) {
    const n = values.length, mean = values.reduce((sum, value) => sum + value, 0) / n;
    if (n < 2 || !Number.isFinite(mean)) return {mean, half: 0, n};
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    return {mean, half: (quantiles[n] ?? 1.96) * Math.sqrt(squares / (n - 1) / n), n};
  }
  const value = (point, name) => (isDimension(name) ? point.at[name] : figure(point, name)?.mean);

  // -- the table -----------------------------------------------------------------------------------------------
  function inOrder(found) {
    if (!chosen.by) return found;
    const keyed = found.map((point) => ({point, key: value(point, chosen.by)}));
    const missing = ({key}) => key === undefined || key === null;
    const ascending = ({key: a}, {key: b}) => (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b));
    const [there, absent] = [keyed.filter((one) => !missing(one)), keyed.filter(missing)];
    there.sort((a, b) => (chosen.down ? ascending(b, a) : ascending(a, b)) || 0);
    return [...there, ...absent].map(({point}) => point);
  }
  function columns({dims, figures, values}) {
    const always = ["defense", "strength", "attack"];
    const varied = dims.filter((name) => (name !== "seed" || chosen.each) && (always.includes(name) || values[name].length > 1));
    return [...varied, ...figures];
  }
  function head(name) {
    const cell = make("th", {scope: "col", className: isDimension(name) ? "" : "n"});
    const by = chosen.by === name;
    if (by) cell.ariaSort = chosen.down ? "descending" : "ascending";
    const button = make("button", {type: "button", name, className: "sort"}, named(name) + (by ? (chosen.down ? " ↓" : " ↑") : ""));
    button.addEventListener("click", () => {
      Object.assign(chosen, {by: name, down: by && !chosen.down, page: 0});
      table();
    });
    cell.append(button);
    return cell;
  }
  function cell(point, name) {
    if (isDimension(name)) return make("td", {}, String(point.at[name] ?? "–"));
    const found = figure(point, name);
    const around = found?.half ? ` ± ${shownNumber(found.half)}` : "";
    return make("td", {className: "n"}, found ? shownNumber(found.mean) + around : "–");
  }
  function line(point, names) {
    const row = make("tr");
    row.append(...names.map((name) => cell(point, name)));
    return row;
  }
  function table() {
    const found = inOrder(shown.found), names = columns(shown.all);
    const pages = Math.max(1, Math.ceil(found.length / PAGE_ROWS));
    chosen.page = Math.min(chosen.page, pages - 1);
    const first = chosen.page * PAGE_ROWS, here = found.slice(first, first + PAGE_ROWS);
    const row = make("tr");
    row.append(...names.map(head));
    const heading = root.querySelector("thead"), focused = heading.contains(document.activeElement) ? document.activeElement.name : "";
    heading.replaceChildren(row);
    heading.querySelectorAll("button").forEach((one) => { if (one.name === focused) one.focus(); });
    root.querySelector("tbody").replaceChildren(...here.map((point) => line(point, names)));
    root.querySelector(".place").textContent = `lines ${here.length ? first + 1 : 0} to ${first + here.length} of ${found.length}`;
    root.querySelector(".before").disabled = chosen.page === 0;
    root.querySelector(".after").disabled = chosen.page >= pages - 1;
  }

  // -- the curves ----------------------------------------------------------------------------------------------
  const style = (i) => ({color: COLOURS[i % 6], dash: DASHES[Math.floor(i / 6) % 3]});
  // Over attacks: by rank, and without lines between them.
  const byRank = (found) => found.sort((a, b) => (value(a, chosen.y) ?? Infinity) - (value(b, chosen.y) ?? Infinity));
  const isDrawn = (x) => typeof x === "string" || Number.isFinite(x);
  // Points that differ only in what the curve runs along; with a figure as x it begins at the undefended federation.
  function curves(found, dims) {
    const along = isDimension(chosen.x) ? chosen.x : "strength";
    const fixed = dims.filter((name) => name !== along && (chosen.each || name !== "seed"));
    const key = (point, without = "") => fixed.filter((name) => name !== without).map((name) => point.at[name]).join("\0");
    const starts = new Map(), made = new Map();
    const starting = !isDimension(chosen.x) && found.some((point) => point.at.defense !== "undefended");
    for (const point of found) {
      if (starting && point.at.defense === "undefended") starts.set(key(point, "defense"), point);
      else if (made.has(key(point))) made.get(key(point)).push(point);
      else made.set(key(point), [point]);
    }
    return [...made.values()].map((curve) => {
      if (along !== "attack") curve.sort((a, b) => (a.at[along] ?? 0) - (b.at[along] ?? 0));
      const start = starts.get(key(curve[0], "defense"));
      return {at: curve[0].at, points: start ? [start, ...curve] : curve};
    });
  }
  function trace({at, points: along}, colours, seen, dims) {
    const drawable = along.filter((point) => isDrawn(value(point, chosen.x)) && Number.isFinite(value(point, chosen.y)));
    const names = chosen.x === "attack";
    const colour = String(at[chosen.colour] ?? ""), first = !seen.has(colour);
    seen.add(colour);
    const words = (point) => escaped(dims.filter((d) => point.at[d] !== undefined && point.at[d] !== null).map((d) => point.at[d]).join(", "));
    return {type: "scatter", mode: names ? "markers" : "lines+markers", name: escaped(colour), legendgroup: escaped(colour), showlegend: first, marker: {size: 5},
      x: drawable.map((point) => (names ? escaped(point.at.attack) : value(point, chosen.x))), y: drawable.map((point) => value(point, chosen.y)),
      error_y: {type: "data", array: drawable.map((point) => figure(point, chosen.y).half), thickness: 1},
      text: drawable.map(words), hovertemplate: `%{text}<br>${names ? "" : "%{x:.4g}, "}%{y:.4g}<extra></extra>`, line: style(colours.indexOf(colour))};
  }
  function blindLevels(found) {
    const level = blind[chosen.y];
    if (level === undefined) return {};
    const levels = typeof level === "number" ? [level] : sorted(found.map((point) => figure(point, level)?.mean)).slice(0, 6);
    return {shapes: levels.map((y) => ({type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: {dash: "dash", width: 1, color: "#808080"}})),
      annotations: levels.slice(0, 1).map((y) => ({text: "blind guess", xref: "paper", x: 1, xanchor: "right", y, yanchor: "bottom", showarrow: false}))};
  }
  // A plot is drawn when it comes into view, one at a time: between two of them the page answers.
  const due = new Map(), inView = new IntersectionObserver((entries) => {
    for (const {isIntersecting, target} of entries)
      if (isIntersecting) { inView.unobserve(target); setTimeout(() => { due.get(target)?.(); due.delete(target); }); }
  });
  function drawWhenSeen(box, plot) {
    due.set(box, plot);
    inView.unobserve(box);
    inView.observe(box);
  }
  function drawFacet(box, title, found, colours, dims) {
    const drawn = curves(found, dims), seen = new Set();
    const left = drawn.length > CURVES ? `; ${CURVES} of ${drawn.length} curves: filter for the others` : "";
    box.previousElementSibling.textContent = title + left;
    box.ariaLabel = `${title}: ${named(chosen.y)} over ${named(chosen.x)}${left}`;
    const layout = {height: 360, xaxis: {title: {text: escaped(named(chosen.x))}, categoryorder: "array", categoryarray: byRank([...found]).map(({at}) => escaped(at.attack))}, yaxis: {title: {text: escaped(named(chosen.y))}, rangemode: "tozero"}, ...blindLevels(found)};
    const traces = drawn.slice(0, CURVES).map((curve) => trace(curve, colours, seen, dims));
    react(box, traces, layout);
  }
  function drawCurves(found, {dims}) {
    const facets = new Map();
    for (const point of found) {
      const name = chosen.facet ? `${named(chosen.facet)}: ${point.at[chosen.facet] ?? "–"}` : "all";
      if (!facets.has(name)) facets.set(name, []);
      facets.get(name).push(point);
    }
    const colours = sorted(found.map((point) => String(point.at[chosen.colour] ?? ""))), grid = root.querySelector(".curves");
    const drawn = [...facets].slice(0, FACETS);
    root.querySelector(".facets").textContent = facets.size > FACETS ? `${FACETS} of ${facets.size} plots: filter for the others.` : "";
    while (grid.children.length > drawn.length) grid.lastElementChild.remove();
    for (const [i, [title, here]] of drawn.entries()) {
      const box = grid.children[i]?.lastElementChild ?? grid.appendChild(frame()).lastElementChild;
      box.previousElementSibling.textContent = title;
      drawWhenSeen(box, () => drawFacet(box, title, here, colours, dims));
    }
  }
  function frame() {
    const made = make("figure"), box = make("div", {className: "curve"});
    box.setAttribute("role", "img");
    made.append(make("figcaption"), box);
    return made;
  }

  // -- the controls --------------------------------------------------------------------------------------------
  function select(place, name, label, values, chosenNow, first, choose) {
    let one = [...place.querySelectorAll("select")].find((found) => found.name === name);
    if (!one) {
      one = make("select", {name, ariaLabel: label});
      const around = make("label", {}, label);
      around.append(one);
      place.append(around);
      one.addEventListener("change", () => { choose(one.value); chosen.page = 0; refresh(); });
    }
    const options = [...first, ...values];
    if (one.length !== options.length) one.replaceChildren(...options.map(([key, text]) => make("option", {value: key}, text)));
    one.value = chosenNow;
  }
  function controls({dims, figures, values}) {
    const filters = root.querySelector(".filters"), axes = root.querySelector(".axes");
    for (const name of dims.filter((d) => d !== "seed" && values[d].length > 1))
      select(filters, name, named(name), values[name].map((one) => [String(one), String(one)]), chosen.only[name] ?? "", [["", "all"]], (one) => { chosen.only[name] = one; });
    const numeric = dims.filter((d) => d !== "seed" && values[d].length > 1 && values[d].every((one) => typeof one === "number"));
    const split = dims.filter((d) => d !== "seed" && d !== "strength");
    const options = {x: [...numeric, ...figures, "attack"], y: figures, colour: split, facet: split};
    chosen.x ||= ["accuracy", "strength"].find((name) => options.x.includes(name)) ?? "attack";
    chosen.y ||= figures.includes("relative") ? "relative" : figures[0];
    const none = {facet: [["", "one plot"]]};
    for (const [name, of] of Object.entries(options))
      select(axes, name, name === "facet" ? "plots by" : name, of.map((one) => [one, named(one)]), chosen[name], none[name] ?? [], (one) => { chosen[name] = one; });
  }
  let shown = null;
  function refresh() {
    const rows = everything();
    if (!rows.length) return;
    const all = fields(rows);
    controls(all);
    const kept = rows.filter(wanted(all)), found = points(kept, all.dims);
    shown = {all, found};
    root.querySelector(".count").textContent = `${kept.length} of ${rows.length} results, ${found.length} lines`;
    table();
    drawCurves(found, all);
  }
  let waiting = 0;
  root.querySelector(".find").addEventListener("input", ({target}) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { chosen.find = target.value; chosen.page = 0; refresh(); }, 150);
  });
  root.querySelector(".each").addEventListener("change", ({target}) => { chosen.each = target.checked; chosen.page = 0; refresh(); });
  root.querySelector(".before").addEventListener("click", () => { chosen.page -= 1; table(); });
  root.querySelector(".after").addEventListener("click", () => { chosen.page += 1; table(); });
  return refresh;
}
// A live page replaces sections: the explorer begins anew with its own, and reads the rows of others.
let exploring = null;
function showRows() {
  const root = document.getElementById("explorer"), head = root?.querySelector(".explained");
  if (!head) return;
  if (exploring?.head !== head) exploring = {head, refresh: explore(root)};
  exploring.refresh();
}
dark.addEventListener("change", showRows);
document.addEventListener("panels", showRows);
showRows();
