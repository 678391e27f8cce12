"use strict";
// Keys of the pages on which people judge. An answer that was not stored stays on the page, to be sent again.
(() => {
  const root = () => document.querySelector("[data-judge]");
  const items = () => [...document.querySelectorAll("[data-judge] [data-item]")];
  const current = () => document.querySelector("[data-judge] [data-item][aria-current]") ?? root();
  const typing = (target) => target.matches("textarea, select, input:not([type=hidden])");
  const say = (text) => { document.querySelector("[data-said]").textContent = text; };
  const waiting = [];  // keys of a list, whose documents are all in view, pressed while an answer is sent
  let shown = performance.now(), hidden = 0, hiddenSince = 0, sending = false;

  function mark(item) {  // keys go to this document, whatever else is clicked
    for (const one of items()) one.removeAttribute("aria-current");
    item?.setAttribute("aria-current", "true");
  }

  document.addEventListener("focusin", (event) => {
    const item = event.target.closest("[data-judge] [data-item]");
    if (item) mark(item);
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenSince = performance.now();
    else hidden += performance.now() - hiddenSince;
  });

  function keyed(key) {  // of the document that has the focus, else of the page
    const found = (part) => [...part.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)];
    return found(current())[0] ?? found(root()).find((one) => !one.closest("[data-item]"));
  }

  function quote() {
    const note = current().querySelector("[data-note]"), chosen = String(window.getSelection() ?? "").trim();
    if (!note) return;
    if (chosen) note.value = `${note.value}${note.value ? "\n" : ""}“${chosen}” `;
    note.focus();
    note.setSelectionRange(note.value.length, note.value.length);
  }

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (!root() || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (typing(target)) {
      const form = target.closest("form[data-answer]");
      if (event.key !== "Enter" || event.shiftKey || !form) return;
      const kind = target.dataset.enter ?? (target.matches("[data-note]") ? "noted" : "");
      event.preventDefault();
      form.requestSubmit(form.querySelector(`[data-kind="${kind}"]`));
      return;
    }
    if (sending && items().length) {
      event.preventDefault();
      event.stopImmediatePropagation();
      waiting.push(event.key);
      return;
    }
    const found = keyed(event.key);
    if (!found) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (found.matches("[data-note]")) quote();
    else if (found.matches("summary")) {
      found.parentElement.open = !found.parentElement.open;
      if (found.parentElement.open) found.parentElement.querySelector("input")?.focus();
    } else found.click();
  }, true);

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form[data-answer]")) return;
    event.preventDefault();
    if (sending) return;
    const key = form.elements.key;
    if (key && !key.value) key.value = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
    if (form.elements.seconds) form.elements.seconds.value = ((performance.now() - shown - hidden) / 1000).toFixed(2);
    const body = new URLSearchParams(new FormData(form, event.submitter));
    const item = form.closest("[data-item]"), at = (item ?? current()).id;
    sending = true;
    try {
      const answer = await fetch(form.action, { method: "POST", body });
      const text = await answer.text(), page = new DOMParser().parseFromString(text, "text/html");
      if (!answer.ok) {
        waiting.length = 0;
        say(`Not stored: ${page.querySelector("[role=alert]")?.textContent ?? answer.status} The answer stays here.`);
        return;
      }
      document.querySelector("main").replaceWith(page.querySelector("main"));
      document.title = page.title;
      history.replaceState(null, "", answer.url);
      begin(at, item && body.get("kind") !== "noted" ? 1 : 0);
    } catch {
      waiting.length = 0;
      say("Not stored: the server does not answer. The answer stays here; press the key again when it runs.");
    } finally {
      sending = false;
    }
    while (waiting.length && !sending) {
      const target = document.activeElement ?? document.body;
      target.dispatchEvent(new KeyboardEvent("keydown", { key: waiting.shift(), bubbles: true, cancelable: true }));
    }
  });

  function begin(at, step) {  // at the document that an undo leads to, else after the one that was answered
    shown = performance.now();
    hidden = 0;
    const all = items(), place = all.findIndex((one) => one.id === at);
    const led = all.find((one) => one.matches("[data-at]"));
    const next = led ?? all[Math.min(all.length - 1, place + step)];
    if (led || place >= 0) {
      next.focus();
      mark(next);
      next.scrollIntoView({ block: "nearest" });
    } else {
      window.scrollTo(0, 0);
      const first = all.find((one) => !one.matches(".weir-done")) ?? all[0];
      mark(first);
      (first ?? document.querySelector("[data-document]"))?.focus({ preventScroll: !first || first === all[0] });
    }
  }
  if (root()) begin();
})();
