"use strict";
// What is wider than its frame says so: tables, also those that come later, and the menu of the page.
(() => {
  const frames = new ResizeObserver((all) => all.forEach(({ target }) => {
    const more = target.scrollWidth > target.clientWidth + 1, first = target.querySelector("thead th");
    target.classList.toggle("weir-more", more);
    target.tabIndex = more ? 0 : -1;
    if (first) target.style.scrollPaddingLeft = `${first.offsetWidth}px`;
  }));
  const watch = () => document.querySelectorAll(".weir-frame").forEach((frame) => frames.observe(frame));
  new MutationObserver(watch).observe(document.body, { childList: true, subtree: true });
  watch();

  const nav = document.querySelector(".weir-top nav");
  const further = () => nav.classList.toggle("weir-further", nav.scrollLeft + nav.clientWidth < nav.scrollWidth - 2);
  nav.onscroll = further;
  new ResizeObserver(further).observe(nav);
})();
