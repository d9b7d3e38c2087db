// Stories of denials and of single keys.
import { createHash } from "node:crypto";

const token = "story-ops-0123456789abcdef";
const reader = "story-reader-0123456789abcdef";
const sha = (text) => createHash("sha256").update(text).digest("hex");

const rules = `rules:
  - {name: blocked, when: {ip: {ip: 192.0.2.9}}, then: deny}
  - {name: posts-per-hour, when: {action: post}, per: [user], limit: 5, window: 1h, export: true}
  - {name: login-failures, when: {action: login}, per: [account, ip], limit: 4, window: 15m, ban: {for: 15m, factor: 2}}
  - {name: calls-per-day, when: {action: call}, per: [customer], limit: 100, window: day}
  - {name: exports, when: {action: export}, per: [user], limit: 2, window: {held: 5m}}
  - {name: bursts, when: {action: call}, per: [customer], limit: 60, window: {bucket: 1m}, mode: shadow}
`;

/** serve starts weir with two tokens, and lets some requests be denied. */
async function serve(t) {
  const tokens = `ops sha256:${sha(token)} scopes=decide,record,read,override,admin\nviewer sha256:${sha(reader)} scopes=read\n`;
  const s = await t.serve({ rules, args: ["--tokens", t.file("tokens", tokens)] });
  const take = async (attributes, hits = 1) => {
    const answer = await fetch(s.api + "/v1/take", { method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: JSON.stringify({ attributes, hits }) });
    t.expect(answer.ok, "a take is answered " + answer.status);
    return answer.json();
  };
  for (let i = 0; i < 8; i++) await take({ action: "post", user: "42", plan: "free" });
  for (let i = 0; i < 6; i++) await take({ action: "login", account: "ann@example.com", ip: "203.0.113.7" });
  await take({ action: "post", user: "9", ip: "192.0.2.9" });
  for (const n of [50, 45, 20]) await take({ action: "call", customer: "acme" }, n);
  for (let i = 0; i < 6; i++) await take({ action: "post", user: `<script>alert(${i})</script>\u202e` + "x".repeat(i * 25) }, 6);
  return { ...s, take };
}

const rows = "tbody tr[data-row]";
const count = (p, n) => p.waitForFunction(([of, want]) => document.querySelectorAll(of).length === want, [rows, n]);

export default {
  "a user was denied: why?": async (t) => {
    const s = await serve(t);
    const p = await t.open(s.page + "#/live", { token });
    await p.getByRole("table").waitFor();
    const [note, table] = await Promise.all([p.getByText("at most ten denials of a key each minute").boundingBox(), p.getByRole("table").boundingBox()]);
    t.expect(note.y < table.y, "that the list is a sample is not said above it");
    t.expect((await p.locator(rows).filter({ hasText: "posts-per-hour" }).first().getByRole("link", { name: "posts-per-hour" }).getAttribute("href")) === "#/rules/posts-per-hour", "a rule is no link");
    await t.look(p, "live");
    await p.getByLabel("Key or value").fill("42");
    await count(p, 3);
    await p.locator(rows + " a").first().focus();
    await p.keyboard.press("Enter");
    const dialog = p.getByRole("dialog");
    await dialog.getByText("had used 5 hits of 5 under posts-per-hour").waitFor();
    const text = await dialog.innerText();
    t.expect(/a quota of 6 or more/.test(text) && /the same request \S+ \S+.* later/.test(text), "it does not say what would have had to differ: " + text);
    await dialog.getByRole("img", { name: /In use over time\. 5 hits in use\./ }).waitFor();
    await dialog.getByText(/^As it was at \S+\./).waitFor();
    await t.look(p, "why");
    await p.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await dialog.getByRole("button", { name: "Copy as a test step" }).click();
    await dialog.getByText("Copied").waitFor();
    const step = await p.evaluate(() => navigator.clipboard.readText());
    t.expect(/^# posts-per-hour had used 5 of 5\n- take: \{"action":"post","user":"42"\}\n {2}expect: \{allowed: false/.test(step), "the step is " + step);
    await p.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  },

  "denials arrive, and wait while the reader points at the list": async (t) => {
    const s = await serve(t);
    const p = await t.open(s.page + "#/live?q=42", { token });
    await count(p, 3);
    await p.locator(".live.on").waitFor();
    await s.take({ action: "post", user: "42" });
    await count(p, 4);
    await p.locator(rows).first().hover();
    await s.take({ action: "post", user: "42" });
    await p.getByRole("button", { name: "1 new denial" }).waitFor();
    t.expect((await p.locator(rows).count()) === 4, "the list moves under the pointer");
    await t.look(p, "live-waits");
    await p.mouse.move(0, 0);
    await count(p, 5);
  },

  "any request can be asked about": async (t) => {
    const s = await serve(t);
    const p = await t.open(s.page + "#/live?ask=1&a.action=login&a.account=ann@example.com&a.ip=203.0.113.7", { token });
    const dialog = p.getByRole("dialog");
    await dialog.getByText(/is banned under login-failures until/).waitFor();
    await t.look(p, "ask");
    await dialog.getByLabel("Hits").fill("0");
    await dialog.getByRole("button", { name: "Ask", exact: true }).click();
    await dialog.getByRole("alert").getByText("hits").waitFor();
  },

  "what is in flight is in use": async (t) => {
    const s = await serve(t);
    for (let i = 0; i < 3; i++) await s.take({ action: "export", user: "7" });
    const p = await t.open(s.page + "#/key?rule=exports&a.user=7", { token });
    await p.getByText(/7 has 2 of 2 in use\. The next one fits when one is released, in .* at the latest/).waitFor();
    t.expect((await p.getByRole("region", { name: "Holds" }).locator("tbody tr").count()) === 2, "there are no two holds");
    await t.look(p, "key-held");
    await p.goto(s.page + "#/live?q=7&rule=exports");
    await p.locator(rows + " a").first().click();
    await p.getByRole("dialog").getByText("had 2 of 2 in use under exports, and 1 more did not fit").waitFor();
    await t.look(p, "why-held");
  },

  "raise a customer until Friday": async (t) => {
    const s = await serve(t);
    const p = await t.open(s.page + "#/key?rule=calls-per-day&a.customer=acme", { token });
    await p.getByText(/acme has used 95 hits of 100 in a calendar day/).waitFor();
    await t.look(p, "key");
    await p.getByRole("button", { name: "Set an override" }).click();
    const dialog = p.getByRole("dialog");
    await dialog.getByLabel("Limit").fill("-5");
    await dialog.getByRole("button", { name: "Set an override" }).click();
    await dialog.getByRole("alert").waitFor();
    t.expect((await dialog.getByLabel("Limit").getAttribute("aria-invalid")) === "true", "the fault is not at its field");
    await dialog.getByLabel("Limit").fill("200");
    await dialog.getByRole("button", { name: "Friday, 18:00" }).click();
    await dialog.getByLabel("Note").fill("launch week");
    await dialog.getByText(/may use 200 hits in a calendar day instead of 100 hits. It has used 95 hits: 105 will be left/).waitFor();
    await t.look(p, "override");
    await dialog.getByRole("button", { name: "Set an override" }).click();
    await dialog.waitFor({ state: "detached" });
    await p.getByText(/acme has used 95 hits of 200/).waitFor();
    await p.getByText("launch week").first().waitFor();
    await p.getByText("override set").waitFor();
    t.expect((await s.take({ action: "call", customer: "acme" }, 20)).allowed, "the customer is still denied");
    await p.getByText(/acme has used 115 hits of 200/).waitFor();
    await t.look(p, "raised");
  },

  "a ban is lifted, a count set, a key forgotten": async (t) => {
    const s = await serve(t);
    const p = await t.open(s.page + "#/key?rule=login-failures&a.account=ann@example.com&a.ip=203.0.113.7", { token });
    await p.getByText(/is banned until/).waitFor();
    await t.look(p, "banned");
    t.expect(await p.getByRole("button", { name: "Set the count" }).isDisabled(), "the count of a banned key can be set");
    const dialog = p.getByRole("dialog");
    const act = async (name, says, field) => {
      await p.getByRole("button", { name }).click();
      await dialog.getByText(says).waitFor();
      if (field) await dialog.getByLabel(field[0], { exact: true }).fill(field[1]);
      await dialog.getByRole("button", { name }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await act("Lift the ban", /may go on at once instead of at/);
    await p.getByText(/is unused: all 4 fit/).waitFor();
    await act("Set the count", /all of it dated now/, ["Count", "3"]);
    await p.getByText(/has used 3 hits of 4/).waitFor();
    await act("Forget the key", /This cannot be undone/);
    await p.getByText(/is unused: all 4 fit/).waitFor();
  },

  "keys are listed, and a token that only reads changes nothing": async (t) => {
    const s = await serve(t);
    const p = await t.open(s.page + "#/key?rule=posts-per-hour", { token: reader });
    await p.getByText("List keys").click();
    await p.getByRole("link", { name: "42" }).click();
    await p.getByText(/42 has used 5 hits of 5 in any .* The next one fits in/).waitFor();
    t.expect((await p.getByRole("button", { name: /Forget|override|count/ }).count()) === 0, "it offers actions");
    await t.look(p, "key-read");
  },

  "denials and keys on a phone, in the dark and in Chinese": async (t) => {
    const s = await serve(t);
    for (const [name, options] of Object.entries({ phone: { phone: true }, "phone-dark": { phone: true, dark: true }, dark: { dark: true }, zh: { zh: true } })) {
      for (const [view, hash, wait] of [
        ["live", "#/live", "table"],
        ["why", "#/live?q=42", "table"],
        ["ask", "#/live?ask=1&a.action=post&a.user=42&hits=3", ".decision .window svg"],
        ["key", "#/key?rule=posts-per-hour&a.user=42", ".window svg"],
      ]) {
        const p = await t.open(s.page + hash, { token, ...options });
        await p.locator(wait).first().waitFor();
        if (view === "why") {
          await p.locator(rows + " a").first().click();
          await p.locator("dialog .window svg").first().waitFor();
        }
        await t.look(p, `${view}-${name}`);
        await p.context().close();
      }
    }
  },
};
