import type { Rule } from "./words";

/** example returns attributes of a request that a rule matches, as far as its conditions are simple. */
export function example(r: Rule): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const condition of r.when ?? []) {
    const [, name, first, only] = /^(\S+) is (?:one of \[([^\s\]]+)|(?!(?:anything|missing|present)$)([^\s"]+)$)/.exec(condition) ?? [];
    const value = first ?? only;
    if (name && value) attributes[name] = value;
  }
  for (const name of r.per ?? []) attributes[name] ??= name === "ip" ? "203.0.113.1" : "42";
  return attributes;
}

const quote = (s: string) => "'" + s.replaceAll("'", `'\\''`) + "'";

/** shown returns a value as JSON in which no character is one that a terminal obeys or hides. */
const shown = (value: unknown) => JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => c.replace(/[^]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")));

/** curl returns the command that makes a call of the API. */
export function curl(api: string, path: string, body: unknown, tokens: boolean): string {
  const unix = /^unix:(.*)$/.exec(api)?.[1];
  const to = unix ? `--unix-socket ${quote(unix)} http://weir${path}` : api.replace(/\/\/(\[::\]|0\.0\.0\.0):/, "//localhost:") + path;
  return `curl ${to}${tokens ? ` -H "Authorization: Bearer $WEIR_TOKEN"` : ""} -d ${quote(shown(body))}`;
}
