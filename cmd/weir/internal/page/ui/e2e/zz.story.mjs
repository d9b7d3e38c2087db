const rules = `rules:
  - name: posts
    when: {action: post}
    per: [user]
    limit: 5
    window: 10m
  - name: uploads
    when: {bytes: "*"}
    per: [user]
    sum: bytes
    limit: 200000
    window: 1d
  - name: logins
    when: {action: login}
    per: [ip]
    limit: 6
    near: 50%
    window: 1h
    mode: shadow
`;
async function traffic(s) {
  const all = [];
  for (let i = 0; i < 12; i++) {
    all.push(s.take({ action: "post", user: "u" + (i % 3) }), s.take({ action: "login", ip: "203.0.113." + (i % 5) }), s.take({ bytes: String(1000 * i), user: String(120 + i) }), s.take({ action: "login", ip: "203.0.113.1" }));
  }
  await Promise.all(all);
}
const look = async (t, p, n) => t.look(p, n);
async function all(t, o, n, ui) {
  const token = "story-token-0123456789abcdef";
  const s = await t.serve({ rules, args: ["--record", "8MiB"] });
  await traffic(s);
  const p = await t.open(s.page, o);
  await p.locator(".legend").waitFor();
  await new Promise((d) => setTimeout(d, 2500));
  await traffic(s);
  await new Promise((d) => setTimeout(d, 2500));
  await look(t, p, "r-over" + n);
  await p.goto(s.page + "#/try?rule=posts");
  const number = p.locator("input[type=number]");
  await number.waitFor();
  await look(t, p, "r-before" + n);
  console.log(await p.locator("option").allTextContents(), await p.locator("svg.spark title").count());
  await p.getByRole("button", { name: ui.start }).click();
  await p.locator(".slider").waitFor();
  await look(t, p, "r-same" + n);
  await p.getByRole("slider").focus();
  await p.keyboard.press("ArrowLeft");
  await p.locator(".slider .bar button").click();
  await number.fill("3");
  await look(t, p, "r-draft" + n);
  await p.getByRole("button", { name: ui.start }).click();
  await p.locator(".changes").waitFor();
  await look(t, p, "r-after" + n);
  await p.goto(s.page + "#/rules?edit=1");
  await p.locator(".editor textarea").waitFor();
  await look(t, p, "r-edit" + n);
  await p.goto(s.page + "#/try?rule=logins");
  await p.getByRole("button", { name: ui.start }).click();
  await p.locator(".slider").getByText("logins").first().waitFor();
  await look(t, p, "r-shadow" + n);
  const s2 = await t.serve({ rules, token });
  const p2 = await t.open(s2.page, o);
  await p2.locator(".signin").waitFor();
  await look(t, p2, "r-sign" + n);
  await p2.fill("input[name=token]", token);
  await p2.press("input[name=token]", "Enter");
  await p2.locator("footer").waitFor();
  await p2.goto(s2.page + "#/key");
  await p2.locator("main h1").first().waitFor();
  await look(t, p2, "r-short" + n);
}
export default {
  "zz en": (t) => all(t, {}, "", { start: "Start" }),
  "zz dark phone zh": (t) => all(t, { phone: true, dark: true, zh: true }, "-phone", { start: "开始" }),
};
