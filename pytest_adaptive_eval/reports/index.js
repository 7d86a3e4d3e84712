(() => {
"use strict";
const runs = JSON.parse(document.getElementById("data").textContent);
const rows = [...document.querySelectorAll("#runs tbody tr")];
const boxes = [...document.querySelectorAll("#runs input[data-run]")];
const filter = document.getElementById("filter");
const model = document.getElementById("model");

function show() {
  const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const fits = !model.value || row.dataset.m === model.value;
    row.hidden = !(fits && wanted.every((word) => text.includes(word)));
    shown += !row.hidden;
  }
  for (const figure of document.querySelectorAll(".trends figure")) {
    const marks = [...figure.querySelectorAll("[data-m]")];
    for (const mark of marks) mark.classList.toggle("dim", Boolean(model.value) && mark.dataset.m !== model.value);
    figure.hidden = marks.length > 0 && marks.every((mark) => mark.classList.contains("dim"));
  }
  document.getElementById("shown").textContent = wanted.length || model.value ? `${shown} of ${rows.length} rows` : "";
}

function line(table, cells, head) {
  const row = table.appendChild(document.createElement("tr"));
  for (const cell of cells) {
    row.appendChild(document.createElement(head ? "th" : "td")).textContent = cell;
  }
}

function choose(changed) {
  for (const box of boxes) if (box.dataset.run === changed.dataset.run) box.checked = changed.checked;
  compare();
}

function compare() {
  const numbers = new Set(boxes.filter((box) => box.checked).map((box) => Number(box.dataset.run)));
  const chosen = [...numbers].map((number) => runs[number]);
  for (const box of boxes) box.disabled = chosen.length >= 2 && !box.checked;
  document.getElementById("comparison").hidden = chosen.length !== 2;
  if (chosen.length !== 2) return;
  const [newer, older] = chosen;
  const table = document.createElement("table");
  line(table, ["", older.started, newer.started], true);
  const names = new Set([...Object.keys(older.evaluations), ...Object.keys(newer.evaluations)]);
  for (const name of names) {
    const [was, is] = [older.evaluations[name], newer.evaluations[name]];
    line(table, [name, was ? was.result : "-", is ? is.result : "-"]);
    if (!was || !is) continue;
    for (const [item, score] of Object.entries(is.scores)) {
      if (item in was.scores && was.scores[item] !== score) line(table, [`item ${item}`, was.scores[item], score]);
    }
  }
  for (const name of new Set([...Object.keys(older.gates), ...Object.keys(newer.gates)])) {
    line(table, [`gate ${name}`, older.gates[name] || "-", newer.gates[name] || "-"]);
  }
  document.getElementById("compared").replaceChildren(table);
}

filter.addEventListener("input", show);
model.addEventListener("input", show);
for (const box of boxes) box.addEventListener("change", () => choose(box));
})();
