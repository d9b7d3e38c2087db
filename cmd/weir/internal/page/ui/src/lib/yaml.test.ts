import { describe, expect, test } from "vitest";
import { limitOf, spans, tokens, withLimit } from "./yaml";

const kinds = (line: string) =>
  tokens(line)
    .filter((t) => t.kind)
    .map((t) => `${t.kind}:${t.text}`);

describe("tokens", () => {
  test("together are the line, whatever it is", () => {
    for (const line of ["  - {name: posts, when: {action: [a, 'b''c', \"d\\\"\"]}, limit: 5, window: 1h30m} # note", "a: 'never ends", "}{]][::,,#x", "x#y: z # c", "\t\u0000\u202e<script>", "- - -1_000"])
      expect(tokens(line).map((t) => t.text).join("")).toBe(line);
  });
  test("have a kind", () => {
    expect(kinds("  - name: posts # five")).toEqual(["mark:-", "name:name", "mark::", "comment:# five"]);
    expect(kinds("limit: 1_000")).toEqual(["name:limit", "mark::", "number:1_000"]);
    expect(kinds("window: 1h30m")).toEqual(["name:window", "mark::", "number:1h30m"]);
    expect(kinds("path: a#b")).toEqual(["name:path", "mark::"]);
    expect(kinds("once: true")).toEqual(["name:once", "mark::", "word:true"]);
  });
});

const file = `# rules
outcomes:
  captcha: {status: 401}
rules:
  # five posts
  - name: posts # of a user
    per: [user]
    limit: 5 # limit: 6
    window: 1h

  - {name: "a b", per: [ip], limit: 1_000_000, window: 1m}
  - when:
      action: x
    name: late
    limit:
      by: plan
      cases: {free: 10}
`;

describe("spans", () => {
  test("finds each rule, in each style", () => {
    expect([...spans(file.split("\n"))]).toEqual([
      ["posts", { from: 5, to: 9 }],
      ["a b", { from: 10, to: 11 }],
      ["late", { from: 11, to: 17 }],
    ]);
  });
});

describe("withLimit", () => {
  test("changes one number and nothing else", () => {
    expect([limitOf(file, "posts"), limitOf(file, "a b"), limitOf(file, "late")]).toEqual([5, 1_000_000, undefined]);
    expect(withLimit(file, "posts", 8)).toBe(file.replace("limit: 5", "limit: 8"));
    expect(withLimit(file, "a b", 2500)).toBe(file.replace("1_000_000", "2_500"));
  });
  test("leaves out what is no number in one place", () => {
    expect(withLimit(file, "late", 8)).toBeUndefined();
    expect(withLimit(file, "none", 8)).toBeUndefined();
    expect(withLimit("rules:\n  - name: a\n    # limit: 5\n", "a", 8)).toBeUndefined();
  });
});
