import { computed, signal } from "@preact/signals";
import { api, Failure, signedOut, type Problem } from "./api";
import { keep, kept } from "./kept";

export type Scope = "decide" | "record" | "read" | "override" | "admin";

/** Session is who reads the page, as /page/session says. */
export interface Session {
  version: string;
  tokens: boolean;
  signed_in: boolean;
  name?: string;
  scopes: Scope[];
  namespace?: string;
  write: boolean;
  api: string; // the address of the API
  since: number; // when the service began
  namespaces: string[];
}

/** session is undefined until the service has answered. */
export const session = signal<Session | undefined>(undefined);

/** unreachable is why it is not known who reads. */
export const unreachable = signal<Problem | undefined>(undefined);

/** may reports whether the reader may do what needs a scope. Without tokens the page only reads. */
export function may(scope: Scope): boolean {
  const s = session.value;
  if (!s?.signed_in) return false;
  return s.scopes.includes(scope) && (s.tokens || scope === "read" || scope === "decide");
}

/** mayWrite reports whether the reader may save rules. */
export const mayWrite = computed(() => session.value?.write ?? false);

/** known reports whether the reader was signed in the last time, so that a view can ask for its numbers at once. */
export const known = (): boolean => kept("known") === "1";

function remember(s: Session): void {
  session.value = s;
  keep("known", s.signed_in ? "1" : "0");
}

export async function load(): Promise<void> {
  try {
    remember(await api<Session>("page/session", { ns: "" }));
    unreachable.value = undefined;
  } catch (e) {
    unreachable.value = e instanceof Failure ? e.problem : { status: 0, detail: String(e) };
  }
}

export async function signIn(token: string): Promise<void> {
  remember(await api<Session>("page/session", { method: "POST", body: { token }, ns: "" }));
}

export async function signOut(): Promise<void> {
  await api<void>("page/session", { method: "DELETE", ns: "" });
  await load();
}

signedOut.call = () => {
  if (session.value?.signed_in) void load();
};
