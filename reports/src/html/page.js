"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const scenarios = all("details.scenario");

  // A link to a step opens what the step stands in, and marks the step in the picture.
  const arrive = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    all(".sq-now").forEach((band) => band.classList.remove("sq-now"));
    const scenario = target.closest("details.scenario");
    const step = target.closest("ol.steps > li");
    if (scenario && step) {
      const number = step.id.slice(step.id.lastIndexOf("/") + 1);
      all(`.sq-band[data-step="${number}"]`, scenario).forEach((band) => band.classList.add("sq-now"));
    }
    target.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", arrive);
  arrive();

  // Stepping: from the step that the address names, else from the first.
  const go = (trace, by) => {
    const steps = all("ol.steps > li", trace);
    const now = steps.findIndex((step) => "#" + step.id === decodeURIComponent(location.hash));
    const next = now < 0 ? 0 : Math.min(Math.max(now + by, 0), steps.length - 1);
    if (steps[next]) location.hash = steps[next].id;
  };
  all("p.stepper").forEach((stepper) => {
    stepper.hidden = false;
    const trace = stepper.closest("details.trace");
    all("button", stepper).forEach((button) =>
      button.addEventListener("click", () => go(trace, Number(button.dataset.by))));
    trace.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName === "PRE") return;
      if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
        go(trace, event.key === "ArrowRight" ? 1 : -1);
        event.preventDefault();
      }
    });
  });

  const form = document.querySelector("form.filter");
  if (!form) return;
  form.hidden = false;
  const rows = all("table.verdicts tbody tr");
  const filter = () => {
    const words = form.elements.words.value.toLowerCase();
    const shown = new Set(all('input[name="verdict"]:checked', form).map((box) => box.value));
    let count = 0;
    scenarios.forEach((scenario, index) => {
      const text = (rows[index].textContent + " " + scenario.querySelector("summary").textContent).toLowerCase();
      const show = shown.has(scenario.dataset.verdict) && text.includes(words);
      scenario.hidden = rows[index].hidden = !show;
      if (show) count += 1;
    });
    form.querySelector("output").textContent = `${count} of ${scenarios.length} shown`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
})();
