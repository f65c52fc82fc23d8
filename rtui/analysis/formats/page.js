"use strict";
(() => {
  const sortBy = (table, at, up) => {
    const body = table.tBodies[0];
    const value = (row) => {
      const cell = row.cells[at];
      if (!cell.classList.contains("n")) return cell.textContent.toLowerCase();
      return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
    };
    const rows = [...body.rows].map((row) => [value(row), row]);
    const known = rows.filter(([one]) => one !== null);
    known.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1));
    body.append(...known.map(([, row]) => row), ...rows.filter(([one]) => one === null).map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.append(button);
      button.addEventListener("click", () => {
        const numeric = head.classList.contains("n");
        const before = head.getAttribute("aria-sort");
        const up = before ? before === "descending" : !numeric;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        sortBy(table, at, up);
      });
    });
  }

  const chart = document.querySelector(".icicle");
  if (!chart) return;
  const cells = [...chart.children].filter((one) => one.classList.contains("c")).map((svg) => ({
    svg, depth: Number(svg.dataset.d),
    left: parseFloat(svg.getAttribute("x")), width: parseFloat(svg.getAttribute("width")),
  }));
  const slack = 1e-3;
  const thin = 3;
  const rowHeight = Number(chart.getAttribute("height")) / Number(chart.dataset.rows);
  const above = (cell) => cells.filter(
    (one) => one.depth < cell.depth && one.left <= cell.left + slack && one.left + one.width >= cell.left + cell.width - slack
  );
  const hint = document.querySelector("#where .hint");
  const root = cells[0];
  let zoomed = root;
  const draw = () => {
    const scale = 100 / Math.max(zoomed.width, 1e-9);
    const pixels = chart.clientWidth / 100;
    let rows = 1;
    for (const { svg, left, width, depth } of cells) {
      const outer = depth <= zoomed.depth && left <= zoomed.left + slack && left + width >= zoomed.left + zoomed.width - slack;
      const from = outer ? 0 : (left - zoomed.left) * scale;
      const wide = outer ? 100 : width * scale;
      const shown = outer || (from + wide > 0 && from < 100);
      svg.setAttribute("x", `${from}%`);
      svg.setAttribute("width", `${shown ? Math.max(wide, 0.01) : 0}%`);
      if (shown && (outer || wide * pixels >= thin)) rows = Math.max(rows, depth + 1);
      const tiny = !shown || wide * pixels < 34;
      svg.classList.toggle("tiny", tiny);
      if (tiny) svg.removeAttribute("tabindex"); else svg.setAttribute("tabindex", "0");
    }
    chart.setAttribute("height", rows * rowHeight);
    hint.textContent = "";
    const trail = [...above(zoomed), zoomed];
    if (trail.length === 1) hint.textContent = "Click a namespace to zoom in, Escape to zoom out.";
    trail.length > 1 && trail.forEach((cell, at) => {
      if (at) hint.append(" › ");
      const name = cell.svg.querySelector("text").firstChild.textContent;
      const step = document.createElement(cell === zoomed ? "b" : "button");
      step.textContent = name;
      if (cell !== zoomed) { step.className = "crumb"; step.type = "button"; step.addEventListener("click", () => zoom(cell)); }
      hint.append(step);
    });
  };
  const zoom = (cell) => { zoomed = cell; draw(); };
  for (const cell of cells) {
    const go = () => zoom(cell === zoomed && cell !== root ? above(cell).pop() : cell);
    cell.svg.addEventListener("click", go);
    cell.svg.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); go(); }
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && zoomed !== root) zoom(above(zoomed).pop());
  });
  window.addEventListener("resize", draw);
  draw();
})();
