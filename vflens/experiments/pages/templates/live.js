// Plots are drawn when they come into view: hundreds of them do not hold the page up.
const inView = new IntersectionObserver((entries) => {
  for (const {isIntersecting, target} of entries)
    if (isIntersecting) { target.dataset.drawn = ""; draw(target); inView.unobserve(target); }
});
const observe = (section) => section.querySelectorAll(".plot:not([data-drawn])").forEach((box) => inView.observe(box));
dark.addEventListener("change", () => document.querySelectorAll(".plot[data-drawn]").forEach(draw));

// A replaced panel keeps its drawn plots, its open details, how far it is scrolled, and the focus.
const FOCUSABLE = "a, button, summary, input, [tabindex]";
const byLabel = (section) => new Map([...section.querySelectorAll(".plot[data-drawn]")].map((box) => [box.ariaLabel, box]));
function kept(section) {
  const all = (selector) => [...section.querySelectorAll(selector)];
  return {open: all("details").map((one) => one.open), left: all(".scroll").map((one) => one.scrollLeft),
    focus: all(FOCUSABLE).indexOf(document.activeElement), plots: byLabel(section)};
}
function restore(section, {open, left, focus, plots}) {
  section.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? one.open; });
  section.querySelectorAll(".scroll").forEach((one, i) => { one.scrollLeft = left[i] ?? 0; });
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
