// Where we are. Pages are addresses; going to one loads nothing.
import { signal } from "@preact/signals";

export const path = signal(location.pathname.replace(/\/+$/, "") || "/");
export const query = signal(location.search.slice(1));

addEventListener("popstate", () => {
  path.value = location.pathname.replace(/\/+$/, "") || "/";
  query.value = location.search.slice(1);
});

export function go(to: string): void {
  history.pushState(null, "", to);
  path.value = location.pathname.replace(/\/+$/, "") || "/";
  query.value = location.search.slice(1);
  scrollTo(0, 0);
  document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
}

/** A plain click on a link stays inside. */
export function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest("a");
  if (!link || link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
  if (link.pathname !== "/" && !link.pathname.startsWith("/lab")) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
