// Stories of reports: one file each, opened from a disk, without a service.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const log = fileURLToPath(new URL("../../../../../../examples/logins.jsonl.gz", import.meta.url));
const weir = process.env.WEIR ?? "weir";

const logYAML = `format: json
map:
  user: .auth.sub
  ip: .req.client|ip
  path: .req.url|path
`;
const old = `rules:
  - {name: failed-logins, when: {path: /login, status: 401}, per: [user], limit: 15, window: 10m, mode: shadow}
  - {name: refreshes, when: {path: /refresh}, per: [user], limit: 100, window: 1h}
`;
const edited = `rules:
  - {name: failed-logins, when: {path: /login, status: 401}, per: [user], limit: 8, window: 10m, ban: {for: 10m}}
  - {name: failed-logins-per-address, when: {path: /login, status: 401}, per: [ip], limit: 10, window: 10m}
`;
const hostile = `rules:
  - {name: agents, per: [agent], limit: 5, window: 1m}
`;

/** report runs a command of weir on a log, and returns the address of its report. */
function report(t, name, args, on = log) {
  t.file("log.yaml", logYAML);
  execFileSync(weir, [...args, "--html", name, on], { cwd: t.dir, stdio: ["ignore", "ignore", "pipe"] });
  return "file://" + t.dir + "/" + name;
}

/** everywhere looks at a report in light and dark, on a phone, and in Chinese. */
async function everywhere(t, url, name) {
  for (const [kind, as] of Object.entries({ light: {}, dark: { dark: true }, phone: { phone: true }, "phone-dark": { phone: true, dark: true }, zh: { zh: true } })) {
    const p = await t.open(url, as);
    await p.locator("main").waitFor();
    await t.look(p, `report-${name}-${kind}`);
    await p.context().close();
  }
}

export default {
  "a report of a replay": async (t) => {
    t.file("rules.yaml", edited);
    const url = report(t, "replay.html", ["replay", "--rules", "rules.yaml", "--log", "log.yaml"]);
    const p = await t.open(url);
    await p.getByText("rules.yaml would deny").waitFor();
    await p.getByText("8 in any 10 min for each user").first().waitFor();
    for (const as of ["SVG", "PNG"]) {
      const saved = p.waitForEvent("download");
      await p.getByRole("button", { name: "Save as " + as }).first().click();
      const file = await (await saved).path();
      if (as === "SVG") t.expect(/Peaks of keys under failed-logins[\s\S]*no key[\s\S]*Replay · logins\.jsonl\.gz · weir/.test(readFileSync(file, "utf8")), "the picture lacks its title, the gap or the log");
      else t.expect(readFileSync(file).subarray(1, 4).toString() === "PNG", "no PNG");
    }
    await everywhere(t, url, "replay");

    // Paper is light, whatever the screen is.
    const dark = await t.open(url, { dark: true });
    await dark.locator("canvas").first().waitFor();
    await dark.emulateMedia({ media: "print", colorScheme: "dark" });
    await dark.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const text = await dark.evaluate(() => getComputedStyle(document.body).color);
    t.expect(text === "rgb(28, 36, 43)", "the text on paper is " + text);
    await t.look(dark, "report-print");
  },

  "a report of a comparison": async (t) => {
    t.file("old.yaml", old);
    t.file("new.yaml", edited);
    const url = report(t, "compare.html", ["compare", "--log", "log.yaml", "old.yaml", "new.yaml"]);
    const p = await t.open(url);
    const answer = await p.locator(".answer").innerText();
    t.expect(/^Would newly deny [\d,]+ requests \([\d.]+%\) of 2 keys, and newly allow 0\.$/.test(answer), answer);
    await p.getByText(/goes above\. Between them is a gap: no key peaks from/).first().waitFor();
    await everywhere(t, url, "compare");
  },

  "a report of a suggestion": async (t) => {
    t.file("rules.yaml", edited);
    const url = report(t, "suggest.html", ["suggest", "--rules", "rules.yaml", "--rule", "failed-logins", "--log", "log.yaml", "--windows", "10m,1h"]);
    const p = await t.open(url);
    await p.getByText("Suggested for failed-logins").first().waitFor();
    const slider = p.getByRole("slider").first();
    await slider.focus();
    for (let i = 0; i < 3; i++) await p.keyboard.press("ArrowLeft");
    await p.locator(".slider").first().getByText(/would deny .* of (?!1 )\d+ of/).waitFor();
    await everywhere(t, url, "suggest");
  },

  "a report of hostile names": async (t) => {
    t.file("rules.yaml", hostile);
    const key = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp";
    const lines = Array.from({ length: 60 }, (_, i) => `10.0.0.1 - - [02/Mar/2026:12:00:${String(i % 60).padStart(2, "0")} +0000] "GET / HTTP/1.1" 200 1 "-" "${i % 2 ? key : "x".repeat(2000)}"`);
    const name = t.file("a log.txt", lines.join("\n") + "\n");
    const url = report(t, "hostile.html", ["replay", "--rules", "rules.yaml"], name);
    const p = await t.open(url);
    await p.getByText("</script><script>alert(1)").first().waitFor();
    t.expect((await p.locator("main img, main script").count()) === 0, "a key became an element");
    await t.look(p, "report-hostile");
    const phone = await t.open(url, { phone: true });
    await t.look(phone, "report-hostile-phone");
  },
};
