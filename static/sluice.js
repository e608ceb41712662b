// Small conveniences on top of pages that work without script. No dependencies, no inline code.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const say = (text) => {
  const live = $("#live");
  if (live) live.textContent = text;
};

// Times: the reader's zone, named; UTC stays on hover.
const zoned = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});
function localTimes(root = document) {
  for (const time of $$("time[datetime]", root)) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.valueOf())) continue;
    const utc = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    if (time.hasAttribute("data-ago")) {
      time.title = `${zoned.format(at)} (${utc})`;
    } else {
      time.textContent = zoned.format(at);
      time.title = utc;
    }
  }
}

// Copy buttons: what to copy is named by data-copy, or is the next code block.
document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  const source = button.dataset.copy ? $(button.dataset.copy) : $("pre, code", button.closest(".code, .token-value"));
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(source.innerText);
    button.textContent = "Copied";
    say("Copied to the clipboard");
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = "Press Ctrl+C";
  }
  setTimeout(() => (button.textContent = label), 1800);
});

// The theme switch needs no reload; the link behind it sets the same cookie without script.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-theme-set]");
  if (!link) return;
  event.preventDefault();
  const theme = link.dataset.themeSet;
  const secure = location.protocol === "https:" ? ";secure" : "";
  document.cookie = `sluice_theme=${theme};path=/;max-age=31536000;samesite=lax${secure}`;
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
  for (const other of $$("a[data-theme-set]")) {
    if (other === link) other.setAttribute("aria-current", "true");
    else other.removeAttribute("aria-current");
  }
});

// `/` goes to the search field, Escape closes an open menu.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const field = $("input[data-search]");
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  }
  if (event.key === "Escape") {
    const menu = event.target.closest("details.menu[open]") ?? $("details.menu[open]");
    if (menu) {
      menu.open = false;
      $("summary", menu).focus();
    }
  }
});
document.addEventListener("click", (event) => {
  for (const menu of $$("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// Search as you type: the same page is fetched and its results swapped in.
function searchAsYouType(form) {
  const target = $(form.dataset.live);
  if (!target) return;
  let wait;
  let running;
  const run = async () => {
    running?.abort();
    running = new AbortController();
    const url = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    try {
      const answer = await fetch(url, { signal: running.signal });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = $(form.dataset.live, page);
      if (!fresh) return;
      target.replaceChildren(...fresh.childNodes);
      history.replaceState(null, "", url);
      say($("[data-count]", target)?.textContent ?? "");
      localTimes(target);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(run, 150);
  });
}

// The palette: places under the search field of a workspace while one types; arrows go through them.
function palette(form) {
  const input = $("input", form);
  const box = document.createElement("div");
  box.className = "menu-box palette";
  box.hidden = true;
  form.append(box);
  let wait;
  let running;
  const run = async () => {
    running?.abort();
    running = new AbortController();
    const url = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    const answer = await fetch(url, { signal: running.signal }).catch(() => null);
    if (!answer?.ok) return;
    const found = $("#places", new DOMParser().parseFromString(await answer.text(), "text/html"));
    if (!found) return;
    box.replaceChildren(...found.childNodes);
    box.hidden = input.value.trim() === "";
    say(`${$$("a", box).length} places`);
  };
  input.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(run, 120);
  });
  form.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      box.hidden = true;
      input.focus();
    } else if (step && !box.hidden) {
      event.preventDefault();
      const stops = [input, ...$$("a", box)];
      stops[(stops.indexOf(document.activeElement) + step + stops.length) % stops.length].focus();
    }
  });
  form.addEventListener("focusout", (event) => (box.hidden = !form.contains(event.relatedTarget)));
  form.addEventListener("focusin", () => (box.hidden = input.value.trim() === "" || !box.firstChild));
}

// Live tail: asks for the same list again while the page is open and in view.
function liveTail(box) {
  const target = $(box.dataset.tail);
  const button = $("button", box);
  let timer;
  const tick = async () => {
    if (document.hidden) return;
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = $(box.dataset.tail, page);
    if (!fresh) return;
    target.replaceChildren(...fresh.childNodes);
    localTimes(target);
  };
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    clearInterval(timer);
    if (on) {
      timer = setInterval(tick, 2000);
      tick();
    }
  });
}

// The log's new rows as the server tells of them; the newest stays above.
function followCalls(box) {
  const target = $(box.dataset.follow);
  const button = $("button", box);
  const most = 200;
  let source;
  const press = (on) => {
    button.setAttribute("aria-pressed", String(on));
    source?.close();
    source = undefined;
    if (on) follow();
  };
  const reload = async () => {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    target.replaceChildren(...($(box.dataset.follow, page)?.childNodes ?? []));
    localTimes(target);
  };
  const follow = () => {
    const url = new URL(box.dataset.from, location.href);
    const newest = $("tr[data-id]", target)?.dataset.id;
    if (newest) url.searchParams.set("after", newest);
    source = new EventSource(url);
    source.addEventListener("calls", (event) => {
      const body = $("tbody", target);
      if (!body) return reload();
      const part = new DOMParser().parseFromString(`<table><tbody>${event.data}</tbody></table>`, "text/html");
      let count = 0;
      for (const row of $$("tr[data-id]", part).reverse()) {
        const { id } = row.dataset;
        const there = $$("tr[data-id]", body);
        if (there.some((other) => other.dataset.id === id)) continue;
        const older = there.find((other) => other.dataset.id < id);
        body.insertBefore(row, older ?? null);
        count += 1;
      }
      for (const row of $$("tr[data-id]", body).slice(most)) row.remove();
      localTimes(target);
      if (count) say(count === 1 ? "1 new call" : `${count} new calls`);
    });
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      press(false);
      say("Following ended; press again to go on");
    });
  };
  button.addEventListener("click", () => press(button.getAttribute("aria-pressed") !== "true"));
  addEventListener("pagehide", () => source?.close());
}

// Try it: sends real MCP requests through the proxy URL, as a client would.
function tryIt(form) {
  const log = $(".try-log", form);
  const stop = $("[data-stop]", form);
  let go = false;
  const post = (body, session, signal) =>
    fetch(form.dataset.proxy, {
      method: "POST",
      credentials: "omit",
      signal,
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: `Bearer ${form.elements.token.value.trim()}`,
        ...(session ? { "mcp-session-id": session, "mcp-protocol-version": "2025-06-18" } : {}),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    });
  const read = async (answer, id) => {
    const text = await answer.text();
    const messages = answer.headers.get("content-type")?.startsWith("text/event-stream")
      ? text.split(/\r\n\r\n|\n\n|\r\r/).map((event) =>
          event.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n"))
      : [text];
    for (const message of messages) {
      if (!message.trim()) continue;
      const value = JSON.parse(message);
      if (value.id === id) return value;
    }
    throw new Error("The answer held no message for this call.");
  };
  const line = (n) => {
    const item = document.createElement("li");
    for (const text of [String(n), "…", "", ""]) {
      const part = document.createElement("span");
      part.textContent = text;
      item.append(part);
    }
    item.children[0].className = "muted num";
    log.append(item);
    return item;
  };
  const show = (item, word, tone, text, took) => {
    item.children[1].className = `mark m-${tone}`;
    item.children[1].textContent = word;
    item.children[2].textContent = text;
    item.children[3].className = "muted num nowrap";
    item.children[3].textContent = took === undefined ? "" : `${Math.round(took)} ms`;
    say(`${item.children[0].textContent}: ${word}. ${text}`);
  };
  const tones = { rate_limited: ["Limited", "limited"], approval_pending: ["Waiting", "waiting"] };
  const refused = { 401: "The proxy does not know this token. Create a grant for this server and paste its token.", 403: "The proxy refused this page's origin. Open the page at its public address." };
  const open = async () => {
    const answer = await post({
      id: "open", method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "sluice-try-it", version: "1" } },
    });
    if (!answer.ok) throw new Error(refused[answer.status] ?? `The proxy answered ${answer.status}: ${(await answer.text()).slice(0, 300)}`);
    const hello = await read(answer, "open");
    if (hello.error) throw new Error(hello.error.message);
    const session = answer.headers.get("mcp-session-id");
    await post({ method: "notifications/initialized" }, session);
    return session;
  };
  const one = async (n, session, tool, args) => {
    const item = line(n);
    const start = performance.now();
    const answer = await post({ id: n, method: "tools/call", params: { name: tool, arguments: args } }, session);
    const value = await read(answer, n);
    const took = performance.now() - start;
    const decision = value.result?._meta?.["dev.sluice/decision"];
    const text = (value.result?.content ?? []).map((part) => part.text ?? `(${part.type})`).join(" ");
    if (value.error) show(item, "Failed", "failed", value.error.message, took);
    else if (decision) show(item, ...(tones[decision.code] ?? ["Denied", "denied"]), text, took);
    else show(item, value.result?.isError ? "Tool error" : "Allowed", value.result?.isError ? "failed" : "allowed", text, took);
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = $("[data-problem]", form);
    problem.hidden = true;
    log.replaceChildren();
    let args;
    try {
      args = JSON.parse(form.elements.arguments.value || "{}");
    } catch (error) {
      problem.hidden = false;
      problem.textContent = `The arguments are not JSON: ${error.message}`;
      form.elements.arguments.focus();
      return;
    }
    go = true;
    stop.hidden = false;
    try {
      const session = await open();
      const times = Math.min(50, Math.max(1, Number(form.elements.times.value) || 1));
      for (let n = 1; go && n <= times; n += 1) await one(n, session, form.elements.tool.value, args);
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.message;
    }
    stop.hidden = true;
  });
  stop.addEventListener("click", () => (go = false));
  form.elements.tool.addEventListener("change", () => {
    const sample = form.elements.tool.selectedOptions[0]?.dataset.sample;
    if (sample) form.elements.arguments.value = sample;
  });
}

// The inbox: the server says that something changed, and the page is read again. What is open stays
// open, so that nobody decides another call than the one that was read.
function inbox(box) {
  const rows = () => $$("a[data-row]", box);
  const open = () => $("a[data-row][aria-current]", box);
  if (open() && !new URLSearchParams(location.search).has("open")) history.replaceState(null, "", open().href);
  let seen;
  const again = async () => {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [list, fresh] = [$("[data-inbox-list]", box), $("[data-inbox-list]", page)];
    if (!list || !fresh || !$(".inbox", page) !== !$(".inbox", box)) return location.reload();
    const ticked = $$("input:checked", list).map((tick) => tick.value);
    const focused = document.activeElement?.closest?.("a[data-row]")?.href;
    list.replaceChildren(...fresh.childNodes);
    for (const tick of $$("input[name=id]", list)) tick.checked = ticked.includes(tick.value);
    if (focused) $$("a[data-row]", list).find((row) => row.href === focused)?.focus();
    const panel = $("[data-inbox-open]", box);
    const typing = panel && (panel.contains(document.activeElement) || $("textarea", panel)?.value);
    if (panel && !typing) panel.replaceChildren(...($("[data-inbox-open]", page)?.childNodes ?? []));
    localTimes(box);
    $(".tabs")?.replaceChildren(...($(".tabs", page)?.childNodes ?? []));
    const counted = (root) => $$("nav:not(.tabs) a[href$='/approvals'], details.fold > summary", root);
    const counts = counted(page);
    for (const [index, place] of counted(document).entries()) {
      $(".count", place)?.remove();
      const count = counts[index] && $(".count", counts[index]);
      if (count) place.append(count.cloneNode(true));
    }
  };
  const source = new EventSource(box.dataset.inbox);
  source.addEventListener("approvals", (event) => {
    const { pending, newest } = JSON.parse(event.data);
    document.title = document.title.replace(/^(\(\d+\) )?/, pending ? `(${pending}) ` : "");
    const first = seen === undefined;
    if (newest && newest.id > (seen ?? "") && !first) {
      say(`${newest.tool} waits for a decision`);
      if (localStorage.getItem("sluice_notify") === "1" && Notification.permission === "granted") {
        const note = new Notification(`${newest.tool} needs approval`, { body: `Grant ${newest.grant}`, tag: newest.id });
        note.onclick = () => { focus(); location.search = `?open=${newest.id}`; };
      }
    }
    if (newest && newest.id > (seen ?? "")) seen = newest.id;
    else seen ??= "";
    // What came between the page and the first word of the server is not in the page yet.
    const known = newest ? rows().some((row) => row.href.endsWith(newest.id)) : rows().length === 0;
    if (!first || !known) again();
  });
  addEventListener("pagehide", () => source.close());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
    const all = rows();
    const at = all.indexOf(document.activeElement);
    const here = at < 0 ? all.indexOf(open()) : at;
    const to = { j: here + 1, k: here - 1 }[event.key];
    if (to !== undefined) all[Math.min(all.length - 1, Math.max(0, to))]?.focus();
    if (event.key === "x" && all[here]) $("input[name=id]", all[here].closest("li"))?.click();
    if (event.key === "a") $("[data-decide] button[value=approve]", box)?.focus();
    if (event.key === "d") $("[data-decide] button[value=deny]", box)?.focus();
  });
}

// Browser notifications: the permission is asked for by this button alone.
function notifyMe(button) {
  if (!("Notification" in window) || Notification.permission === "denied") return;
  const on = () => Notification.permission === "granted" && localStorage.getItem("sluice_notify") === "1";
  const show = () => {
    button.hidden = false;
    button.textContent = on() ? "Stop notifying me in this browser" : "Notify me in this browser";
  };
  button.addEventListener("click", async () => {
    if (on()) localStorage.removeItem("sluice_notify");
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem("sluice_notify", "1");
    show();
  });
  show();
}

// A wide table scrolls by keyboard too.
for (const box of $$(".table-box, .code pre, .prose pre")) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;

localTimes();
$$("form[data-live]").forEach(searchAsYouType);
$$("form[data-palette]").forEach(palette);
$$("[data-tail]").forEach(liveTail);
$$("[data-follow]").forEach(followCalls);
$$("form[data-try]").forEach(tryIt);
$$("[data-inbox]").forEach(inbox);
$$("[data-notify]").forEach(notifyMe);
$("[data-print]")?.addEventListener("click", () => print());
