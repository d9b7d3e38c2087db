import { t } from "../lib/i18n";

const most = 64;

/** visible returns text without characters that could hide or reorder others: controls, and marks of direction,
 * become visible. */
export const visible = (text: string): string =>
  // eslint-disable-next-line no-control-regex
  text.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]/g, "\ufffd");

/** cut returns the start of a long text, in whole characters. */
export function cut(text: string, n = most): string {
  const chars = [...text.slice(0, 2 * n + 2)];
  return chars.length > n ? chars.slice(0, n - 1).join("") + "…" : text;
}

/** Key shows text that clients have sent, such as a key: apart from the text around it, cut if it is long, and with
 * the whole text as a title. */
export function Key({ text, n = most, href }: { text: string; n?: number; href?: string }) {
  const shown = text === "" ? t("key.all") : visible(text);
  const short = cut(shown, n);
  const inner = (
    <bdi class="key" title={short === shown ? undefined : cut(shown, 2000)}>
      {short}
    </bdi>
  );
  return href ? <a href={href}>{inner}</a> : inner;
}
