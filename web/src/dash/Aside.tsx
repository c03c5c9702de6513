import type { Happened, PoolView } from "../api.types";
import { list, t } from "../i18n";
import { show } from "../numbers";
import { lang } from "../settings";
import { outcome } from "./explained";
import { ask, token } from "./Operate";
import { changes } from "./stream";

const say = (value: number) => show(value, lang.value, 0);
const NAMED = 4; // weights told in one line

export function Upstreams({ view }: { view: PoolView }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("dashUpstreams")}>
      <table class="measures upstreams">
        <thead><tr><th scope="col">{t("dashUpstream")}</th><th scope="col">{t("dashInflight")}</th><th scope="col">{t("dashState")}</th><th scope="col">{t("dashQueue")}</th>{token.value && <td />}</tr></thead>
        <tbody>
          {view.upstreams.map((each) => (
            <tr key={each.name} data-upstream={each.name}>
              <th scope="row" class="wrap">{each.name}</th>
              <td>{say(each.inflight)} / {say(each.slots)}</td>
              <td><span class={`state state-${each.draining ? "paused" : each.healthy ? "fair" : "starved"}`}>{t(each.draining ? "dashDraining" : each.healthy ? "dashHealthy" : "dashDown")}</span></td>
              <td>{each.queue === null ? "–" : say(each.queue)}</td>
              {token.value && <td><button type="button" class="plain small" onClick={() => ask(t(each.draining ? "dashConfirmUndrain" : "dashConfirmDrain", { name: each.name }), `/api/upstreams/${each.pool}/${each.name}`, { draining: !each.draining })}>{t(each.draining ? "dashUndrain" : "dashDrain")}</button></td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Outcomes({ view }: { view: PoolView }) {
  const all = Object.entries(view.outcomes).sort(([, a], [, b]) => b - a);
  const most = Math.max(1, ...all.map(([, count]) => count));
  return (
    <div class="bars outcomes">
      {all.map(([code, count]) => (
        <div key={code} class="bar-row" data-outcome={code} title={code}><span class="bar-name">{outcome(code)}</span><span class="bar-box"><span class="bar neutral" style={{ width: `${(100 * count) / most}%` }} /></span><output>{say(count)}</output></div>
      ))}
      {!all.length && <p class="quiet">{t("notYet")}</p>}
    </div>
  );
}

/** What operators and upstreams changed lately: each is a line of the ledger. */
export function Changes({ view }: { view: PoolView }) {
  const own = changes.value.filter((each) => each.pool === view.name);
  return (
    <ul class="changes">
      {own.map((each) => <li key={each.line.seq}><time>{new Date(each.wall * 1000).toLocaleTimeString(lang.value)}</time> {change(each)}</li>)}
      {!own.length && <li class="quiet">{t("dashChangesNone")}</li>}
    </ul>
  );
}

function change({ line }: Happened): string {
  switch (line.is) {
    case "Paused": return t("change_paused", { name: line.tenant });
    case "Resumed": return t("change_resumed", { name: line.tenant });
    case "UpstreamRemoved": return t("change_removed", { name: line.upstream });
    case "UpstreamChanged": {
      const values = { name: line.upstream, slots: say(line.slots) };
      return t(line.draining ? "change_draining" : line.healthy ? "change_up" : "change_down", values);
    }
    case "Reconfigured": {
      const weights = line.flows.slice(0, NAMED).map((flow) => `${flow.id} ${flow.weight ?? "1"}`);
      const rest = line.flows.length - weights.length;
      return t(line.by === "admin" ? "change_weights" : "change_file", { weights: weights.length ? list(weights) : "–", more: rest > 0 ? ` +${rest}` : "" });
    }
    case "Draining": return t("change_stopping");
    case "RecordingGap": return t("change_gap", { n: say(line.lost) });
    case "Shortened": return t("change_long", { bytes: say(line.bytes) });
    default: return line.is;
  }
}
