"use strict";
(() => {
  const make = (name, given, ...inside) => {
    const made = Object.assign(document.createElement(name), given);
    made.append(...inside);
    return made;
  };

  const titled = [...document.querySelectorAll("main > section[id] > h2")];
  if (titled.length > 2) {
    const links = titled.map((title) => make("a", { href: `#${title.parentNode.id}` }, title.textContent));
    const contents = make("nav", { className: "contents", ariaLabel: "Contents" }, ...links);
    document.querySelector("header").append(contents);
  }

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
  const mostUnfiltered = 8;
  for (const table of document.querySelectorAll("table")) {
    const rows = [...table.tBodies[0].rows];
    const region = table.parentNode;
    if (rows.length > mostUnfiltered) {
      const input = make("input", { type: "search" });
      const count = make("output");
      const label = make("label", {}, "Filter", input);
      input.setAttribute("aria-label", `Filter ${region.getAttribute("aria-label")}`);
      region.before(make("div", { className: "filter" }, label, count));
      input.addEventListener("input", () => {
        const words = input.value.toLowerCase().split(" ").filter((word) => word);
        for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
        count.textContent = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
      });
    }
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const button = make("button", { type: "button" }, head.textContent);
      button.ariaLabel = head.textContent ? null : head.ariaLabel;
      head.replaceChildren(button);
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
  let current = root;
  const usable = () => cells.filter(({ svg }) => !svg.classList.contains("tiny"));
  const stand = (cell) => {
    current.svg.setAttribute("tabindex", "-1");
    current = cell;
    current.svg.setAttribute("tabindex", "0");
  };
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
      svg.classList.toggle("tiny", !shown || wide * pixels < 34);
    }
    for (const { svg } of cells) svg.setAttribute("aria-hidden", String(svg.classList.contains("tiny")));
    if (!usable().includes(current)) stand(zoomed);
    chart.setAttribute("height", rows * rowHeight);
    const trail = [...above(zoomed), zoomed];
    hint.replaceChildren();
    if (trail.length === 1) hint.textContent = "Click a namespace to zoom in, Escape to zoom out; or use arrow keys and Enter.";
    trail.length > 1 && trail.forEach((cell, at) => {
      if (at) hint.append(" › ");
      const name = cell.svg.querySelector("text").firstChild.textContent;
      if (cell === zoomed) hint.append(make("b", {}, name));
      else hint.append(make("button", { className: "crumb", type: "button", onclick: () => zoom(cell) }, name));
    });
  };
  const zoom = (cell) => { zoomed = cell; draw(); };
  const next = (key) => {
    const center = (cell) => parseFloat(cell.svg.getAttribute("x")) + parseFloat(cell.svg.getAttribute("width")) / 2;
    const far = (cell) => Math.abs(center(cell) - center(current));
    const fits = {
      ArrowLeft: (one) => one.depth === current.depth && center(one) < center(current),
      ArrowRight: (one) => one.depth === current.depth && center(one) > center(current),
      ArrowUp: (one) => one.depth === current.depth - 1 && above(current).includes(one),
      ArrowDown: (one) => one.depth === current.depth + 1 && above(one).includes(current),
    }[key];
    return fits && usable().filter(fits).sort((a, b) => far(a) - far(b))[0];
  };
  for (const cell of cells) {
    const go = () => zoom(cell === zoomed && cell !== root ? above(cell).pop() : cell);
    cell.svg.setAttribute("role", "button");
    cell.svg.setAttribute("tabindex", cell === root ? "0" : "-1");
    cell.svg.addEventListener("click", go);
    cell.svg.addEventListener("focus", () => stand(cell));
    cell.svg.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") go();
      else if (event.key.startsWith("Arrow")) next(event.key)?.svg.focus();
      else return;
      event.preventDefault();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.tagName !== "INPUT" && zoomed !== root) zoom(above(zoomed).pop());
  });
  window.addEventListener("resize", draw);
  draw();
})();
