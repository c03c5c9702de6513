// Everything that the lab shows is in its address: /lab/cpu?s=cpu/convoy&p=fcfs~srtf&step=4&lang=ja
export interface Shown {
  scenario: string | null; // of the gallery
  custom: Record<string, any> | null; // edited, instead of one of the gallery
  policies: string[] | null;
  step: number;
  predict: boolean;
  broken: boolean; // an edited scenario that cannot be read
  recent: { pool: string; seconds: number } | null; // of a gateway that runs
}

export const LONGEST = 4000; // characters of an edited scenario; larger ones are saved as files

export function read(query: string): Shown {
  const given = new URLSearchParams(query);
  const step = Number(given.get("step") ?? 0);
  return {
    scenario: given.get("s"),
    custom: unpacked(given.get("x")),
    policies: given.get("p")?.split("~").filter(Boolean) ?? null,
    step: Number.isInteger(step) && step > 0 ? step : 0,
    predict: given.get("predict") === "1",
    broken: given.get("x") !== null && unpacked(given.get("x")) === null,
    recent: given.get("pool") ? { pool: given.get("pool")!, seconds: Number(given.get("last")) || 30 } : null,
  };
}

/** Only what differs from the defaults. */
export function written(shown: Shown, defaults: { scenario: string; policies: string[] }): string {
  const query = new URLSearchParams();
  const packed = shown.custom ? pack(shown.custom) : null;
  if (packed && packed.length <= LONGEST) query.set("x", packed);
  else if (shown.scenario && shown.scenario !== defaults.scenario) query.set("s", shown.scenario);
  if (shown.policies && shown.policies.join("~") !== defaults.policies.join("~")) query.set("p", shown.policies.join("~"));
  if (shown.step > 0) query.set("step", String(shown.step));
  if (shown.predict) query.set("predict", "1");
  return query.toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%7E", "~").replaceAll("%3D", "=");
}

export function pack(scenario: Record<string, any>): string {
  const bytes = new TextEncoder().encode(JSON.stringify(scenario));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Null for what is no scenario: a broken link opens the default. */
export function unpacked(text: string | null): Record<string, any> | null {
  if (!text) return null;
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return value && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, any>) : null;
  } catch {
    return null;
  }
}
