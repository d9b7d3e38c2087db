import { describe, expect, test } from "vitest";
import { diff, hunks, patch } from "./diff";

const apply = (before: string, after: string) => {
  const changes = diff(before, after);
  return [changes.filter((c) => c.kind !== "+").map((c) => c.text).join(""), changes.filter((c) => c.kind !== "-").map((c) => c.text).join("")];
};

describe("diff", () => {
  test("has the lines of both texts, and no more changes than needed", () => {
    expect(diff("a\nb\nc\n", "a\nx\nc\nd\n").map((c) => c.kind + c.text.trim())).toEqual([" a", "-b", "+x", " c", "+d"]);
    expect(diff("a\n", "a\n").map((c) => c.kind)).toEqual([" "]);
    expect(diff("", "a\n")).toEqual([{ kind: "+", text: "a\n", after: 1 }]);
  });
  test("of random texts gives both texts back", () => {
    let seed = 7;
    const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    for (let i = 0; i < 500; i++) {
      const text = () => Array.from({ length: random(12) }, () => "abc"[random(3)] + "\n").join("") + (random(4) ? "" : "z");
      const [a, b] = [text(), text()];
      expect(apply(a, b)).toEqual([a, b]);
    }
  });
  test("of texts that share nothing is bounded", () => {
    const a = Array.from({ length: 3000 }, (_, i) => `a${i}\n`).join("");
    const b = Array.from({ length: 3000 }, (_, i) => `b${i}\n`).join("");
    expect(apply(a, b)).toEqual([a, b]);
  });
});

describe("patch", () => {
  test("is a unified diff", () => {
    const before = Array.from({ length: 30 }, (_, i) => `line ${i + 1}\n`).join("");
    const after = before.replace("line 5\n", "line five\n").replace("line 25\n", "line 25\nmore\n");
    expect(hunks(before, after).map((h) => h.head)).toEqual(["@@ -2,7 +2,7 @@", "@@ -23,6 +23,7 @@"]);
    expect(patch("/etc/weir/rules.yaml", before, after).split("\n").slice(0, 8)).toEqual(["--- a/rules.yaml", "+++ b/rules.yaml", "@@ -2,7 +2,7 @@", " line 2", " line 3", " line 4", "-line 5", "+line five"]);
    expect(patch("r", "a", "a\n")).toBe("--- a/r\n+++ b/r\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n");
    expect(patch("r", "a", "a")).toBe("");
  });
});
