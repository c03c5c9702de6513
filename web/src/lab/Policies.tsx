import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ParamView, PolicyView } from "../api.types";
import { coded, t } from "../i18n";
import { Box } from "./Box";
import { called, choice, parameter } from "./called";
import { Icon } from "./Transport";
import { MODES, USUAL } from "./modes";
import { catalogue, choose, mode, policies } from "./session";

const MOST = 8;

/** Which policies run side by side. The usual ones are switches; any other is one choice away. */
export function Policies() {
  const usual = USUAL[mode.value];
  const chosen = policies.value;
  const { layer } = MODES[mode.value];
  const others = catalogue.value.filter((policy) => policy.layers.includes(layer));
  const flip = (spec: string) => {
    const next = chosen.includes(spec) ? chosen.filter((each) => each !== spec) : [...chosen, spec];
    if (next.length && next.length <= MOST) choose(next);
  };
  const shown = [...usual, ...chosen.filter((spec) => !usual.includes(spec))];
  return (
    <section class="policies" hidden={!usual.length && !chosen.length} aria-label={t("policies")}>
      <h2>{t("policies")}</h2>
      <div class="pills">
        {shown.map((spec) => (
          <button key={spec} type="button" class="pill" aria-pressed={chosen.includes(spec)} title={`${spec}: ${coded("policy", nameOf(spec), "policy_other")}`} onClick={() => flip(spec)}>{called(spec, layer)}</button>
        ))}
        <label class="pill add">
          <span class="hidden">{t("policiesMore")}</span>
          <select value="" disabled={chosen.length >= MOST} onChange={(event) => { const name = event.currentTarget.value; event.currentTarget.value = ""; if (name && !chosen.includes(name)) choose([...chosen, name]); }}>
            <option value="">+ {t("policiesMore")}</option>
            {others.map((policy) => <option key={policy.name} value={policy.name}>{called(policy.name, layer)}</option>)}
          </select>
        </label>
      </div>
      <div class="parameters">
        {chosen.map((spec, index) => {
          const policy = catalogue.value.find((each) => each.name === nameOf(spec));
          const [own, placement] = parts(spec);
          const put = (to: string) => choose(chosen.map((each, at) => (at === index ? to : each)));
          return policy && (policy.params.length || placement) ? (
            <Parameters key={`${index}${policy.name}`} spec={own} policy={policy} change={(to) => put(placement ? `${to} @${placement}` : to)}>
              {placement && <span class="parameter">@ <Box whole={false} size={24} value={placement} label={t("placementOf", { name: policy.name })} at={["placement"]} put={(to) => put(to ? `${own} @${to}` : own)} /></span>}
            </Parameters>
          ) : null;
        })}
      </div>
    </section>
  );
}

/** POLICY @PLACEMENT in a fleet, else the policy alone. */
function parts(spec: string): [string, string] {
  const at = spec.indexOf(" @");
  return at < 0 ? [spec, ""] : [spec.slice(0, at), spec.slice(at + 2)];
}

const nameOf = (spec: string) => parts(spec)[0].split(":")[0]!;

export function parametersOf(spec: string): Record<string, string> {
  const rest = spec.slice(spec.indexOf(":") + 1);
  if (!spec.includes(":")) return {};
  return Object.fromEntries(rest.split(",").filter(Boolean).map((item) => [item.split("=")[0]!.replaceAll("-", "_"), item.slice(item.indexOf("=") + 1)]));
}

function Parameters({ spec, policy, change, children }: { spec: string; policy: PolicyView; change: (spec: string) => void; children?: ComponentChildren }) {
  const { layer } = MODES[mode.value];
  const given = parametersOf(spec);
  const main = policy.params.find((param) => param.name in given) ?? policy.params.find((param) => param.name === "quantum") ?? policy.params[0];
  const [open, setOpen] = useState(false);
  const put = (name: string, value: string) => {
    const next = { ...given, [name]: value };
    const param = policy.params.find((each) => each.name === name)!;
    if (value === String(param.default)) delete next[name];
    const text = Object.entries(next).map(([key, each]) => `${key}=${each}`).join(",");
    change(text ? `${policy.name}:${text}` : policy.name);
  };
  const field = (param: ParamView) => <Parameter key={param.name} param={param} value={given[param.name] ?? String(param.default)} put={(value) => put(param.name, value)} name={parameter(policy.name, param.name)} label={`${called(policy.name, layer)}: ${parameter(policy.name, param.name)}`} />;
  return (
    <fieldset class="parameter-set">
      <legend>{called(spec, layer)}</legend>
      {main && field(main)}
      {open && policy.params.filter((param) => param !== main).map(field)}
      {children}
      {policy.params.length > 1 && (
        <button type="button" class="plain small" aria-expanded={open} aria-label={t("policyParameters", { name: policy.name })} onClick={() => setOpen(!open)}><Icon d={open ? "M5 12h14" : "M5 12h14M12 5v14"} /></button>
      )}
    </fieldset>
  );
}

function Parameter({ param, value, put, name, label }: { param: ParamView; value: string; put: (value: string) => void; name: string; label: string }) {
  if (param.kind === "switch")
    return <label class="parameter"><input type="checkbox" checked={["true", "True", "on"].includes(value)} aria-label={label} onChange={(event) => put(event.currentTarget.checked ? "true" : "false")} />{name}</label>;
  if (param.choices.length)
    return <label class="parameter">{name}<select value={value} aria-label={label} onChange={(event) => put(event.currentTarget.value)}>{param.choices.map((each) => <option key={each} value={each}>{choice(each)}</option>)}</select></label>;
  return (
    <label class="parameter">{name}
      <Box whole={param.kind === "integer"} least={param.low ?? undefined} most={param.high ?? undefined} value={value} label={label} put={put} />
    </label>
  );
}
