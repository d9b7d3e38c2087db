// The manual's site. The pages read well on GitHub too: what only the site has, such as
// the sidebar and the way from README.md to index.html, is here and not in the pages.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type DefaultTheme } from "vitepress";
import { withMermaid } from "vitepress-plugin-mermaid";

import { checkLinks, slug } from "./links.mts";

const docs = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const source = "https://github.com/weirhq/weir/blob/main/";

/** The guides by what their readers do: find a limit, call weir, run the service. */
const guides = [
  ...["backtests", "testing-rules"],
  ...["middleware", "go-redis", "clients", "proxies", "envoy", "retries", "rolling"],
  ...["page", "security", "namespaces", "deployment", "kubernetes", "monitoring", "sizing", "durable", "redis", "postgres", "personal-data"],
];

/** The parts of the manual, in the order in which the sidebar and "next page" have them. */
const parts: { title: string; zh: string; pages: string[] }[] = [
  { title: "Start", zh: "入门", pages: pagesOf("start", ["install", "deployments", "tutorial", "concepts", "glossary", "faq"]) },
  { title: "Guides", zh: "指南", pages: pagesOf("guides", guides) },
  { title: "Recipes", zh: "实例", pages: pagesOf("recipes", []) },
  { title: "Coming from another limiter", zh: "从其他限流器迁移", pages: pagesOf("from", ["README"]) },
  { title: "Reference", zh: "参考", pages: pagesOf("reference", ["rules", "flags", "commands", "http", "openapi", "grpc", "resp"]) },
  { title: "Explanation", zh: "原理", pages: pagesOf("explanation", ["windows", "accuracy", "leases", "outages", "testing"]) },
  { title: "Decisions", zh: "决策记录", pages: pagesOf("decisions", ["README"]) },
];

/** pagesOf returns the pages of a folder, in both languages: those of first, and then all others by name. */
function pagesOf(folder: string, first: string[]): string[] {
  const folders = [folder, join("zh", folder)].map((f) => join(docs, f)).filter((f) => existsSync(f));
  const files = folders.flatMap((f) => readdirSync(f)).filter((f) => f.endsWith(".md") && !f.startsWith("0000"));
  const names = [...new Set(files.map((f) => f.slice(0, -3)))].sort();
  const ordered = [...first, ...names.filter((n) => !first.includes(n))];
  return ordered.map((n) => `${folder}/${n}`);
}

function sidebar(root: string): DefaultTheme.SidebarItem[] {
  return parts
    .map(({ title, zh, pages }) => ({
      text: root ? zh : title,
      collapsed: title === "Decisions" || title === "Recipes" || title.startsWith("Coming"),
      items: pages.filter((p) => existsSync(join(docs, root, p + ".md"))).map((p) => ({ text: heading(join(root, p + ".md")), link: address(join(root, p)) })),
    }))
    .filter(({ items }) => items.length > 0);
}

function address(page: string): string {
  return "/" + page.replace(/README$/, "");
}

/** heading returns the title of a page: its first heading, without code marks. */
function heading(page: string): string {
  return /^# (.*)$/m.exec(readFileSync(join(docs, page), "utf8"))![1].replaceAll("`", "");
}

/** outside turns a link from a page to a file outside the manual into one to its source. */
function outside(page: string, target: string): string {
  if (/^([a-z]+:|#|\/)/.test(target)) return target;
  const [path, anchor] = target.split("#");
  const file = normalize(join(dirname(page), path));
  const inManual = !file.startsWith("..") && (file.endsWith(".md") || file.startsWith("images/"));
  if (inManual) return target.replace("README.md", "index.md"); // as rewrites below
  return source + relative(dirname(docs), join(docs, file)) + (anchor ? "#" + anchor : "");
}

/** icon is water behind a wall, and what passes. */
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#58a6ff" d="M0 4h7v12H0zM9 12h7v4H9z"/><path fill="#6e7781" d="M7 2h2v14H7z"/></svg>`;

/** words splits text for the search: Chinese has no spaces between its words. Browsers get its source, so it names nothing outside. */
function words(text: string): string[] {
  const segments = new Intl.Segmenter("zh", { granularity: "word" }).segment(text);
  return [...segments].filter((s) => s.isWordLike).map((s) => s.segment);
}

export default withMermaid(
  defineConfig({
    title: "weir",
    description: "Exact rate limits, quotas and lockouts: a Go library, a service and a command line",
    mermaid: { theme: "neutral" }, // in a dark page it is "dark"
    base: process.env.WEIR_DOCS_BASE ?? "/",
    head: [["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
    cleanUrls: true,
    lastUpdated: false,
    rewrites: { "README.md": "index.md", ":part/README.md": ":part/index.md", "zh/README.md": "zh/index.md", "zh/:part/README.md": "zh/:part/index.md" },
    buildEnd: ({ outDir, site }) => {
      checkLinks(outDir, site.base);
      new Function(`return ${words}`)()("a probe"); // as browsers get it
    },
    markdown: {
      anchor: { slugify: slug },
      languageAlias: { apacheconf: "apache", caddyfile: "nginx", haproxy: "nginx" },
      config(md) {
        md.core.ruler.push("outside", ({ tokens, env }) => {
          for (const token of tokens.flatMap((t) => t.children ?? [])) {
            const href = token.type === "link_open" ? token.attrGet("href") : null;
            if (href) token.attrSet("href", outside(env.relativePath.replace(/index\.md$/, "README.md"), href));
          }
        });
      },
    },
    themeConfig: {
      outline: [2, 3],
      search: {
        provider: "local",
        options: {
          miniSearch: { options: { tokenize: words } },
          locales: { zh: { translations: { button: { buttonText: "搜索" }, modal: { noResultsText: "没有结果" } } } },
        },
      },
      socialLinks: [{ icon: "github", link: "https://github.com/weirhq/weir" }],
    },
    locales: {
      root: { label: "English", lang: "en", themeConfig: { sidebar: sidebar("") } },
      zh: {
        label: "简体中文",
        lang: "zh-CN",
        themeConfig: {
          sidebar: sidebar("zh"),
          outline: { level: [2, 3], label: "本页内容" },
          docFooter: { prev: "上一页", next: "下一页" },
          darkModeSwitchLabel: "主题",
          sidebarMenuLabel: "目录",
          returnToTopLabel: "回到顶部",
        },
      },
    },
  }),
);
