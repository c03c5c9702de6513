// Every decision of the answers in FAIRQ_ANSWERS: the row of what was compared agrees with the reason, and the chosen is best.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Answer } from "../src/api.types";

const folder = process.env["FAIRQ_ANSWERS"];
const APART = new Set(["next-in-turn", "drawn", "fits-deficit"]); // the row says what else it shows
const HIGHEST = new Set(["most-urgent"]);
const NOT_ALL = new Set(["earliest-eligible", "least-eligible-finish", "drawn", "next-turn", "fits-deficit"]); // others may be better, and not eligible

Object.assign(globalThis, {
  location: { search: "?lang=en", pathname: "/lab" },
  matchMedia: () => ({ matches: false, addEventListener: () => {} }),
  document: { documentElement: { dataset: {} } },
});
Object.defineProperty(globalThis, "navigator", { value: { languages: ["en"] }, configurable: true });

test("what was compared agrees with the reason, and the chosen is the best of it", { skip: !folder }, async () => {
  const { compared } = await import("../src/lab/compared");
  const { reason, say } = await import("../src/lab/explain");
  const { num } = await import("../src/numbers");
  const rows = new Map<string, number>();
  const wrong: string[] = [];
  for (const file of readdirSync(folder!).filter((name) => name.endsWith(".json"))) {
    const answer = JSON.parse(readFileSync(join(folder!, file), "utf8")) as Answer;
    for (const run of answer.runs)
      run.steps.forEach((step, place) => {
        const row = step.why && compared(answer, run, place);
        if (!step.why || !row) return;
        const code = step.why.code;
        const where = `${file} ${run.spec} step ${place}: ${reason(step)} ${JSON.stringify(row)}`;
        rows.set(code, (rows.get(code) ?? 0) + 1);
        const chosen = row.of.filter((each) => each.chosen);
        if (chosen.length !== 1) wrong.push(`not one chosen: ${where}`);
        const named = /\[\[(.*?)\]\]/.exec(reason(step))?.[1];
        if (named !== undefined && !APART.has(code)) { if (say(chosen[0]!.value) !== named) wrong.push(`another number: ${where}`); }
        if (NOT_ALL.has(code)) return;
        const values = row.of.map((each) => num(each.value)).filter(Number.isFinite);
        const best = HIGHEST.has(code) ? Math.max(...values) : Math.min(...values);
        if (values.length && Number.isFinite(num(chosen[0]!.value))) { if (num(chosen[0]!.value) !== best) wrong.push(`not the best: ${where}`); }
      });
  }
  assert.deepEqual(wrong.slice(0, 20), []);
  const told = ["first-come", "shortest", "least-remaining", "most-urgent", "earliest-deadline", "shortest-period", "least-pass", "least-vruntime", "least-meter", "cheapest-head", "least-finish", "least-share", "fits-deficit", "highest-level"];
  assert.deepEqual(told.filter((code) => !rows.get(code)), []);
});
