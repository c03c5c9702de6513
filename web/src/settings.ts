// Language and colours: from the address, else as they were, else as the browser asks.
import { effect, signal } from "@preact/signals";

export type Lang = "ja" | "en";
export type Theme = "auto" | "light" | "dark";

function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // a browser that keeps nothing still works
  }
}

const query = new URLSearchParams(location.search);

function firstLang(): Lang {
  for (const given of [query.get("lang"), stored("lang"), ...navigator.languages]) {
    if (given?.startsWith("ja")) return "ja";
    if (given?.startsWith("en")) return "en";
  }
  return "en";
}

function firstTheme(): Theme {
  const given = query.get("theme") ?? stored("theme");
  return given === "light" || given === "dark" ? given : "auto";
}

export const lang = signal<Lang>(firstLang());
export const theme = signal<Theme>(firstTheme());
export const calm = signal(matchMedia("(prefers-reduced-motion: reduce)").matches);

matchMedia("(prefers-reduced-motion: reduce)").addEventListener("change", (event) => (calm.value = event.matches));

effect(() => {
  document.documentElement.lang = lang.value;
  store("lang", lang.value);
});

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  store("theme", theme.value);
});
