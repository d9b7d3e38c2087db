import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** slug is the anchor that GitHub gives to a heading, so that links hold in both places. */
export function slug(heading: string): string {
  return heading.trim().toLowerCase().replaceAll(/[^\p{L}\p{N}\- _]/gu, "").replaceAll(" ", "-");
}

/** checkLinks follows the links of each page of the built site, and fails with a list of those that lead nowhere. */
export function checkLinks(dist: string, base: string): void {
  const pages = new Map<string, { ids: Set<string>; links: string[] }>();
  for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".html"))) {
    const html = readFileSync(join(dist, file), "utf8");
    const main = html.slice(html.indexOf("<main"));
    const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((m) => decodeURIComponent(m[1]));
    pages.set(file, { ids: new Set(all(html, /\sid="([^"]+)"/g)), links: all(main, /<a\s[^>]*href="([^"]+)"/g) });
  }
  const dead: string[] = [];
  for (const [file, { links }] of pages) {
    for (const link of links) {
      if (/^[a-z]+:/.test(link)) continue;
      const [path, anchor] = link.split("#");
      const to = path === "" ? file : path.startsWith("/") ? path.slice(base.length) : join(dirname(file), path);
      const target = [to, to + ".html", join(to, "index.html")].find((p) => pages.has(p));
      if (!target ? !existsSync(join(dist, to)) : anchor && !pages.get(target)!.ids.has(anchor)) dead.push(`${file}: ${link}`);
    }
  }
  if (dead.length > 0 || pages.size < 10) throw new Error(`${pages.size} pages, dead links:\n${dead.join("\n")}`);
}
