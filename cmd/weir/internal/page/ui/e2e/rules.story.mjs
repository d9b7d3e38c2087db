// Stories of reading, changing, trying and saving rules.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const token = "story-token-0123456789abcdef";

const rules = `# Of the forum.
rules:
  # Nobody writes more than this.
  - name: posts
    when: {action: post}
    per: [user]
    limit: 50 # was 100 in 2025
    window: 1h
  - name: logins
    when: {action: login}
    per: [ip]
    limit: 10
    window: 15m
`;

/** yesterday is a log: 200 users who post one to ten times in an hour, and one who posts forty times. */
function yesterday() {
  const lines = [];
  const start = Date.UTC(2026, 4, 1, 12) * 1000;
  for (let user = 0; user < 200; user++) for (let i = 0; i <= user % 10; i++) lines.push([start + user * 1e6 + i * 60e6, `u${user}`]);
  for (let i = 0; i < 40; i++) lines.push([start + i * 50e6, "crawler"]);
  lines.sort((a, b) => a[0] - b[0]);
  return lines.map(([time, user]) => JSON.stringify({ time, attributes: { action: "post", user } }) + "\n").join("");
}

const log = (text = yesterday()) => ({ name: "yesterday.jsonl", mimeType: "application/json", buffer: Buffer.from(text) });

/** share returns the share in a sentence: 0.0123 for "(1.23%)". */
const share = async (at) => Number(/\(<?\s*([\d.]+)\s*%\)/.exec(await at.textContent())?.[1] ?? 0) / 100;

async function send(p) {
  await p.getByRole("button", { name: "A log file" }).click();
  await p.locator("input[type=file]").setInputFiles(log());
  await p.getByLabel("Format").selectOption("weir");
}

export default {
  "tighten a rule without denying more than 1 % of yesterday": async (t) => {
    const s = await t.serve({ rules, token, args: ["--page-write"] });
    const p = await t.open(s.page + "#/rules", { token });
    await p.getByText("50 in any hour").first().waitFor();
    await t.look(p, "rules");
    await p.getByRole("link", { name: "Try another number" }).first().click();
    await send(p);
    await t.look(p, "try-before");
    await p.getByRole("button", { name: "Start" }).click();
    await p.getByText("as they are, deny 0 of 1,140 requests").waitFor();
    await p.getByText("The requests span 32 min 30 s, less than the window of posts (1 h): longer traffic may deny more.").waitFor();

    // The slider answers for other numbers: down to the first that denies more than 1 %, and one up.
    const said = p.locator(".slider .answer");
    await p.getByRole("slider").focus();
    while ((await share(said)) <= 0.01) await p.keyboard.press("ArrowLeft");
    await p.keyboard.press("ArrowRight");
    t.expect((await share(said)) <= 0.01 && /would deny/.test(await said.textContent()), "the slider says: " + (await said.textContent()));
    await t.look(p, "try-slider");
    const number = Number(/^([\d,]+) in any/.exec(await said.textContent())[1]);
    await p.getByRole("button", { name: `Put ${number} into the draft` }).click();
    await p.getByText("Your draft differs in 2 lines.").waitFor();
    await p.getByRole("button", { name: "Start" }).click();
    const answer = p.locator(".answer").first();
    await p.getByText("would newly deny").waitFor();
    t.expect(/from 1 key, and newly allow 0\.$/.test(await answer.textContent()) && (await share(answer)) <= 0.01, "the answer is: " + (await answer.textContent()));
    await p.getByText("crawler").first().click();
    await t.look(p, "try-answer");

    const [test] = await Promise.all([p.waitForEvent("download"), p.getByRole("button", { name: "Download as a rules test" }).click()]);
    const cases = readFileSync(await test.path(), "utf8");
    t.expect(test.suggestedFilename() === "rules_test.yaml" && /expect: \{allowed: false, rule: "posts"\}/.test(cases), "the test is: " + cases);

    await p.getByRole("button", { name: "Save…" }).click();
    await p.locator("dialog .plus").waitFor();
    await t.look(p, "rules-save");
    await p.getByRole("button", { name: "Save, and put in force" }).click();
    await p.getByText("Saved, and in force.").waitFor();
    await t.look(p, "rules-saved");
    const saved = readFileSync(join(t.dir, "rules.yaml"), "utf8");
    t.expect(saved === rules.replace("limit: 50", `limit: ${number}`), "the file is: " + saved);
    t.expect(readFileSync(join(t.dir, "rules.yaml.1"), "utf8") === rules, "the text before was not kept");
    let allowed = 0;
    for (let i = 0; i < 50; i++) allowed += (await s.take({ action: "post", user: "42" })).allowed;
    t.expect(allowed === number, `${allowed} of 50 are allowed, want ${number}`);
  },

  "faults where they are, from the keyboard": async (t) => {
    const s = await t.serve({ rules, token, args: ["--page-write"] });
    const p = await t.open(s.page + "#/rules?edit=1", { token });
    const field = p.locator(".editor textarea");
    await field.waitFor();
    await field.fill(rules.replace("window: 15m", "windw: 15m"));
    await p.getByText("1 error, 0 warnings").waitFor();
    t.expect(await p.getByRole("button", { name: "Save…" }).isDisabled(), "a text with an error can be saved");
    await t.look(p, "edit-fault");
    await p.getByRole("button", { name: "13:5" }).press("Enter");
    t.expect(await field.evaluate((f) => f.value.slice(f.selectionStart).startsWith("windw")), "the fault's button does not lead to its place");
    await p.keyboard.press("ArrowRight");
    await p.keyboard.press("ArrowRight");
    await p.keyboard.press("ArrowRight");
    await p.keyboard.press("ArrowRight");
    await p.keyboard.type("o");
    await p.getByText("no faults").waitFor();
    await p.keyboard.press("End");
    await p.keyboard.press("Enter");
    await p.keyboard.type("mode: shadow");
    t.expect((await field.inputValue()).includes("window: 15m\n    mode: shadow\n"), "a new line does not begin where the one before does");
    await p.getByText("no faults").waitFor();
    await p.keyboard.press("Control+s");
    await p.locator("dialog .plus").first().waitFor();
    await p.keyboard.press("Escape");
    await p.getByRole("button", { name: "Discard" }).click();
    await p.locator("dialog .danger").click();
    await p.getByText(", loaded ").waitFor();
  },

  "a change that cannot be saved is taken along": async (t) => {
    const s = await t.serve({ rules });
    const p = await t.open(s.page + "#/rules");
    await p.getByRole("link", { name: "Make a draft" }).click();
    await p.locator(".editor textarea").fill(rules.replace("limit: 10", "limit: 5"));
    await p.getByRole("button", { name: "Download the change…" }).click();
    await p.getByText("start weir serve with --page-write").waitFor();
    await t.look(p, "rules-take");
    const [file] = await Promise.all([p.waitForEvent("download"), p.getByRole("button", { name: "Download the difference" }).click()]);
    const patch = readFileSync(await file.path(), "utf8");
    t.expect(/^--- a\/rules\.yaml\n\+\+\+ b\/rules\.yaml\n@@ -9,5 \+9,5 @@\n/.test(patch) && patch.includes("\n-    limit: 10\n+    limit: 5\n"), "the difference is: " + patch);
    await p.keyboard.press("Escape");
    await p.goto(s.page + "#/try?rule=posts");
    await p.getByLabel("Its number, in the draft").fill("40");
    await p.getByText("Your draft differs in 4 lines.").waitFor();
  },

  "the last hour, on a phone, dark, in Chinese": async (t) => {
    const s = await t.serve({ rules, args: ["--record", "8MiB"] });
    for (let i = 0; i < 30; i++) await s.take({ action: "post", user: "<script>alert(1)</script>\u202e" });
    const p = await t.open(s.page + "#/try?rule=posts", { phone: true, dark: true, zh: true });
    await p.getByRole("button", { name: "开始" }).click();
    await p.getByText("全部现有规则共拒绝").waitFor();
    await p.getByRole("slider").focus();
    await p.keyboard.press("Home");
    await t.look(p, "try-phone-dark-zh");
    await p.goto(s.page + "#/rules/posts");
    await p.locator(".code .marked").first().waitFor();
    await t.look(p, "rules-phone-dark-zh");
  },

  "10,000 rules with hostile values, as text": async (t) => {
    const values = ["<script>alert(1)</script>", "\u202egnp.exe", "a: b # c", "'", "k".repeat(300)];
    const many = Array.from({ length: 10_000 }, (_, i) => `  - {name: rule-${i}, when: {action: ${JSON.stringify(values[i % 97] ?? "a" + i)}}, per: [user], limit: 1, window: 1h}\n`).join("");
    const s = await t.serve({ rules: "rules: # <img src=x onerror=alert(1)>\n" + many, token, args: ["--page-write"] });
    const p = await t.open(s.page + "#/rules", { token });
    await p.getByText("10,000").first().waitFor();
    await p.locator(".editor textarea").waitFor();
    t.expect((await p.locator("tr[data-row]").count()) < 200 && (await p.locator(".seen > div > div").count()) < 200, "too much is drawn");
    await p.fill("[data-filter]", "alert(1)");
    await p.waitForFunction(() => document.querySelectorAll("tr[data-row]").length === 104);
    await p.fill("[data-filter]", "rule-9991");
    await p.waitForFunction(() => document.querySelectorAll("tr[data-row]").length === 1);
    await t.look(p, "rules-hostile");
    await p.locator("tr[data-row] a").first().click();
    await p.locator("section .code").first().waitFor();
    t.expect((await p.locator("section .code").first().textContent()).includes("<script>alert(1)</script>"), "the rule's text is another one");
    t.expect((await p.evaluate(() => document.querySelectorAll("main script, main img").length)) === 0, "a value became an element");
    await p.locator("section .bar").getByRole("link", { name: "Edit" }).click();
    const field = p.locator(".editor textarea");
    await p.locator(".seen").getByText("rule-9991").waitFor();
    await field.press("End");
    await p.keyboard.type(" # x");
    await p.getByText("no faults · changed").waitFor();
  },
};
