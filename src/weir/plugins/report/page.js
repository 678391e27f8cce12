"use strict";
(() => {
  const make = (tag, properties = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const isolated = (text) => make("bdi", {}, text);

  // One measure of a section at a time.
  for (const boards of document.querySelectorAll(".weir-boards")) {
    const all = [...boards.children];
    if (all.length < 2) continue;
    if (boards.classList.contains("weir-chosen")) {
      // Many boards are chosen from a list, and the address says which one is shown.
      const chosen = make("select", { "aria-label": "Filter" }, ...all.map((board, n) => make("option", { value: n }, board.dataset.measure)));
      const follow = () => {
        const n = all.findIndex((board) => `#${encodeURIComponent(board.dataset.measure)}` === location.hash);
        chosen.value = Math.max(0, n);
        all.forEach((board, number) => (board.hidden = number !== +chosen.value));
      };
      chosen.onchange = () => (location.hash = encodeURIComponent(all[+chosen.value].dataset.measure));
      addEventListener("hashchange", follow);
      boards.prepend(make("p", { className: "weir-tools" }, make("label", {}, "show ", chosen)));
      follow();
      continue;
    }
    const show = (which) => {
      all.forEach((board, n) => (board.hidden = n !== which));
      buttons.forEach((button, n) => button.setAttribute("aria-pressed", n === which));
    };
    const buttons = all.map((board, n) => make("button", { type: "button", textContent: board.dataset.measure, onclick: () => show(n) }));
    boards.prepend(make("div", { className: "weir-switch", role: "group", "aria-label": "Measure" }, ...buttons));
    show(0);
  }

  // Columns of grids are sorted by their heads.
  for (const table of document.querySelectorAll(".weir-sortable")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const button = make("button", { className: "weir-sort", type: "button" }, ...cell.childNodes);
      cell.append(button);
      button.onclick = () => {
        const state = cell.getAttribute("aria-sort");
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        if (state === "ascending") return body.append(...original);
        const direction = state === "descending" ? 1 : -1;
        cell.setAttribute("aria-sort", direction < 0 ? "descending" : "ascending");
        const key = (row) => {
          const text = row.cells[column].dataset.value ?? row.cells[column].textContent.replace(/,/g, "");
          const number = parseFloat(text);
          return column === 0 ? text : Number.isNaN(number) ? -Infinity : number;
        };
        const rows = original.map((row) => [key(row), row]);
        rows.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0) * (column === 0 ? -direction : direction));
        body.append(...rows.map((pair) => pair[1]));
      };
    });
  }

  const root = document.documentElement;
  const theme = make("button", { type: "button", textContent: "Dark or light" });
  theme.onclick = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  };
  document.querySelector(".weir-top nav").after(theme);

  // On a telephone the sections after the first two open under their titles.
  const thin = matchMedia("screen and (max-width:719px)"), sections = [...document.querySelectorAll("main>section:not(#short)")].slice(2);
  const fold = () => sections.forEach((section) => {
    const title = section.querySelector("h2"), button = title.querySelector("button");
    section.classList.toggle("weir-folded", thin.matches);
    if (thin.matches && !button) title.append(make("button", { type: "button", className: "weir-fold", "aria-expanded": false }, ...title.childNodes));
    if (!thin.matches && button) button.replaceWith(...button.childNodes);
  });
  const flip = (section) => section.querySelector("h2>button").setAttribute("aria-expanded", !section.classList.toggle("weir-folded"));
  const named = () => {
    const place = document.getElementById(location.hash.slice(1)), section = place?.closest(".weir-folded");
    if (!section) return;
    flip(section);
    place.scrollIntoView();
  };
  sections.forEach((section) => section.addEventListener("click", ({ target }) => target.closest(".weir-fold") && flip(section)));
  thin.onchange = fold;
  addEventListener("hashchange", named);
  addEventListener("click", ({ target }) => target.closest("a[href^='#']") && setTimeout(named)); // also to the place where one is
  fold();
  named();

  // The query browser: a collection is unpacked when it is opened.
  const browser = document.getElementById("weir-browser");
  if (!browser || typeof DecompressionStream === "undefined") return;
  const index = JSON.parse(document.getElementById("weir-index").textContent);
  const inflated = async (id) => {
    const text = atob(document.getElementById(id).textContent);
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const opened = new Map();
  const open = (n) => {
    if (!opened.has(n))
      opened.set(n, (async () => {
        const [values, texts] = await Promise.all([inflated(`weir-values-${n}`), inflated(`weir-texts-${n}`)]);
        const data = JSON.parse(new TextDecoder().decode(texts));
        const dataset = index.datasets[n], half = values.length / 2;
        data.value = (measure, system, query) => {
          const at = (measure * dataset.systems.length + system) * dataset.queries + query;
          const step = values[at] + 256 * values[half + at];
          return step === index.missing ? NaN : dataset.lows[measure] + (step / index.steps) * dataset.spans[measure];
        };
        return data;
      })());
    return opened.get(n);
  };
  const select = (name, options, chosen) => {
    const element = make("select", { "aria-label": name }, ...options.map((text, n) => make("option", { value: n }, text)));
    element.value = chosen;
    return element;
  };
  const signed = (value) => (Number.isNaN(value) ? "–" : Math.abs(value) < 0.00005 ? "0" : (value > 0 ? "+" : "−") + Math.abs(value).toFixed(4));
  const plain = (value) => (Number.isNaN(value) ? "–" : value.toFixed(4));

  const datasets = select("Collection", index.datasets.map((one) => one.name), 0);
  const measures = select("Measure", index.measures, 0);
  const first = make("select", { "aria-label": "System" }), second = make("select", { "aria-label": "against" });
  const filter = make("input", { type: "search", placeholder: "words or identifier", "aria-label": "Filter queries" });
  const count = make("span", { className: "weir-soft", role: "status" });
  const label = (text, control) => make("label", {}, text, control);
  const tools = make("div", { className: "weir-tools" }, label("collection", datasets), label("measure", measures), label("of", first), label("against", second), filter, count);
  const list = make("div", { className: "weir-list", tabIndex: 0, role: "listbox", "aria-label": "Queries" });
  const view = make("div", { className: "weir-view", "aria-live": "polite" });
  browser.append(tools, list, view);
  browser.hidden = false;

  const HEIGHT = 34;
  let data, rows = [], chosen = 0, turn = 0, most = 1;
  const dataset = () => index.datasets[+datasets.value];
  const name = (system) => index.systems[dataset().systems[system]];

  const fillSystems = () => {
    const own = dataset().systems;
    const base = Math.max(0, own.indexOf(index.baseline));
    for (const element of [first, second])
      element.replaceChildren(...own.map((system, n) => make("option", { value: n }, index.systems[system])));
    second.value = base;
    const sums = own.map((_, n) => {
      let sum = 0;
      for (let query = 0; query < dataset().queries; query++) sum += data.value(0, n, query) || 0;
      return n === base ? -1 : sum;
    });
    first.value = sums.indexOf(Math.max(...sums));
  };
  const sorted = () => {
    const one = +first.value, other = +second.value, measure = +measures.value, words = filter.value.toLowerCase();
    rows = [];
    let won = 0, lost = 0;
    for (let query = 0; query < dataset().queries; query++) {
      const text = data.texts[query] || "";
      if (words && !text.toLowerCase().includes(words) && !data.ids[query].toLowerCase().includes(words)) continue;
      const gap = data.value(measure, one, query) - data.value(measure, other, query);
      won += gap > 0;
      lost += gap < 0;
      rows.push([gap, query]);
    }
    rows.sort((a, b) => (Number.isNaN(a[0]) ? -9 : a[0]) < (Number.isNaN(b[0]) ? -9 : b[0]) ? 1 : -1);
    most = Math.max(1e-9, ...rows.map(([gap]) => Math.abs(gap) || 0));
    count.textContent = `${rows.length.toLocaleString("en")} queries: ${won} won, ${lost} lost, ${rows.length - won - lost} tied`;
    chosen = 0;
    list.scrollTop = 0;
    draw();
    show();
  };
  const bar = (gap) => {
    const wide = ((Math.abs(gap) || 0) / most) * 48, ink = gap >= 0 ? "better" : "worse";
    const holder = make("span", { "aria-hidden": "true" });
    holder.innerHTML = `<svg width="100" height="12" viewBox="0 0 100 12" preserveAspectRatio="none"><line x1="50" x2="50" y1="0" y2="12" class="weir-l-axis"/><rect x="${gap >= 0 ? 50 : 50 - wide}" y="2" width="${wide}" height="8" class="weir-f-${ink}"/></svg>`;
    return holder;
  };
  const draw = () => {
    const from = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 10);
    const drawn = rows.slice(from, from + 60).map(([gap, query], n) => {
      const words = make("span", {}, isolated(data.texts[query] || data.ids[query]));
      const row = make("div", { className: "weir-row", role: "option", id: `weir-row-${from + n}` }, words, bar(gap), make("span", {}, signed(gap)));
      row.setAttribute("aria-selected", from + n === chosen);
      row.style.top = `${(from + n) * HEIGHT}px`;
      row.onclick = () => pick(from + n);
      return row;
    });
    const spacer = make("div", { role: "presentation" });
    spacer.style.height = `${rows.length * HEIGHT}px`;
    list.style.height = `min(${innerWidth > 904 ? "calc(100vh - 84px)" : "308px"}, ${rows.length * HEIGHT + 2}px)`;
    list.replaceChildren(spacer, ...drawn);
    list.setAttribute("aria-activedescendant", `weir-row-${chosen}`);
  };
  const pick = (n) => {
    chosen = Math.min(rows.length - 1, Math.max(0, n));
    const top = chosen * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
    draw();
    show();
  };
  const marked = (text, words) => {
    const parts = text.split(/([\p{L}\p{N}]+)/u);
    return parts.map((part, n) => (n % 2 && words.has(stem(part)) ? make("u", {}, part) : part));
  };
  const stem = (word) => word.toLowerCase().replace(/(?:ing|ed|es|s)$/u, "");
  const COMMON = new Set("a about an and are as at be by can do does for from has how i in is it me my of on or that the this to was we what when where which who why will with you".split(" ").map(stem));

  const shownDocument = (doc, rank, entry, words, other) => {
    const [id, title, text] = data.documents[doc];
    const grade = entry.g[doc];
    const kind = grade === undefined ? "unjudged" : grade > 0 ? "relevant" : "not";
    const by = entry.o?.[doc] ? `, by ${entry.o[doc]}` : "";
    const unjudged = data.judged ? "not judged" : "its judgments are not here";
    const said = { unjudged, relevant: `relevant, grade ${grade}${by}`, not: `not relevant${by}` }[kind];
    const place = other ? other.indexOf(doc) : -1;
    const elsewhere = other ? (place < 0 ? "below 10 there" : `rank ${place + 1} there`) : "";
    const head = [`${rank}. `, make("b", {}, make("bdi", {}, ...marked(title || (text ? "no title" : id), words)))];
    const excerpt = make("span", { className: "weir-text" }, make("bdi", {}, ...marked(text, words)));
    const item = make("li", { className: `weir-doc weir-${kind}` });
    item.append(...(text ? [make("details", {}, make("summary", {}, ...head, excerpt))] : head));
    const named = title || text ? [isolated(id), " · "] : [];
    item.append(make("small", {}, ...named, isolated(said), ` · ${elsewhere}`));
    return item;
  };
  const show = () => {
    view.replaceChildren();
    if (!rows.length) return;
    const query = rows[chosen][1], measure = +measures.value, text = data.texts[query] || data.ids[query];
    const entry = data.rankings?.[query];
    view.append(make("h3", {}, isolated(text)));
    const all = dataset().systems, few = all.length <= 8;
    const scores = few ? all.map((system, n) => `${index.systems[system]} ${plain(data.value(measure, n, query))}`) : [];
    view.append(make("p", { className: "weir-soft" }, isolated(data.ids[query]), ` · ${index.measures[measure]}${few ? ": " : ""}`, isolated(scores.join(" · "))));
    if (!entry) {
      view.append(make("p", { className: "weir-soft" }, "Its rankings are not packed in this page."));
      return;
    }
    const words = new Set((text.match(/[\p{L}\p{N}]+/gu) || []).map(stem).filter((word) => word.length > 1 && !COMMON.has(word)));
    const pair = make("div", { className: "weir-pair" });
    const sides = [+second.value, +first.value];
    sides.forEach((system, side) => {
      const ranking = entry.r[system], other = entry.r[sides[1 - side]];
      const head = make("h4", {}, isolated(name(system)), " ", make("span", {}, plain(data.value(measure, system, query))));
      const documents = (ranking || []).slice(0, 10).map((doc, n) => shownDocument(doc, n + 1, entry, words, other));
      const nothing = ranking && !ranking.length ? [make("p", { className: "weir-soft" }, "It returns nothing.")] : ranking ? [] : [make("p", { className: "weir-soft" }, "Its ranking is not here.")];
      pair.append(make("div", {}, head, make("ol", {}, ...documents), ...nothing));
    });
    view.append(pair);
  };
  const change = async () => {
    const mine = ++turn;
    const unpacked = await open(+datasets.value);
    if (mine !== turn) return;
    data = unpacked;
    fillSystems();
    sorted();
  };
  datasets.onchange = change;
  for (const element of [measures, first, second]) element.onchange = sorted;
  filter.oninput = sorted;
  list.onscroll = draw;
  list.onkeydown = (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 };
    if (event.key in steps) {
      event.preventDefault();
      pick(chosen + steps[event.key]);
    }
  };
  change();
})();
