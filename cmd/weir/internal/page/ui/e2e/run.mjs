// Runs the stories of the page in Chromium, against the program that WEIR names: npm run e2e, or with words of the
// names of stories: npm run e2e redis. With SHOTS, screenshots are kept in that folder.
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const weir = process.env.WEIR ?? "weir";
const shots = process.env.SHOTS;
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** Story is what a story needs: services, pages, and a look at what a page shows. Whatever it starts ends with it. */
class Story {
  #ends = [];
  faults = [];
  constructor(name, browser) {
    this.name = name;
    this.browser = browser;
    this.dir = mkdtempSync(join(tmpdir(), "weir-page-"));
    this.#ends.push(() => rmSync(this.dir, { recursive: true, force: true }));
  }

  /** file writes a file, and returns its path. */
  file(name, text) {
    writeFileSync(join(this.dir, name), text);
    return join(this.dir, name);
  }

  /** start runs a program until the story ends, or until its result is called. until is what it prints when it is ready. */
  async start(program, args, until, env = {}) {
    const child = spawn(program, args, { cwd: this.dir, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    const ended = new Promise((done) => child.on("exit", done).on("error", done));
    const stop = async (signal = "SIGTERM") => {
      child.kill(signal);
      await ended;
    };
    this.#ends.push(() => stop("SIGKILL"));
    const text = await new Promise((done, failed) => {
      let all = "";
      const read = (b) => until.test((all += b)) && done(all);
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      void ended.then(() => failed(new Error(`${program} ended: ${all}`)));
    });
    return { stop, text };
  }

  /** serve starts weir with rules, and with a token if it is given; its addresses are api and page. */
  async serve({ rules, token, args = [], at = ["127.0.0.1:0", "127.0.0.1:0"] } = {}) {
    const from = rules ? ["--rules", this.file("rules.yaml", rules)] : [];
    const { stop, text } = await this.start(weir, ["serve", "--listen", at[0], "--admin", at[1], ...from, ...args], /(?=[\s\S]*page: \S+\n)(?=[\s\S]*listening)/, token ? { WEIR_TOKEN: token } : {});
    const api = /weir listens on (\S+),/.exec(text)[1];
    const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
    const call = async (path, body) => (await fetch(api + path, { method: "POST", headers, body: JSON.stringify(body) })).json();
    return { stop, api, page: /page: (\S+)/.exec(text)[1], call, take: (attributes, hits) => call("/v1/take", { attributes, hits }) };
  }

  /** open opens a page, and signs in with a token if it is given. */
  async open(url, { token, phone = false, dark = false, zh = false } = {}) {
    const context = await this.browser.newContext({
      viewport: phone ? { width: 390, height: 844 } : { width: 1280, height: 900 }, isMobile: phone, hasTouch: phone, colorScheme: dark ? "dark" : "light", locale: zh ? "zh-CN" : "en-GB",
    });
    this.#ends.push(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.on("pageerror", (e) => this.faults.push(e.message));
    page.on("console", (m) => m.type() === "error" && !/Failed to load resource/.test(m.text()) && this.faults.push(m.text()));
    page.on("dialog", (d) => (this.faults.push("a dialog: " + d.message()), d.dismiss()));
    await page.goto(url);
    if (token) {
      await page.fill("input[name=token]", token);
      await page.press("input[name=token]", "Enter");
      await page.waitForSelector(".signin", { state: "detached" });
    }
    return page;
  }

  /** look checks what a page shows with axe-core, and keeps a screenshot. */
  async look(page, name) {
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    for (const v of found.violations) this.faults.push(`${name}: ${v.id}: ${v.nodes[0].html} ${v.nodes[0].failureSummary}`);
    // innerWidth grows on a phone with a page that is too wide.
    const wide = (await page.evaluate(() => document.documentElement.scrollWidth)) - page.viewportSize().width;
    if (wide > 0) this.faults.push(`${name}: the page is ${wide} pixels too wide`);
    if (shots) {
      mkdirSync(shots, { recursive: true });
      const tall = await page.evaluate(() => document.documentElement.scrollHeight > 8000);
      await page.screenshot({ path: join(shots, name + ".png"), fullPage: !tall });
    }
  }

  expect(ok, what) {
    if (!ok) throw new Error(what);
  }

  async end() {
    for (const end of this.#ends.reverse()) await end();
  }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
const words = process.argv.slice(2);
let failed = 0;
for (const file of readdirSync(here).filter((f) => f.endsWith(".story.mjs")).sort()) {
  for (const [name, story] of Object.entries((await import(join(here, file))).default)) {
    if (words.length > 0 && !words.some((w) => name.includes(w))) continue;
    const t = new Story(name, browser);
    const begun = Date.now();
    try {
      await story(t);
    } catch (e) {
      t.faults.unshift(e.stack ?? String(e));
    } finally {
      await t.end();
    }
    if (t.faults.length > 0) failed++;
    console.log(`${t.faults.length > 0 ? "FAIL" : "ok  "} ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)${t.faults.map((f) => "\n     " + f).join("")}`);
  }
}
await browser.close();
process.exit(failed > 0 ? 1 : 0);
