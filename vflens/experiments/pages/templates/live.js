// A replaced panel keeps its drawn plots, its open details, how far it is scrolled, and the focus.
const FOCUSABLE = "a, button, summary, input, [tabindex]";
const byLabel = (section) => new Map([...section.querySelectorAll(".plot[data-drawn]")].map((box) => [box.ariaLabel, box]));
function kept(section) {
  const all = (selector) => [...section.querySelectorAll(selector)];
  return {open: all("details").map((one) => one.open), left: all(".scroll").map((one) => one.scrollLeft),
    typed: all("input").map((one) => one.value),
    focus: all(FOCUSABLE).indexOf(document.activeElement), plots: byLabel(section)};
}
function restore(section, {open, left, typed, focus, plots}) {
  section.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? one.open; });
  section.querySelectorAll(".scroll").forEach((one, i) => { one.scrollLeft = left[i] ?? 0; });
  section.querySelectorAll("input").forEach((one, i) => { one.value = typed[i] ?? one.value; });
  for (const box of section.querySelectorAll(".plot")) {
    const drawn = plots.get(box.ariaLabel);
    if (drawn) { drawn.style.height = box.style.height; box.replaceWith(drawn); draw(drawn); }
  }
  if (focus >= 0) section.querySelectorAll(FOCUSABLE)[focus]?.focus({preventScroll: true});
  observe(section);
}
const shown = new Map();
function show({panel, html}) {
  const section = document.getElementById(panel);
  if (!section || shown.get(panel) === html) return;
  shown.set(panel, html);
  const state = kept(section);
  section.innerHTML = html;
  restore(section, state);
  document.dispatchEvent(new Event("panels"));
}

// The box of an index leaves the lines that hold each of its words.
function find() {
  const box = document.querySelector("#index input");
  if (!box) return;
  const words = box.value.toLowerCase().split(/\s+/), lines = [...document.querySelectorAll("#index tbody tr")];
  for (const line of lines) line.hidden = !words.every((word) => line.textContent.toLowerCase().includes(word));
  document.querySelector("#index .count").textContent = `${lines.filter((line) => !line.hidden).length} of ${lines.length} runs`;
}
document.addEventListener("input", find);
document.addEventListener("panels", find);
find();

// A hidden page asks for nothing: a browser has few connections to one server, and the parties need the processor.
const connection = document.getElementById("connection");
let source = null;
function connect() {
  source?.close();
  source = document.hidden ? null : new EventSource("live" + location.search);
  if (!source) return;
  source.onopen = () => { connection.textContent = "live"; };
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => { connection.textContent = "no longer live: the command that serves this page has ended"; };
}
document.querySelectorAll("section").forEach(observe);
document.addEventListener("visibilitychange", connect);
connect();
