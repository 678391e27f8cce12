"use strict";
// Keys: an element with data-key is pressed, or focused if it takes text, by that key; j and k go through elements
// with data-item, h and l to the same place of the ranking beside. `?` lists what the page has.
(() => {
  const shown = (element) => element.getClientRects().length > 0;
  const items = () => [...document.querySelectorAll("[data-item]")].filter(shown);
  const move = (step) => {
    const all = items();
    const own = all.findIndex((one) => one.contains(document.activeElement));
    const at = own < 0 ? all.findIndex((one) => one.matches("[aria-current]")) : own;
    const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  const rankings = () => [...document.querySelectorAll(".weir-beside > section")];
  const aside = (step) => {
    const all = rankings(), at = all.findIndex((one) => one.contains(document.activeElement));
    const of = (ranking) => [...(ranking?.querySelectorAll("[data-item]") ?? [])];
    const beside = of(all[at + step]), place = of(all[at]).indexOf(document.activeElement);
    beside[Math.min(place, beside.length - 1)]?.focus();
  };
  const list = () => {
    const make = (tag, ...inside) => {
      const element = document.createElement(tag);
      element.append(...inside);
      return element;
    };
    const keys = [...new Map([...document.querySelectorAll("[data-key]")].map((one) => [one.dataset.key, one.title || one.textContent.trim()]))];
    if (items().length) keys.unshift(["j k", "Next, previous"], ["Enter", "Open"]);
    if (rankings().length > 1) keys.splice(2, 0, ["h l", "Ranking to the left, to the right"]);
    document.querySelector("#keys dl").replaceChildren(...keys.flatMap(([key, words]) => [make("dt", make("kbd", key)), make("dd", words)]));
  };
  document.addEventListener("click", (event) => {
    const opens = event.target.closest?.("[data-opens]");
    if (!opens) return;
    list();
    document.getElementById(opens.dataset.opens).showModal();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const writing = event.target.closest?.("input:not([type=checkbox],[type=radio]),textarea,select");
    if (event.key === "Escape" && writing) {
      event.preventDefault(); // what was typed stays
      writing.blur();
    }
    if (writing) return;
    if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
    else if ((event.key === "h" || event.key === "l") && rankings().length) aside(event.key === "l" ? 1 : -1);
    else {
      const element = [...document.querySelectorAll(`[data-key="${CSS.escape(event.key)}"]`)].find(shown);
      if (!element) return;
      if (element.matches("input,textarea,select")) element.focus();
      else element.click();
    }
    event.preventDefault();
  });
})();
