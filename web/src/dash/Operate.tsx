// Changes, for who holds the token: each is asked about first.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Failure } from "../api.types";
import { t } from "../i18n";

export const token = signal("");

interface Wanted {
  text: string;
  to: string;
  body: unknown;
}

const wanted = signal<Wanted | null>(null);

export function ask(text: string, to: string, body: unknown): void {
  wanted.value = { text, to, body };
}

/** The question, and what became of it. */
export function Confirm() {
  const box = useRef<HTMLDialogElement>(null);
  const [told, setTold] = useState("");
  const now = wanted.value;
  useEffect(() => {
    if (now && !box.current?.open) box.current?.showModal();
  }, [now]);
  const close = () => {
    box.current?.close();
    wanted.value = null;
  };
  const act = async () => {
    if (!now) return;
    try {
      const answer = await fetch(now.to, { method: "PATCH", headers: { "content-type": "application/json", authorization: `Bearer ${token.value}` }, body: JSON.stringify(now.body) });
      if (!answer.ok) throw new Error(((await answer.json()) as Failure).error.message);
      setTold(t("dashDone"));
    } catch (error) {
      setTold(t("dashFailed", { why: (error as Error).message }));
    }
    close();
    setTimeout(() => setTold(""), 8000);
  };
  return (
    <>
      <dialog ref={box} onCancel={close} aria-label={t("dashAdmin")}>
        <p>{now?.text}</p>
        <p class="dialog-buttons"><button type="button" class="main" onClick={act}>{t("dashYes")}</button><button type="button" onClick={close}>{t("dashNo")}</button></p>
      </dialog>
      <p role="status" class={told ? "operated" : "hidden"}>{told}</p>
    </>
  );
}

export function Token() {
  return (
    <form class="token" onSubmit={(event) => event.preventDefault()}>
      <label title={t("dashTokenNote")}>{t("dashToken")}{" "}
        <input type="password" autocomplete="off" size={16} value={token.value} onInput={(event) => (token.value = event.currentTarget.value)} />
      </label>
    </form>
  );
}
