import "./page";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Explanation, PoolView, TenantView } from "../src/api.types";
import { answer, details, outcome, parts, span } from "../src/dash/explained";
import { headlines } from "../src/dash/headline";
import { lang } from "../src/settings";

const tenant = (id: string, more: Partial<TenantView>): TenantView => ({
  id, pool: "p", weight: "1", max_inflight: null, configured: false, paused: false, waiting: 0, inflight: 0, backlogged: false, charged: 0, actual: 0, normalized: 0,
  meter: null, lead: null, standing: "idle", share: null, entitled: null, fair: null, wanting: 0, oldest: null, oldest_id: "", tokens: { prompt: 0, cached: 0, completion: 0 }, outcomes: {}, ...more,
});

const pool = (tenants: TenantView[], more: Partial<PoolView> = {}): PoolView => ({
  name: "p", since: 0, policy: "fcfs", settlement: "fixed", virtual_time: 0, reach: 0, minute: { seconds: 60, charged: 0, prompt: 0, completion: 0 },
  waiting: tenants.reduce((sum, each) => sum + each.waiting, 0), inflight: 0, slots: 4, free: 0, admitted: 0, refused: 0, retries: 0, outcomes: {}, last_event: 0,
  bounds: { held: true, decisions: 1, violations: 0, worst_margin: 0, checks: [{ name: "band", text: "", promised: false, held: 1, violations: 0, worst: null, limit: null, margin: null, seq: null, who: "", first: "" }], pairs: [] },
  fairness: { jain_minute: 1, jain_charged: null, jain_actual: null, sets: [] }, record: { events: 0, decisions: 0, bytes: 0, missed: 0, lost: 0, gaps: 0 },
  tenants, more_tenants: 0, upstreams: [{ pool: "p", name: "gpu-0", slots: 4, inflight: 4, healthy: true, draining: false, queue: 0 }], ...more,
});

const FEW = tenant("few", { standing: "starved", waiting: 2, share: 0.05, fair: 0.5, oldest: 3.4 });
const CROWD = tenant("crowd", { standing: "flooding", waiting: 48, share: 0.95, fair: 0.5, oldest: 9 });

test("the first line says who is starved, by how much, and that the policy promises nothing", () => {
  const [first, second, third] = headlines(pool([FEW, CROWD]), {});
  assert.equal(first!.text, "[[few]] is starved: it wants more, and got 5% of the last minute where 50% would be fair. Its first request has waited 3.4 s.");
  assert.equal(second!.key, "headline_no_promise");
  assert.equal(third!.text, "[[crowd]] floods the queue: 48 of 50 waiting requests are its own, and it gets 95% where 50% would be fair.");
});

test("who was starved in the last minute is said though nothing waits at this moment", () => {
  const found = headlines(pool([{ ...FEW, waiting: 0, oldest: null }]), {});
  assert.deepEqual(found.map((each) => each.key), ["headline_starved_before", "headline_no_promise"]);
});

test("a flood that harms nobody is told with how long the others wait", () => {
  const harmless = { ...CROWD, share: 0.8, fair: 0.8 };
  const found = headlines(pool([harmless]), { crowd: 9e9, few: 2.6e8, more: 1e8 });
  assert.deepEqual(found.map((each) => each.key), ["headline_flooding", "headline_others"]);
  assert.match(found[1]!.text, /longer than 260 ms/);
});

test("upstreams come before tenants: without one nobody is served", () => {
  const down = { pool: "p", name: "gpu-0", slots: 4, inflight: 0, healthy: false, draining: false, queue: null };
  assert.deepEqual(headlines(pool([tenant("a", { waiting: 3, standing: "fair" })], { upstreams: [down] }), {}).map((each) => each.key), ["headline_no_upstream"]);
  assert.equal(headlines(pool([], { upstreams: [down, { ...down, name: "gpu-1", healthy: true }] }), {})[0]!.key, "headline_upstream_down");
});

test("when all is well it says so", () => {
  assert.deepEqual(headlines(pool([]), {}).map((each) => each.key), ["headline_calm"]);
  assert.deepEqual(headlines(pool([tenant("a", { waiting: 3, standing: "fair" })]), {}).map((each) => each.key), ["headline_fair"]);
});

const FOUND: Explanation = {
  id: "r9", pool: "p", policy: "sfq", tenant: "crowd", model: "m", arrival: 1e9, wall: 0, position: 45, rivals: 1, lead: 22, waited: { "own queue": 3_003_000_000, "slots taken": 27_600_000 },
  served: [{ tenant: "crowd", requests: 44, charge: 4156, first: 0, last: 0 }], steps: [], left_out: 0,
  own: [{ is: "Dispatch", seq: 7, time: 4_030_600_000, id: "r9", tenant: "crowd", upstream: "gpu-0", estimate: 108, charge: 108, input_tokens: 80, output_tokens: 14, why: { code: "least-meter", values: { meter: 96 * 2 ** 20, virtual_time: 10 * 2 ** 20 } } }],
  first_byte: 62_400_000, generation: 393_700_000, delivery: 237_000, outcome: "completed", status: 200, finish: "length", estimate: 108, charge: 108, actual: 111,
  usage: { prompt: 83, cached: 80, completion: 14 }, attempts: 1, total: 3_487_000_000, lives: 1, truncated: false, interrupted: "", notes: [],
};

test("one sentence answers why it waited", () => {
  assert.equal(answer(FOUND), "It waited [[3.03 s]]: 3 s of it because all slots were taken, and earlier requests of crowd itself were before it (44 when it came). What made it wait is the order of dispatch.");
  assert.equal(answer({ ...FOUND, waited: {} }), "It did not have to wait.");
  assert.match(answer({ ...FOUND, waited: { paused: 2e9 } }), /because crowd was paused. What made it wait is a limit of its tenant\./);
  assert.match(answer({ ...FOUND, waited: { "no upstream": 2e9 } }), /What made it wait is the upstreams\./);
  assert.match(answer({ ...FOUND, own: [], outcome: null }), /^It still waits, for/);
  assert.equal(answer({ ...FOUND, position: 0, outcome: "refused-queue-full", status: 429, own: [], waited: {} }), "It never queued: refused: queue full, status 429.");
});

test("the parts of its life add up, without crumbs", () => {
  assert.deepEqual(parts(FOUND).map((part) => part.kind), ["own queue", "slots taken", "first_byte", "generation"]);
});

test("the deciding number is how far its meter was ahead", () => {
  assert.ok(details(FOUND).some((line) => line.includes("Its meter was the least, [[86]] ahead of V.")));
});

test("all of it is said in Japanese too", () => {
  lang.value = "ja";
  try {
    for (const line of [answer(FOUND), ...details(FOUND), ...parts(FOUND).map((part) => part.text), ...headlines(pool([FEW, CROWD]), {}).map((each) => each.text), outcome("failed-midstream")]) assert.match(line, /[぀-ヿ一-鿿]/);
    assert.equal(span(3_030_000_000), "3.03 秒");
  } finally {
    lang.value = "en";
  }
});

test("times are told in the unit that they are read in", () => {
  assert.deepEqual([0, 900, 250_000, 2_500_000, 260_000_000, 3_487_000_000, 61_000_000_000].map(span), ["0 ms", "1 µs", "250 µs", "2.5 ms", "260 ms", "3.49 s", "61 s"]);
});
