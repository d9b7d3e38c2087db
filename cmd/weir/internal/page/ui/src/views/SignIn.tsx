import { useRef, useState } from "preact/hooks";
import { Failure } from "../lib/api";
import { duration } from "../lib/format";
import { t } from "../lib/i18n";
import { signIn } from "../lib/session";
import { Notice, textOf } from "../parts/Notice";
import { Sentence } from "../parts/Sentence";

/** SignIn asks for a token. */
export function SignIn() {
  const field = useRef<HTMLInputElement>(null);
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      await signIn(field.current!.value.trim());
    } catch (error) {
      const p = error instanceof Failure ? error.problem : undefined;
      setFault(p?.status === 401 ? t("session.unknown") : p?.status === 429 ? t("session.slowed", { wait: duration(p.retryAfter ?? 60) }) : textOf(error));
      setBusy(false);
      field.current?.select();
    }
  };
  return (
    <form class="signin" onSubmit={(e) => void submit(e)}>
      <h1>{t("session.title")}</h1>
      <p>{t("session.why")}</p>
      <Sentence text="session.from" values={{ command: <code>weir token new</code> }} />
      {fault && <Notice kind="bad">{fault}</Notice>}
      <label class="field">
        {t("session.token")}
        <input ref={field} type="password" name="token" autocomplete="current-password" spellcheck={false} required autofocus aria-invalid={fault ? true : undefined} />
      </label>
      <button class="main" disabled={busy}>
        {t("session.in")}
      </button>
    </form>
  );
}
