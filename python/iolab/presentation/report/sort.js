(() => {
  const UNITS = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50 };
  // The number that a cell begins with, in one unit; null if it is words.
  const number = (text) => {
    const found = /^([\d,.]+)\s*([KMGTP]iB)?(B|%)?$/.exec(text);
    return found ? Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] ?? 1) : null;
  };
  const order = (a, b) => {
    const [x, y] = [number(a), number(b)];
    return x !== null && y !== null ? x - y : a.localeCompare(b, "en", { numeric: true });
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.querySelectorAll("thead th")];
    const body = table.querySelector("tbody");
    heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = (row) => row.cells[place].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        // What has no value comes last, whichever way.
        if (!text(a) || !text(b)) return !text(a) - !text(b);
        return order(text(a), text(b)) * (down ? -1 : 1);
      });
      body.append(...rows);
    }));
  }
})();
