// The policy editor: what a button or a change would do by sending the form is done in place, so that
// both views keep step while the document is written. Without script the form does the same.
const form = document.querySelector("form[data-editor]");
const text = form?.elements.document;
const parts = (root) => new Map([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
let sent = 0;
let wait;

const say = (words) => {
  const live = document.querySelector("#live");
  if (live && live.textContent !== words) live.textContent = words;
};

// Where the focus was, so that it is there again in what replaces it.
function mark() {
  const at = document.activeElement;
  if (!at || !form.contains(at) || at === text) return () => {};
  const same = at.matches("button")
    ? (root) => [...root.querySelectorAll("button")].find((button) => button.value === at.value && button.name === at.name)
    : (root) => (at.id ? root.querySelector(`#${CSS.escape(at.id)}`) : null);
  const near = at.closest("[data-part]")?.dataset.part;
  const caret = at.selectionStart;
  return () => {
    if (form.contains(document.activeElement)) return;
    const next = same(form) ?? form.querySelector("[autofocus]") ?? form.querySelector(`[data-part="${near}"] button`);
    next?.focus({ preventScroll: true });
    try {
      if (caret !== undefined && caret !== null) next?.setSelectionRange(caret, caret);
    } catch { /* A field without a caret. */ }
  };
}

function place(page, wanted) {
  const fresh = parts(page);
  if (!fresh.size) return false;
  const back = mark();
  for (const [name, part] of parts(form)) {
    const next = fresh.get(name);
    if (!next || (wanted && !wanted.includes(name))) continue;
    // A panel that was opened stays open.
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll("details").forEach((details, index) => { if (open[index]) details.open = true; });
  }
  const written = page.querySelector("form[data-editor]")?.elements.document?.value;
  if (written !== undefined && written !== text.value) text.value = written;
  back();
  const wrong = form.querySelector("[data-part=builder] [aria-invalid]");
  if (wrong) wrong.focus();
  say([...form.querySelectorAll("[data-part=notice] .flash, [data-say]")].map((part) => part.textContent.trim()).join(" "));
  return true;
}

async function send(name, value, wanted) {
  clearTimeout(wait);
  const number = ++sent;
  const body = new URLSearchParams(new FormData(form));
  body.delete("press");
  body.set(name, value);
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(location.href, { method: "POST", body });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    // Something newer was typed or pressed meanwhile.
    if (number !== sent) return true;
    return (answer.ok || answer.status === 422) && place(page, wanted);
  } catch {
    return false;
  } finally {
    if (number === sent) form.removeAttribute("aria-busy");
  }
}

if (form && text) {
  form.addEventListener("submit", async (event) => {
    const by = event.submitter;
    if (by?.name === "press" && by.value === "save") return;
    event.preventDefault();
    const [name, value] = by ? [by.name, by.value] : ["press", "check"];
    // What the page cannot show in place, it shows as a page.
    if (!(await send(name, value))) {
      const field = Object.assign(document.createElement("input"), { type: "hidden", name, value });
      form.append(field);
      form.submit();
    }
  });
  // Line, column and suggestion while the document is written.
  text.addEventListener("input", () => {
    sent += 1;
    clearTimeout(wait);
    wait = setTimeout(() => send("press", "look", ["builder", "words", "lines"]), 350);
  });
  // Operators follow their field, fields follow their tool.
  form.addEventListener("change", (event) => {
    const name = event.target.name ?? "";
    if (/^(c\d+_(path|op)|l_window|l_increment_from)$/.test(name)) send("press", "look", ["builder"]);
    if (name === "find") send("press", "look", ["builder"]);
    if (name === "tool") send("press", "fields", ["call"]);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send("press", "check");
    }
  });
}
