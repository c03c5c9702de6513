"use strict";
// Fetches this page again and swaps its tables; the server writes all of the text.
const EVERY = 2000; // ms
const PAUSED = "This page cannot reach the console; it tries again.";

async function refresh() {
  const main = document.querySelector("main");
  try {
    const response = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!response.ok) throw new Error(response.statusText);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    main.replaceWith(page.querySelector("main"));
  } catch {
    if (main.firstElementChild?.id !== "unreachable") {
      const note = document.createElement("p");
      note.id = "unreachable";
      note.className = "bad";
      note.textContent = PAUSED;
      main.prepend(note);
    }
  }
  setTimeout(refresh, document.hidden ? 5 * EVERY : EVERY);
}

setTimeout(refresh, EVERY);
