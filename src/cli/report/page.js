// SPDX-License-Identifier: Apache-2.0
"use strict";
// The page is whole without this: it adds values under the pointer, zoom, order and search.

function amount(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return (unit ? bytes.toFixed(1) : bytes) + " " + units[unit];
}

function duration(ns) {
  if (ns < 1e6) return Math.round(ns / 1e3) + " us";
  if (ns < 1e7) return (ns / 1e6).toFixed(1) + " ms";
  if (ns < 1e9) return Math.round(ns / 1e6) + " ms";
  return ns < 12e10 ? (ns / 1e9).toFixed(2) + " s" : Math.round(ns / 6e10) + " min";
}

// --- Memory over time: hover, drag to zoom

function timeline(figure) {
  const section = figure.parentElement;
  const source = section.querySelector(".timeline-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const [left, right, top, bottom] = data.frame;
  const svg = figure.querySelector("svg");
  const areas = svg.querySelector(".areas");
  const most = Number(areas.dataset.most);
  const whole = [0, data.t.length - 1];
  const total = data.total;
  const peak = total.indexOf(Math.max(...total));
  const still = areas.innerHTML;
  let shown = whole;

  const shape = (name, attributes) => {
    const made = svg.appendChild(document.createElementNS(svg.namespaceURI, name));
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    return made;
  };
  const line = shape("path", { class: "hover" });
  const pick = shape("rect", { class: "pick", y: top, height: bottom - top, width: 0 });
  const x = (row) => {
    const begin = data.t[shown[0]];
    return left + ((data.t[row] - begin) / (data.t[shown[1]] - begin || 1)) * (right - left);
  };
  const y = (bytes) => bottom - (bytes / most) * (bottom - top);

  // The highest row of each stretch, as the picture without a script has it.
  function rowsShown() {
    const count = shown[1] - shown[0] + 1;
    const kept = Math.min(count, 440);
    const rows = [];
    for (let n = 0; n < kept; n++) {
      let best = shown[0] + Math.floor((n * count) / kept);
      const end = shown[0] + Math.floor(((n + 1) * count) / kept);
      for (let row = best; row < end; row++) if (total[row] > total[best]) best = row;
      rows.push(best);
    }
    return rows;
  }

  function draw() {
    const zoomed = shown !== whole;
    for (const name of ["names", "steps", "phases", "times", "peak"]) {
      const group = svg.querySelector("." + name);
      if (group) group.style.display = zoomed ? "none" : "";
    }
    reset.disabled = !zoomed;
    if (!zoomed) {
      areas.innerHTML = still;
      return;
    }
    const rows = rowsShown();
    const below = rows.map(() => 0);
    data.series.forEach((series, n) => {
      const low = rows.map((row, i) => x(row).toFixed(1) + " " + y(below[i]).toFixed(1));
      rows.forEach((row, i) => (below[i] += series.bytes[row]));
      const high = rows.map((row, i) => x(row).toFixed(1) + " " + y(below[i]).toFixed(1));
      const path = areas.querySelector(`[data-series="${n}"]`);
      path.setAttribute("d", "M" + high.concat(low.reverse()).join("L") + "Z");
    });
  }

  function rowAt(event) {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const begin = data.t[shown[0]];
    const t = begin + ((at - left) / (right - left)) * (data.t[shown[1]] - begin);
    let best = shown[0];
    for (let row = shown[0]; row <= shown[1]; row++)
      if (Math.abs(data.t[row] - t) < Math.abs(data.t[best] - t)) best = row;
    return best;
  }

  const when = section.querySelector(".when");
  const values = section.querySelectorAll("[data-value]");
  function tell(row) {
    values.forEach((place) => {
      place.textContent = amount(data.series[place.dataset.value].bytes[row]);
    });
    let text = "tensors " + amount(total[row]) + " at " + duration(data.t[row] - data.t[0]);
    if (data.step && data.step.length) text += ", step " + (data.step[row] + 1);
    if (data.phase && data.phase[row]) text += ", " + data.phase[row];
    when.textContent = row === peak ? "at the peak" : text;
  }

  let from = null;
  svg.style.touchAction = "pan-y";
  svg.addEventListener("pointermove", (event) => {
    const row = rowAt(event);
    line.setAttribute("d", `M${x(row)} ${top}V${bottom}`);
    tell(row);
    if (from === null) return;
    pick.setAttribute("x", Math.min(x(from), x(row)));
    pick.setAttribute("width", Math.abs(x(from) - x(row)));
  });
  svg.addEventListener("pointerleave", () => {
    line.setAttribute("d", "");
    tell(peak);
  });
  svg.addEventListener("pointerdown", (event) => {
    from = rowAt(event);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointerup", (event) => {
    const ends = [from, rowAt(event)].sort((a, b) => a - b);
    from = null;
    pick.setAttribute("width", 0);
    if (ends[1] - ends[0] > 1) {
      shown = ends;
      draw();
    }
  });

  const tools = document.createElement("p");
  tools.className = "tools";
  const button = (text, act) => {
    const made = tools.appendChild(document.createElement("button"));
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  };
  const reset = button("whole run", () => {
    shown = whole;
    draw();
  });
  reset.disabled = true;
  if (data.step && data.step.length) {
    const same = data.step.map((step, row) => (step === data.step[peak] ? row : -1));
    const rows = same.filter((row) => row >= 0);
    if (rows.length > 2 && rows.length < data.t.length)
      button("step of the peak", () => {
        shown = [rows[0], rows[rows.length - 1]];
        draw();
      });
  }
  tools.append("or drag over the picture");
  figure.before(tools);
}

// --- Sites: order and search

function sites(table) {
  const body = table.tBodies[0];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
  };
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = button.getAttribute("aria-sort") === "down";
      table.querySelectorAll("[aria-sort]").forEach((b) => b.removeAttribute("aria-sort"));
      button.setAttribute("aria-sort", up ? "up" : "down");
      const rows = [...body.rows].sort((a, b) => {
        const x = value(a, column);
        const y = value(b, column);
        const order = typeof x === "number" ? y - x : x.localeCompare(y);
        return up ? -order : order;
      });
      body.append(...rows);
    });
  });
  if (body.rows.length < 6) return;
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "search " + body.rows.length + " sites";
  search.setAttribute("aria-label", search.placeholder);
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(words);
  });
  const tools = document.createElement("p");
  tools.className = "tools";
  tools.append(search);
  table.parentElement.before(tools);
}

document.querySelectorAll(".timeline").forEach(timeline);
document.querySelectorAll(".sites").forEach(sites);
