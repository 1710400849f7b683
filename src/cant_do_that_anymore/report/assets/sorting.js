"use strict";
// Tables whose heads sort their rows, each group of rows by itself. Without this script they are
// plain tables in the order of the ranking.
{
  const text = new Intl.Collator("en", { numeric: true });

  const keyOf = (row, column) => row.cells[column]?.dataset.sort ?? "";

  // Numbers as numbers, names as names; what has no value comes last in either direction.
  const compare = (one, other, sign) => {
    if (one === "" || other === "") return (one === "") - (other === "");
    const [a, b] = [Number(one), Number(other)];
    return sign * (Number.isNaN(a) || Number.isNaN(b) ? text.compare(one, other) : a - b);
  };

  const sort = (table, column, ascending) => {
    const sign = ascending ? 1 : -1;
    for (const group of table.tBodies) {
      const rows = [...group.rows].filter((row) => !row.classList.contains("head"));
      rows.sort((a, b) => compare(keyOf(a, column), keyOf(b, column), sign));
      group.append(...rows);
    }
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    for (const [column, head] of heads.entries()) {
      const name = head.querySelector("b");
      if (!name) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...name.childNodes);
      name.append(button);
      button.addEventListener("click", () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        for (const each of heads) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, column, ascending);
      });
    }
  }
}
