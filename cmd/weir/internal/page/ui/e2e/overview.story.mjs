// Stories of signing in and of the overview.
const token = "story-token-0123456789abcdef";

const rules = `rules:
  - name: logins
    when: {action: login}
    per: [account, ip]
    limit: 5
    window: 15m
    ban: {for: 10m}
  - name: exports-in-flight
    when: {action: export}
    per: [user]
    limit: 2
    window: {held: 5m}
  - name: posts
    when: {action: post}
    per: [user]
    limit: 5
    window: 1h
    mode: shadow
`;

async function traffic(s) {
  const all = [];
  for (let i = 0; i < 12; i++) {
    all.push(s.take({ action: "login", account: "admin", ip: "203.0.113.1" }), s.take({ action: "login", account: "u" + i, ip: "198.51.100.7" }));
    all.push(s.take({ action: "export", user: String(i % 4) }), s.take({ action: "post", user: "42" }), s.take({ action: "view" }));
  }
  await Promise.all(all);
}

export default {
  "a wrong token, and a right one": async (t) => {
    const s = await t.serve({ rules, token });
    const p = await t.open(s.page);
    await p.fill("input[name=token]", "wrong-token-0123456789abcdef");
    await p.press("input[name=token]", "Enter");
    await p.getByText("This token is not known.").waitFor();
    await t.look(p, "wrong-token");
    const phone = await t.open(s.page, { phone: true, dark: true, zh: true });
    await phone.locator(".signin").waitFor();
    await t.look(phone, "sign-in-phone-dark-zh");
    await p.fill("input[name=token]", token);
    await p.click("button.main");
    await p.locator(".answer").waitFor();
    const cookies = await p.context().cookies();
    t.expect(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict", "the cookie is not one that only the page can use");
    t.expect(!(await p.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie)).includes(token), "scripts can read the token");
    await p.reload();
    await p.locator(".answer").waitFor();
    await p.click(".menu summary");
    await p.getByRole("button", { name: "Sign out" }).click();
    await p.locator(".signin").waitFor();
  },

  "what is going on, from the keyboard": async (t) => {
    const s = await t.serve({ rules, token });
    await traffic(s);
    const p = await t.open(s.page, { token });
    await p.getByText("mostly by").waitFor();
    const answer = await p.locator(".answer").textContent();
    t.expect(/60 decisions, 18\.3% denied, mostly by logins, for account=admin ip=203\.0\.113\.1\./.test(answer), "the sentence is: " + answer);
    await p.locator(".live.on").waitFor();
    await p.getByText("1 banned").waitFor();
    await p.getByText("8 in flight").waitFor();
    await t.look(p, "overview-light");
    await p.keyboard.press("Space");
    await p.locator(".live.paused").waitFor();
    await p.keyboard.press("Space");
    await p.locator(".live.on").waitFor();
    await traffic(s); // seen without a reload
    await p.waitForFunction(() => document.querySelector(".answer").textContent.includes("120 decisions"));
    await p.keyboard.press("/");
    await p.keyboard.type("logins");
    await p.waitForFunction(() => document.querySelectorAll("tr[data-row]").length === 1);
    await p.fill("[data-filter]", "");
    await p.evaluate(() => document.activeElement.blur());
    await p.keyboard.press("j");
    await p.keyboard.press("j");
    await p.keyboard.press("k");
    const first = await p.locator("tr[data-row='0'] a").first().textContent();
    t.expect((await p.evaluate(() => document.activeElement.textContent)) === first, "j, j and k do not lead to the first row");
    await p.keyboard.press("Enter");
    await p.waitForURL("**/#/rules/**");
    await p.keyboard.press("g");
    await p.keyboard.press("o");
    await p.locator(".answer").waitFor();
    await p.keyboard.press("?");
    await p.locator("dialog[open]").waitFor();
    await t.look(p, "shortcuts");
    await p.keyboard.press("Escape");
    await p.locator("dialog[open]").waitFor({ state: "detached" });
  },

  "the overview on a phone, dark, in Chinese": async (t) => {
    const s = await t.serve({ rules });
    await traffic(s);
    const p = await t.open(s.page, { phone: true, dark: true, zh: true });
    await p.getByText("主要由").waitFor();
    await t.look(p, "overview-phone-dark-zh");
  },

  "nothing happened yet": async (t) => {
    const s = await t.serve();
    const p = await t.open(s.page);
    await p.getByText("No request yet").waitFor();
    await t.look(p, "no-traffic");
    const command = await p.locator(".command pre").first().textContent();
    const { stop } = await t.start("sh", ["-c", command + "; echo; echo done; read x"], /done/).catch(() => ({ stop: () => {} }));
    await p.locator(".chart").waitFor();
    await stop();
    await s.stop();
    await p.locator(".live.lost").waitFor();
  },

  "Redis goes away and comes back": async (t) => {
    const port = 15_000 + (process.pid % 17_000); // below those of outgoing connections
    const redis = () => t.start(process.env.WEIR_REDIS_SERVER ?? "redis-server", ["--port", String(port), "--save", "", "--appendonly", "no"], /Ready to accept connections/);
    const first = await redis();
    const s = await t.serve({ rules, args: ["--store", `redis://127.0.0.1:${port}`, "--nodes", "auto"] });
    const p = await t.open(s.page);
    await traffic(s);
    await p.locator(".chart").waitFor();
    await first.stop("SIGKILL");
    await traffic(s);
    await p.getByText("The store does not answer: rules follow their on_outage.").waitFor();
    await p.getByText("not over yet").waitFor();
    await t.look(p, "redis-away");
    await redis();
    await p.getByText("The store does not answer").waitFor({ state: "detached" });
    await p.getByText(/, for [\d.]+ m?s/).waitFor();
    await t.look(p, "redis-back");
  },

  "10,000 rules, hostile keys": async (t) => {
    const many = Array.from({ length: 10_000 }, (_, i) => `  - {name: rule-${i}, when: {action: a${i}}, per: [user], limit: 1, window: 1h}\n`).join("");
    const s = await t.serve({ rules: "rules:\n" + many });
    for (const user of ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\u202egnp.exe", "a\u0000b\nc", "مرحبا", "k".repeat(900)]) {
      for (let i = 0; i < 3; i++) await s.take({ action: "a42", user });
    }
    const p = await t.open(s.page);
    await p.getByText("<script>alert(1)</script>").first().waitFor();
    await p.getByRole("button", { name: "Show all 10,000" }).click();
    await p.locator("tr[data-row='60']").waitFor({ state: "attached" });
    const rows = await p.locator("tr[data-row]").count();
    t.expect(rows > 0 && rows < 200, `${rows} rows are drawn`);
    t.expect((await p.evaluate(() => document.querySelectorAll("main script, main img").length)) === 0, "a key became an element");
    await p.evaluate(() => scrollTo(0, document.body.scrollHeight / 2));
    await p.waitForFunction(() => [...document.querySelectorAll("tr[data-row]")].some((row) => row.dataset.row > 4000 && row.dataset.row < 6000 && row.getBoundingClientRect().top > 0));
    const begun = Date.now();
    await p.fill("[data-filter]", "rule-9999");
    await p.waitForFunction(() => document.querySelectorAll("tr[data-row]").length === 1);
    t.expect(Date.now() - begun < 5000, `the filter took ${Date.now() - begun} ms`);
    await p.fill("[data-filter]", "");
    await p.evaluate(() => scrollTo(0, 0));
    await t.look(p, "hostile");
  },
};
