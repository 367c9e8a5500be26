"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const show = (theme) => {
    root.style.colorScheme = theme;
    button.setAttribute("aria-pressed", String(theme === "dark"));
    button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
  };
  const follow = () => show(dark.matches ? "dark" : "light");
  follow();
  dark.addEventListener("change", follow);
  button.hidden = false;
  button.addEventListener("click", () => show(root.style.colorScheme === "dark" ? "light" : "dark"));

  const compare = (a, b) => {
    const [x, y] = [a.dataset.value, b.dataset.value];
    if (x !== undefined && y !== undefined) return Number(x) - Number(y);
    if (x !== undefined || y !== undefined) return x === undefined ? -1 : 1;
    return a.textContent.localeCompare(b.textContent);
  };
  const sort = (header) => {
    const body = header.closest("table").tBodies[0];
    const column = header.cellIndex;
    const isNumber = body.querySelector(`tr > :nth-child(${column + 1})[data-value]`) !== null;
    const before = header.getAttribute("aria-sort");
    const isDescending = before ? before === "ascending" : isNumber;
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    const rows = [...body.rows].sort((a, b) => compare(a.cells[column], b.cells[column]));
    body.append(...(isDescending ? rows.reverse() : rows));
  };
  for (const each of document.querySelectorAll("thead button"))
    each.addEventListener("click", () => sort(each.parentElement));
})();
