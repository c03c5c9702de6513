// Queues and remaining work, per layer.
import type { Answer, RunView } from "../api.types";
import { list, t } from "../i18n";
import { num, percent, show } from "../numbers";
import { lang } from "../settings";
import { Dot } from "./colours";
import { clientOf } from "./explain";
import { Chips } from "./Keeps";
import { entities, indexOf, largest, once } from "./runs";

interface Props {
  answer: Answer;
  run: RunView;
  place: number;
}

export function Work(props: Props) {
  if (props.answer.layer === "cpu") return <CpuWork {...props} />;
  if (props.answer.layer === "cluster") return <ClusterWork {...props} />;
  if (props.answer.layer === "engine" || props.answer.layer === "fleet") return <EngineWork {...props} />;
  if (props.answer.layer === "ledger") return <LedgerWork {...props} />;
  return <FlowWork {...props} />;
}

function CpuWork({ answer, run, place }: Props) {
  const step = run.steps[place];
  const names = entities(answer);
  const tasks = (answer.scenario["tasks"] ?? []) as Record<string, any>[];
  const single = tasks.length <= 12 && tasks.every((task) => task["burst"]);
  return (
    <div class="work">
      <Chips title={t("ready")} ids={step?.queues["ready"] ?? []} names={names} />
      {single && (
        <div class="bars">
          <h4>{t("remaining")}</h4>
          {tasks.map((task, index) => {
            const id = String(task["id"]);
            const left = step?.remaining[id] ?? 0;
            return (
              <div key={id} class="bar-row" data-left={id}>
                <span class="bar-name"><Dot index={index} />{id}</span>
                <span class="bar-box"><span class={`bar tone-${index % 6}`} style={{ width: `${(100 * left) / Math.max(...tasks.map((each) => each["burst"]))}%` }} /></span>
                <output>{left}</output>
              </div>
            );
          })}
        </div>
      )}
    </div>
  );
}

function FlowWork({ answer, run, place }: Props) {
  const step = run.steps[place];
  const names = entities(answer);
  return (
    <div class="work">
      <h4>{t(answer.layer === "link" ? "queuesOfSizes" : "queuesOfCosts")}</h4>
      <ul class="queues">
        {names.slice(0, 12).map((name, index) => {
          const waiting = step?.queues[name] ?? [];
          return (
            <li key={name} aria-label={t("queueOf", { name, n: waiting.length })}>
              <span class="bar-name"><Dot index={index} />{name}</span>
              <span class="jobs" aria-hidden="true">
                {waiting.slice(0, 16).map((id) => <span key={id} class={`job tone-${index % 6}`}>{show(step!.remaining[id], lang.value)}</span>)}
                {waiting.length > 16 && <span class="quiet">+{waiting.length - 16}</span>}
                {!waiting.length && <span class="quiet">{t("empty")}</span>}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

const mostWaiting = once((run: RunView) => largest(run.steps, (step) => Object.values(step.what["waiting"] as object), 1));

function EngineWork({ answer, run, place }: Props) {
  const step = run.steps[place];
  const names = entities(answer);
  const waiting = (step?.what["waiting"] ?? {}) as Record<string, number>;
  const most = mostWaiting(run);
  const held = (step?.what["held"] ?? {}) as Record<string, number>;
  const blocks = names.map((name) => Object.entries(held).reduce((sum, [id, count]) => sum + (clientOf(run, id) === name ? count : 0), 0));
  const all = blocks.reduce((a, b) => a + b, 0) + num(step?.what["free"] ?? 0);
  return (
    <div class="work">
      <h4>{t("queues")}</h4>
      {names.slice(0, 12).map((name, index) => (
        <div key={name} class="bar-row" data-waiting={name}>
          <span class="bar-name"><Dot index={index} />{name}</span>
          <span class="bar-box"><span class={`bar tone-${index % 6}`} style={{ width: `${(100 * (waiting[name] ?? 0)) / most}%` }} /></span>
          <output>{waiting[name] ?? 0}</output>
        </div>
      ))}
      {step?.what["engines"] && <Engines engines={step.what["engines"]} lit={step.what["engine"]} />}
      <h4>{t("kvCache")}</h4>
      <div class="bar-row" data-kv>
        <span class="bar-name">KV</span>
        <span class="bar-box tall">{blocks.map((count, index) => <span key={index} class={`bar stacked tone-${index % 6}`} style={{ width: `${(100 * count) / Math.max(all, 1)}%` }}>{count ? names[index] : ""}</span>)}</span>
        <output>{show((100 * (all - num(step?.what["free"] ?? 0))) / Math.max(all, 1), lang.value, 0)} %</output>
      </div>
      <p class="scalar"><span>{t("batchSize")}</span><output>{step?.running.length ?? 0}</output></p>
    </div>
  );
}

/** A fleet's engines, each with what waits at it and what runs in it. */
function Engines({ engines, lit }: { engines: Record<string, Record<string, number>>; lit: string }) {
  return (
    <table class="measures">
      <thead><tr><th scope="col">{t("engine")}</th><th scope="col">{t("stateWait")}</th><th scope="col">{t("batchSize")}</th><th scope="col">{t("kvCache")}</th></tr></thead>
      <tbody>
        {Object.entries(engines).map(([name, one]) => (
          <tr key={name} class={name === lit ? "lit" : ""} data-engine={name}><th scope="row">{name}</th><td>{one["waiting"]}</td><td>{one["running"]}</td><td>{percent(1 - one["free"]! / one["blocks"]!, lang.value)}</td></tr>
        ))}
      </tbody>
    </table>
  );
}

const most = once((run: RunView) => largest(run.steps, (step) => [...Object.values(step.what["waiting"] as object), ...Object.values(step.what["inflight"] as object)], 1));

/** Who waits and who is in flight, now. */
function LedgerWork({ answer, run, place }: Props) {
  const step = run.steps[place];
  const names = entities(answer);
  const [waiting, inflight] = [step?.what["waiting"] ?? {}, step?.what["inflight"] ?? {}] as Record<string, number>[];
  const shown = names.filter((name) => waiting![name] || inflight![name]);
  const row = (kind: string, counts: Record<string, number>, name: string) => (
    <div key={name} class="bar-row" data-bar={`${kind}.${name}`}>
      <span class="bar-name"><Dot index={names.indexOf(name)} />{name}</span>
      <span class="bar-box"><span class={`bar tone-${names.indexOf(name) % 6}`} style={{ width: `${(100 * (counts[name] ?? 0)) / most(run)}%` }} /></span>
      <output>{counts[name] ?? 0}</output>
    </div>
  );
  return (
    <div class="work">
      <div class="bars"><h4>{t("stateWait")}</h4>{shown.slice(0, 12).map((name) => row("waiting", waiting!, name))}{!shown.length && <p class="quiet">{t("empty")}</p>}</div>
      {shown.length > 0 && <div class="bars"><h4>{t("stateFlight")}</h4>{shown.slice(0, 12).map((name) => row("inflight", inflight!, name))}</div>}
      {shown.length > 12 && <p class="quiet">… {shown.length}</p>}
    </div>
  );
}

function ClusterWork({ answer, run, place }: Props) {
  const step = run.steps[place];
  const users = (answer.scenario["users"] ?? []) as Record<string, any>[];
  const capacity = answer.scenario["capacity"] as Record<string, number>;
  const names = users.map((user) => String(user["id"]));
  const tasks = new Map(names.map((name) => [name, 0]));
  for (const id of step?.running ?? []) tasks.set(names[indexOf(names, id)]!, (tasks.get(names[indexOf(names, id)]!) ?? 0) + 1);
  return (
    <div class="work">
      <h4>{t("toDrawn")}</h4>
      {Object.entries(capacity).map(([resource, all]) => {
        const held = users.map((user) => (tasks.get(String(user["id"])) ?? 0) * (user["demand"][resource] ?? 0));
        const used = held.reduce((a, b) => a + b, 0);
        return (
          <div key={resource} class="bar-row" data-resource={resource}>
            <span class="bar-name">{resource}</span>
            <span class="bar-box tall" role="img" aria-label={list(names.map((name, index) => `${name} ${held[index]}`))}>
              {held.map((amount, index) => <span key={index} class={`bar stacked tone-${index % 6}`} style={{ width: `${(100 * amount) / all}%` }}>{amount ? names[index] : ""}</span>)}
            </span>
            <output>{used} / {all}</output>
          </div>
        );
      })}
      <div class="bars">
        <h4>{t("dominantShare")}</h4>
        {names.map((name, index) => {
          const share = Math.max(0, ...Object.entries(capacity).map(([resource, all]) => ((tasks.get(name) ?? 0) * num(users[index]!["demand"][resource] ?? 0)) / all));
          return (
            <div key={name} class="bar-row" data-share={name}>
              <span class="bar-name"><Dot index={index} />{name}</span>
              <span class="bar-box"><span class={`bar tone-${index % 6}`} style={{ width: `${100 * share}%` }} /></span>
              <output>{percent(share, lang.value)}</output>
            </div>
          );
        })}
      </div>
    </div>
  );
}
