// Brings the page up to date by server-sent events, filters as one types, copies. Nothing here is needed to read or to act.
const body = document.body;
const live = document.getElementById("live");
let source = null;

function say(text) {
  if (!live) return;
  live.hidden = false;
  live.textContent = text;
  live.dataset.on = text === "live";
}

// Replaces what is within an element, and leaves opened details, the focus and what was typed as they are.
function replace(element, html) {
  if (element.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) return;
  const focused = element.contains(document.activeElement) ? address(document.activeElement) : null;
  const open = [...element.querySelectorAll("details[open][id]")].map((one) => one.id);
  element.innerHTML = html;
  open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
  focused?.()?.focus({ preventScroll: true });
}

function address(element) {
  const { id, href, tagName } = element;
  if (id) return () => document.getElementById(id);
  return href ? () => [...document.querySelectorAll(tagName)].find((one) => one.href === href) : () => null;
}

function replaceRow(id, html) {
  const row = document.getElementById(id);
  if (!row) return;
  const focused = row.contains(document.activeElement) ? address(document.activeElement) : null;
  const hidden = row.hidden;
  row.outerHTML = html;
  document.getElementById(id).hidden = hidden;
  focused?.()?.focus({ preventScroll: true });
}

function update({ parts = {}, rows = {} }) {
  for (const [id, html] of Object.entries(parts)) {
    const element = document.getElementById(id);
    if (element) replace(element, html);
  }
  for (const [id, html] of Object.entries(rows)) replaceRow(id, html);
  if (parts.rows === undefined) return;
  if (document.getElementById("rows")) filter();
  else if (parts.rows) location.reload(); // the first connector of all: the page had no table
}

function listen() {
  if (source || !body.dataset.render || document.hidden) return;
  const query = new URLSearchParams({ of: body.dataset.target, render: body.dataset.render });
  source = new EventSource(`/ui/live?${query}`);
  source.onopen = () => say("live");
  source.addEventListener("parts", (event) => update(JSON.parse(event.data)));
  source.addEventListener("gone", (event) => {
    stop();
    say(JSON.parse(event.data).message);
  });
  source.onerror = () => {
    say("not connected");
    if (source?.readyState === EventSource.CLOSED) {
      stop();
      setTimeout(listen, 5000);
    }
  };
}

function stop() {
  source?.close();
  source = null;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return listen();
  stop();
  body.dataset.render = "again"; // what it has is old by then: all of it is sent again
});
window.addEventListener("pagehide", stop);
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

// Shows as one types only rows whose name has the text; Enter asks the server for the same.
const box = document.querySelector("input[data-filter]");
function filter() {
  if (!box) return;
  const text = box.value.trim().toLowerCase();
  document.querySelectorAll("#rows > tr").forEach((row) => (row.hidden = !row.dataset.name.includes(text)));
}
box?.addEventListener("input", filter);
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.activeElement.matches("input, textarea, select")) return;
  const to = box ?? document.querySelector("main input:not([type=hidden])");
  if (to) {
    event.preventDefault();
    to.focus();
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // without TLS only localhost has a clipboard: what is selected can be copied by hand
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    button.textContent = "Selected";
    return;
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});
document.querySelectorAll("button[data-copy]").forEach((one) => (one.hidden = false));
new MutationObserver(() => document.querySelectorAll("button[data-copy][hidden]").forEach((one) => (one.hidden = false)))
  .observe(document.getElementById("main"), { childList: true, subtree: true });

// What is wrong and what differs, as one types; the form's own button asks for the same.
document.querySelectorAll("form[data-check]").forEach((form) => {
  let timer = 0;
  let asked = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const turn = ++asked;
      const body = new URLSearchParams(new FormData(form));
      try {
        const answer = await fetch(form.dataset.check, { method: "POST", body });
        const text = await answer.text();
        if (turn === asked && answer.ok) document.getElementById("findings").innerHTML = text;
      } catch { // the button says what is wrong with the connection
      }
    }, 400);
  });
});

listen();
