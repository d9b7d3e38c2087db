// Stories about denials and keys, in a real browser:
//
//   node e2e/why.mjs WEIR [PICTURES]
//
// WEIR is the program, and PICTURES a directory for a picture of the end of each story, in all sizes and colours.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [weir, pictures] = process.argv.slice(2);
const dir = mkdtempSync(join(tmpdir(), "weir-why-"));
const token = "weir_" + "story".repeat(8);
const reader = "weir_" + "reads".repeat(8);
const sha = (text) => createHash("sha256").update(text).digest("hex");

writeFileSync(
  join(dir, "rules.yaml"),
  `rules:
  - {name: blocked, when: {ip: {ip: 192.0.2.9}}, then: deny}
  - {name: posts-per-hour, when: {action: post}, per: [user], limit: 5, window: 1h, export: true}
  - {name: login-failures, when: {action: login}, per: [account, ip], limit: 4, window: 15m, ban: {for: 15m, factor: 2}}
  - {name: calls-per-day, when: {action: call}, per: [customer], limit: 100, window: day}
  - {name: bursts, when: {action: call}, per: [customer], limit: 60, window: {bucket: 1m}, mode: shadow}
`,
);
writeFileSync(join(dir, "tokens"), `ops sha256:${sha(token)} scopes=decide,record,read,override,admin\nviewer sha256:${sha(reader)} scopes=read\n`);

const service = spawn(weir, ["serve", "--rules", join(dir, "rules.yaml"), "--tokens", join(dir, "tokens"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain-timeout", "1s"], { stdio: ["ignore", "pipe", "inherit"] });
const addresses = await new Promise((done, failed) => {
  let text = "";
  service.once("exit", (code) => failed(new Error(`weir ended with ${code}: ${text}`)));
  service.stdout.on("data", (b) => {
    text += b;
    const page = /page: (\S+)/.exec(text);
    const api = /listens on (\S+?),/.exec(text);
    if (page && api) done({ page: page[1], api: api[1] });
  });
});

async function call(path, body) {
  const answer = await fetch(addresses.api + path, { method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: JSON.stringify(body) });
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
}
const take = (attributes, hits = 1) => call("/v1/take", { attributes, hits });

async function traffic() {
  for (let i = 0; i < 5; i++) await take({ action: "post", user: "42", plan: "free" });
  for (let i = 0; i < 3; i++) await take({ action: "post", user: "42" });
  await take({ action: "post", user: "7" }, 3);
  await take({ action: "post", user: "7" }, 4);
  for (let i = 0; i < 6; i++) await take({ action: "login", account: "ann@example.com", ip: "203.0.113.7" });
  await take({ action: "post", user: "9", ip: "192.0.2.9" });
  await take({ action: "call", customer: "acme" }, 50);
  await take({ action: "call", customer: "acme" }, 45);
  await take({ action: "call", customer: "acme" }, 20);
  for (let i = 0; i < 12; i++) await take({ action: "post", user: `<script>alert(${i})</script>\u202e` + "x".repeat(i * 20) }, 6);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** open returns a page whose reader has signed in, and fails on anything that its console says. */
async function open(hash, { as = token, width = 1280, dark = false, language = "en" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light", locale: language, timezoneId: "UTC", permissions: [] });
  const page = await context.newPage();
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && !/status of (401|400)/.test(m.text()) && complaints.push(m.text()));
  page.on("pageerror", (e) => complaints.push(String(e)));
  await page.goto(addresses.page + hash);
  await page.getByLabel(/Token|令牌/).fill(as);
  await page.getByRole("button", { name: /Sign in|登录/ }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
  return page;
}
const complaints = [];

async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(pictures, name + ".png"), fullPage: !(await page.locator("dialog[open]").count()) });
}

const stories = {
  async "a user was denied: why?"() {
    const page = await open("#/live");
    await page.getByRole("table").waitFor();
    await picture(page, "live");
    await page.getByLabel("Key or value").fill("42");
    await page.getByLabel("Key or value").press("Enter");
    await page.waitForFunction(() => document.querySelectorAll("tbody tr[data-row]").length === 3);
    await page.locator("tbody tr[data-row] a").first().focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("had used 5 hits of 5 under posts-per-hour").waitFor();
    const text = await dialog.innerText();
    assert.match(text, /a quota of 6 or more/);
    assert.match(text, /the same request \S+ \S+ later/);
    await dialog.getByRole("img", { name: /In use over time/ }).waitFor();
    await picture(page, "why");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await dialog.getByRole("button", { name: "Copy as a test step" }).click();
    await dialog.getByText("Copied").waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^# posts-per-hour had used 5 of 5\n- take: \{"action":"post","user":"42"\}\n  expect: \{allowed: false/);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });

    // New denials arrive by themselves, and wait while the reader points at the list.
    const fresh = page.locator("tbody tr[data-row]");
    await page.evaluate(() => document.activeElement?.blur());
    await page.mouse.move(0, 0);
    await take({ action: "post", user: "42" });
    await page.waitForFunction(() => document.querySelectorAll("tbody tr[data-row]").length === 4);
    await fresh.first().hover();
    await take({ action: "post", user: "42" });
    await page.getByRole("button", { name: "1 new denial" }).waitFor();
    assert.equal(await fresh.count(), 4);
    await page.mouse.move(0, 0);
    await page.waitForFunction(() => document.querySelectorAll("tbody tr[data-row]").length === 5);
    await page.context().close();
  },

  async "any request can be asked about"() {
    const page = await open("#/live?ask=1&a.action=login&a.account=ann@example.com&a.ip=203.0.113.7");
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/is banned under login-failures until/).waitFor();
    await picture(page, "ask");
    await dialog.getByLabel("Hits").fill("0");
    await dialog.getByRole("button", { name: "Ask", exact: true }).click();
    await dialog.getByRole("alert").getByText("hits").waitFor();
    await page.context().close();
  },

  async "raise a customer until Friday"() {
    const page = await open("#/key?rule=calls-per-day&a.customer=acme");
    await page.getByText(/acme has used 95 hits of 100 in a calendar day/).waitFor();
    await picture(page, "key");
    await page.getByRole("button", { name: "Set an override" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Limit").fill("-5");
    await dialog.getByRole("button", { name: "Set an override" }).click();
    await dialog.getByRole("alert").waitFor();
    assert.equal(await dialog.getByLabel("Limit").getAttribute("aria-invalid"), "true");
    await dialog.getByLabel("Limit").fill("200");
    await dialog.getByRole("button", { name: "Friday, 18:00" }).click();
    await dialog.getByLabel("Note").fill("launch week");
    await dialog.getByText(/may use 200 hits in a calendar day instead of 100 hits. It has used 95 hits: 105 will be left/).waitFor();
    await picture(page, "override");
    await dialog.getByRole("button", { name: "Set an override" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByText(/acme has used 95 hits of 200/).waitFor();
    await page.getByText("launch week").first().waitFor();
    await page.getByText("override-set").waitFor();
    assert.equal((await take({ action: "call", customer: "acme" }, 20)).allowed, true);
    await page.getByText(/acme has used 115 hits of 200/).waitFor();
    await picture(page, "raised");
    await page.context().close();
  },

  async "a ban is lifted, a count set, a key forgotten"() {
    const page = await open("#/key?rule=login-failures&a.account=ann@example.com&a.ip=203.0.113.7");
    await page.getByText(/is banned until/).waitFor();
    await picture(page, "banned");
    assert.ok(await page.getByRole("button", { name: "Set the count" }).isDisabled());
    await page.getByRole("button", { name: "Lift the ban" }).click();
    await page.getByRole("dialog").getByText(/may go on at once instead of at/).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Lift the ban" }).click();
    await page.getByText(/is unused: all 4 fit/).waitFor();
    await page.getByRole("button", { name: "Set the count" }).click();
    await page.getByLabel("Count", { exact: true }).fill("3");
    await page.getByRole("dialog").getByRole("button", { name: "Set the count" }).click();
    await page.getByText(/has used 3 hits of 4/).waitFor();
    await page.getByRole("button", { name: "Forget the key" }).click();
    await page.getByRole("dialog").getByText(/This cannot be undone/).waitFor();
    await picture(page, "forget");
    await page.getByRole("dialog").getByRole("button", { name: "Forget the key" }).click();
    await page.getByText(/is unused: all 4 fit/).waitFor();
    await page.context().close();
  },

  async "keys are listed, and a token that only reads changes nothing"() {
    const page = await open("#/key?rule=posts-per-hour", { as: reader });
    await page.getByText("List keys").click();
    await page.getByRole("link", { name: "42" }).click();
    await page.getByText(/42 has used 5 hits of 5 in any 1 h. The next one fits in/).waitFor();
    assert.equal(await page.getByRole("button", { name: /Forget|override|count/ }).count(), 0);
    await picture(page, "full");
    await page.context().close();
  },

  async "everything is readable"() {
    if (!pictures) return;
    for (const [name, options] of Object.entries({ phone: { width: 390 }, "phone-dark": { width: 390, dark: true }, dark: { dark: true }, zh: { language: "zh-CN" } })) {
      for (const [view, hash, wait] of [
        ["live", "#/live", "table"],
        ["why", "#/live?q=42", "table"],
        ["ask", "#/live?ask=1&a.action=post&a.user=7&hits=3", ".decision"],
        ["key", "#/key?rule=posts-per-hour&a.user=42", ".window svg"],
      ]) {
        const page = await open(hash, options);
        await page.locator(wait).first().waitFor();
        if (view === "why") {
          await page.locator("tbody tr[data-row] a").first().click();
          await page.locator("dialog .window svg").first().waitFor();
        }
        await picture(page, `${view}-${name}`);
        await page.context().close();
      }
    }
  },
};

let failed = 0;
try {
  await traffic();
  for (const [name, story] of Object.entries(stories)) {
    try {
      await story();
      assert.deepEqual(complaints.splice(0), [], "the console complains");
      console.log("ok   " + name);
    } catch (e) {
      failed++;
      console.log("FAIL " + name + "\n" + e.stack);
      for (const [n, page] of browser.contexts().flatMap((c) => c.pages()).entries()) {
        if (pictures) await page.screenshot({ path: join(pictures, `failed-${failed}-${n}.png`) }).catch(() => {});
        await page.context().close();
      }
    }
  }
} finally {
  await browser.close();
  service.removeAllListeners("exit");
  service.kill();
  rmSync(dir, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
