import { describe, expect, test } from "vitest";
import { apply, attributesOf, model, unpack, type Answer, type Counts } from "./overview";

const answer = (): Answer => ({
  hash: "h", file: "f", loaded: "2026-01-01T00:00:00Z", now: 1000, since: 0, seconds: 300, step: 10,
  total: { matched: 3, denied: 1, shadow: 0, near: 0, series: [[1, 0, 2], [1], [], []] },
  rules: [{ rule: "a", matched: 3, denied: 1, shadow: 0, near: 0, series: [[1, 0, 2], [1], [], []] }],
  state: { recent: { seconds: 300, takes: 3, denied: 1, shadow: 0, unmatched: 0, degraded: 0 }, busiest: [], denied: [], rules: [] },
});

describe("the text of a key", () => {
  test.each<[string, string[], Record<string, string> | undefined]>([
    ["42", ["user"], { user: "42" }],
    ["a=1 b=2", ["user"], { user: "a=1 b=2" }],
    ["account=admin ip=203.0.113.1", ["account", "ip"], { account: "admin", ip: "203.0.113.1" }],
    ["account=a ip=1 ip=2", ["account", "ip"], undefined], // of an account "a ip=1", or of an ip "1 ip=2"
    ["2001:db8::/64", ["ip"], undefined],
    ["/path/64", ["path"], { path: "/path/64" }],
    ["x=1", ["account", "ip"], undefined],
    ["", [], undefined],
  ])("%s", (key, per, want) => expect(attributesOf(key, per)).toEqual(want));
});

describe("overview", () => {
  test("lists lack the zeros at their start", () => {
    const cells = unpack([[1, 2], [], [], [5]], 4)!;
    expect(cells).toEqual([[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 5]]);
  });
  test("a tick adds to the last step, and time moves the steps", () => {
    let m = model([{ name: "a", kind: "limit" }, { name: "b", kind: "limit" }], answer());
    const d: Counts = [4, 1, 0, 1];
    m = apply(m, { at: 1005, total: d, rules: { a: d } });
    expect(m.lines.get("a")!.sum).toEqual([7, 2, 0, 1]);
    expect(m.lines.get("a")!.cells!.at(-1)).toEqual([6, 2, 0, 1]);
    m = apply(m, { at: 1290, total: d, rules: { b: d } });
    expect(m.state.recent.takes).toBe(11);
    expect(m.steps.at(-1)).toBe(1280);
    expect(m.total.at(-1)).toEqual(d);
    expect(m.lines.get("a")!.sum).toEqual([6, 2, 0, 1]);
    m = apply(m, { at: 5000, total: d, rules: {} });
    expect(m.lines.get("a")!.sum).toEqual([0, 0, 0, 0]);
    expect(m.lines.get("b")!.cells!.length).toBe(30);
  });
});
