// What came of it. Values appear when the clock has reached them.
import type { Answer, RunView } from "../api.types";
import { list, t } from "../i18n";
import { num, show } from "../numbers";
import { lang } from "../settings";
import { called } from "./called";
import { Dot } from "./colours";
import { entities, indexOf, largest, once, recent, sums, upTo } from "./runs";

interface Props {
  answer: Answer;
  run: RunView;
  place: number;
}

const say = (value: unknown) => show(value, lang.value, 2);

export function Measures(props: Props) {
  switch (props.answer.layer) {
    case "cpu":
      return (props.run.result["jobs"] ? <Periodic {...props} /> : <Cpu {...props} />);
    case "router":
      return <Router {...props} />;
    case "link":
      return <Link {...props} />;
    case "engine":
    case "fleet":
      return <Engine {...props} />;
    case "ledger":
      return <Ledger {...props} />;
    default:
      return <Cluster {...props} />;
  }
}

function Cpu({ answer, run, place }: Props) {
  const at = num(run.steps[place]?.time ?? 0);
  const tasks = (run.result["tasks"] as Record<string, any>[]).slice(0, 24);
  const names = entities(answer);
  const all = tasks.every((task) => task["completion"] !== null && task["completion"] <= at) && at > 0;
  const keys = ["completion", "turnaround", "waiting", "response"] as const;
  const lock = run.result["deadlock"] as Record<string, any> | undefined;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${t("metrics")}: ${called(run.spec, answer.layer)}`}>
      <Received answer={answer} run={run} at={at} />
      <table class="measures">
        <caption>{t("metrics")} {!all && <span class="quiet">{t("metricsLater")}</span>}</caption>
        <thead><tr><th scope="col">{t("task")}</th>{keys.map((key) => <th key={key} scope="col">{t(key)}</th>)}</tr></thead>
        <tbody>
          {tasks.map((task) => {
            const seen = task["completion"] !== null && task["completion"] <= at;
            return (
              <tr key={task["id"]} data-task={task["id"]}>
                <th scope="row"><Dot index={indexOf(names, task["id"])} />{task["id"]}</th>
                {keys.map((key) => <td key={key}>{seen ? say(task[key]) : "–"}</td>)}
              </tr>
            );
          })}
        </tbody>
        <tfoot>
          <tr data-task="mean"><th scope="row">{t("mean")}</th><td /><td>{all ? say(run.result["mean"].turnaround) : "–"}</td><td>{all ? say(run.result["mean"].waiting) : "–"}</td><td>{all ? say(run.result["mean"].response) : "–"}</td></tr>
        </tfoot>
      </table>
      {lock && lock["time"] <= at && <p class="alert">{t("deadlockAt", { time: lock["time"], names: list(lock["cycle"].map((each: Record<string, string>) => each["task"])) })}</p>}
    </div>
  );
}

/** Ticks until `at` that a task ran. */
const ranOf = once((run: RunView) => {
  const found = new Map<string, [number, number][]>();
  for (const slice of run.result["timeline"] as Record<string, any>[])
    if (slice["task"] !== null && slice["state"] === "run") found.set(slice["task"], [...(found.get(slice["task"]) ?? []), [slice["start"], slice["end"]]]);
  return found;
});

/** Of tasks with different weights, or under a policy of shares: received against entitled. */
function Received({ answer, run, at }: { answer: Answer; run: RunView; at: number }) {
  const entitled = run.result["entitled"] as { from: number; to: number; shares: Record<string, number> }[] | undefined;
  const tasks = answer.scenario["tasks"] as Record<string, any>[];
  if (!entitled || tasks.length > 12 || !(SHARES.has(run.policy) || tasks.some((task) => task["weight"] !== undefined || task["nice"] !== undefined))) return null;
  const rows = tasks.map((task, index) => {
    const name = String(task["id"]);
    const received = (ranOf(run).get(name) ?? []).reduce((sum, [start, end]) => sum + Math.max(0, Math.min(end, at) - start), 0);
    const fair = entitled.reduce((sum, one) => sum + (one.shares[name] ?? 0) * Math.max(0, Math.min(one.to, at) - one.from), 0);
    return { name, index, received, fair };
  });
  const most = Math.max(1, ...rows.map((row) => Math.max(row.received, row.fair)));
  return (
    <div class="bars received">
      <h4>{t("received")}</h4>
      {rows.map((row) => (
        <div key={row.name} class="bar-row" data-received={row.name}>
          <span class="bar-name"><Dot index={row.index} />{row.name}</span>
          <span class="bar-box"><span class={`bar tone-${row.index % 6}`} style={{ width: `${(100 * row.received) / most}%` }} /><span class="bar-line" style={{ left: `${(100 * row.fair) / most}%` }} /></span>
          <output>{t("receivedOf", { received: say(row.received), entitled: show(row.fair, lang.value, 1) })}</output>
        </div>
      ))}
    </div>
  );
}

const SHARES = new Set(["lottery", "stride", "cfs", "eevdf"]);

function Periodic({ answer, run, place }: Props) {
  const at = num(run.steps[place]?.time ?? 0);
  const jobs = run.result["jobs"] as Record<string, any>[];
  return (
    <table class="measures">
      <caption>{t("metrics")}</caption>
      <thead><tr><th scope="col">{t("task")}</th><th scope="col">{t("jobs")}</th><th scope="col">{t("misses")}</th><th scope="col">{t("worst")}</th></tr></thead>
      <tbody>
        {entities(answer).map((name, index) => {
          const own = jobs.filter((job) => job["task"] === name);
          const over = own.filter((job) => job["completion"] !== null && job["completion"] <= at);
          const missed = own.filter((job) => job["missed"] && job["deadline"] <= at).length;
          return (
            <tr key={name} data-task={name}>
              <th scope="row"><Dot index={index} />{name}</th><td>{over.length}</td>
              <td class={missed ? "bad" : ""}>{missed}</td><td>{over.length ? say(Math.max(...over.map((job) => job["response"]))) : "–"}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const mostServed = once((run: RunView) => largest(run.steps, (step) => Object.values((step.what["fairness"]?.service ?? {}) as object), 1e-9));

/** The last ones of an order; whose each was. */
function Sequence({ run, kind, who, place, names }: { run: RunView; kind: string; who: string; place: number; names: string[] }) {
  const { steps, count } = recent(run, kind, place, 48);
  const all = steps.map((step) => String(step.what[who]));
  return (
    <p class="sequence" data-order={all.join("")}>
      {count > all.length && <span class="quiet">{count - all.length} …</span>}
      {all.map((name, index) => <span key={index} class={`letter tone-${indexOf(names, name) % 6}`}>{name}</span>)}
      {!count && <span class="quiet">{t("notYet")}</span>}
    </p>
  );
}

function Router({ answer, run, place }: Props) {
  const names = entities(answer);
  const step = run.steps[place];
  const fairness = (step?.what["fairness"] ?? null) as { since: number; service: Record<string, string>; jain: number | null } | null;
  const before = run.steps[place - 1]?.what["fairness"] as { since: number } | undefined;
  const most = mostServed(run);
  const drained = step && place === run.steps.length - 1;
  return (
    <div class="measures">
      <h4>{t("order")}</h4>
      <Sequence run={run} kind="dispatch" who="tenant" place={place} names={names} />
      <h4>{t("served")}</h4>
      {fairness && Object.keys(fairness.service).length < 2 ? (
        <p class="quiet">{drained ? t("drained") : t("servedAlone", { name: list(Object.keys(fairness.service)) })}</p>
      ) : fairness ? (
        <div class="bars" data-jain={fairness.jain ?? ""}>
          {Object.entries(fairness.service).map(([name, service]) => (
            <div key={name} class="bar-row" data-served={name}>
              <span class="bar-name"><Dot index={indexOf(names, name)} />{name}</span>
              <span class="bar-box"><span class={`bar tone-${indexOf(names, name) % 6}`} style={{ width: `${(100 * num(service)) / most}%` }} /></span>
              <output>{say(service)}</output>
            </div>
          ))}
          <p class="scalar"><span>{t("jain")}</span><output>{fairness.jain === null ? "–" : show(fairness.jain, lang.value, 3)}</output></p>
          <p class="quiet">{before && before.since !== fairness.since ? t("baseline", { since: fairness.since }) : t("servedCaption", { names: list(Object.keys(fairness.service)), since: fairness.since })}</p>
          {drained && <p class="quiet">{t("drained")}</p>}
        </div>
      ) : (
        <p class="quiet">{t("notYet")}</p>
      )}
    </div>
  );
}

const delaysOf = once((run: RunView) => sums(run.result["departures"] as Record<string, any>[], "flow", (one) => num(one["finish"]), [(one) => num(one["finish"]) - num(one["arrival"]), (one) => one["size"]]));

function Link({ answer, run, place }: Props) {
  const at = num(run.steps[place]?.time ?? 0);
  return (
    <table class="measures">
      <caption>{t("metrics")}</caption>
      <thead><tr><th scope="col">{t("flow")}</th><th scope="col">{t("packets")}</th><th scope="col">{t("sent")}</th><th scope="col">{t("meanDelay")}</th><th scope="col">{t("maxDelay")}</th></tr></thead>
      <tbody>
        {entities(answer).slice(0, 24).map((name, index) => {
          const own = delaysOf(run).get(name);
          const count = own ? upTo(own.moments, at) : 0;
          return (
            <tr key={name} data-flow={name}>
              <th scope="row"><Dot index={index} />{name}</th><td>{count}</td><td>{say(count ? own!.totals[1]![count - 1] : 0)}</td>
              <td>{count ? say(own!.totals[0]![count - 1]! / count) : "–"}</td><td>{count ? say(own!.highest[count - 1]) : "–"}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Cluster({ answer, run, place }: Props) {
  return (
    <div class="measures">
      <h4>{t("order")}</h4>
      <Sequence run={run} kind="start" who="user" place={place} names={entities(answer)} />
    </div>
  );
}

const jobsOf = (run: RunView) => run.result["jobs"] as Record<string, any>[];
const moment = (key: string) => (job: Record<string, any>) => job[key] ?? NaN;
const begun = once((run: RunView) => sums(jobsOf(run), "client", moment("first_token"), [(job) => job["first_token"] - job["arrival"]]));
const over = once((run: RunView) => sums(jobsOf(run), "client", moment("finish"), [(job) => (job["first_token"] === null ? 0 : job["input_tokens"] + job["output_tokens"])]));

function Engine({ answer, run, place }: Props) {
  const at = num(run.steps[place]?.time ?? 0) * 1e9 + 1;
  return (
    <table class="measures">
      <caption>{t("metrics")}</caption>
      <thead><tr><th scope="col">{t("client")}</th><th scope="col">{t("jobs")}</th><th scope="col">{t("tokensServed")}</th><th scope="col">{t("meanTtft")}</th></tr></thead>
      <tbody>
        {entities(answer).slice(0, 24).map((name, index) => {
          const [first, last] = [begun(run).get(name), over(run).get(name)];
          const [started, ended] = [first ? upTo(first.moments, at) : 0, last ? upTo(last.moments, at) : 0];
          return (
            <tr key={name} data-client={name}>
              <th scope="row"><Dot index={index} />{name}</th><td>{ended}</td><td>{say(ended ? last!.totals[0]![ended - 1] : 0)}</td>
              <td>{started ? t("dashSeconds", { n: say(first!.totals[0]![started - 1]! / started / 1e9) }) : "–"}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const requestsOf = (run: RunView) => run.result["requests"] as Record<string, any>[];
const sentOf = once((run: RunView) => sums(requestsOf(run), "tenant", moment("dispatched"), [(one) => one["wait"], (one) => one["charge"]]));

/** What each tenant was given so far, and how long it waited for it. */
function Ledger({ answer, run, place }: Props) {
  const at = num(run.steps[place]?.time ?? 0) + 1e-6;
  const weights = new Map((answer.scenario["tenants"] as Record<string, any>[]).map((one) => [one["id"] as string, one["weight"] as string]));
  const rows = entities(answer).map((name, index) => {
    const own = sentOf(run).get(name);
    const count = own ? upTo(own.moments, at) : 0;
    const charged = count ? own!.totals[1]![count - 1]! : 0;
    return { name, index, count, charged, normalized: charged / num(weights.get(name) ?? 1), mean: count ? own!.totals[0]![count - 1]! / count : null, longest: count ? own!.highest[count - 1]! : null };
  });
  const seconds = (value: number | null) => (value === null ? "–" : t("dashSeconds", { n: say(value) }));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${t("metrics")}: ${called(run.spec, answer.layer)}`}>
      <table class="measures">
        <caption>{t("soFar")}</caption>
        <thead><tr><th scope="col">{t("tenant")}</th><th scope="col">{t("weight")}</th><th scope="col">{t("jobs")}</th><th scope="col">{t("perWeight")}</th><th scope="col">{t("meanWait")}</th><th scope="col">{t("maxWait")}</th></tr></thead>
        <tbody>
          {rows.slice(0, 24).map((row) => (
            <tr key={row.name} data-tenant={row.name}>
              <th scope="row"><Dot index={row.index} />{row.name}</th><td>{weights.get(row.name)}</td><td>{row.count}</td><td>{say(row.normalized)}</td><td>{seconds(row.mean)}</td><td>{seconds(row.longest)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > 24 && <p class="quiet">… {rows.length}</p>}
    </div>
  );
}
