import { describe, expect, it } from "vitest";
import { course, ends, fitsAt, local, mostOf, past, ticks, type Judged, type Leaving } from "./why";

const at = (s: number) => new Date(Date.UTC(2026, 10, 27, 12, 0, s)).toISOString();

const sliding: Leaving = {
  now: at(40), kind: "sliding", from: at(-20), to: at(100),
  hits: [
    { at: at(0), hits: 2, leave: at(60) },
    { at: at(30), hits: 1, leave: at(90) },
  ],
};

describe("course", () => {
  it("rises when hits came and falls when they leave", () => {
    expect(course(sliding, 3).map((p) => [Math.round((p.at - Date.parse(at(0))) / 1000), p.used])).toEqual([
      [-20, 0], [0, 0], [0, 2], [30, 2], [30, 3], [60, 3], [60, 1], [90, 1], [90, 0], [100, 0],
    ]);
  });
  it("begins with what has no date", () => {
    expect(course({ ...sliding, hits: [], held: 4 }, 4)).toEqual([
      { at: Date.parse(at(-20)), used: 4 }, { at: Date.parse(at(100)), used: 4 },
    ]);
  });
  it("drains a bucket", () => {
    expect(course({ now: at(0), kind: "bucket", from: at(0), to: at(30), hits: [], drains: 10 }, 3)).toEqual([
      { at: Date.parse(at(0)), used: 3 }, { at: Date.parse(at(30)), used: 0 },
    ]);
  });
});

describe("fitsAt", () => {
  it("finds when enough has left", () => {
    expect(fitsAt(sliding, 3, 4)).toBe(Date.parse(at(40)));
    expect(fitsAt(sliding, 3, 3)).toBe(Date.parse(at(60)));
    expect(fitsAt(sliding, 3, 3, 3)).toBe(Date.parse(at(90)));
    expect(fitsAt(sliding, 3, 3, 4)).toBeUndefined();
  });
});

describe("mostOf", () => {
  it("is more than half", () => {
    expect([["a"], ["a", "b"], ["a", "b", "a"], ["a", "a", "b", "c"], []].map(mostOf)).toEqual(["a", undefined, "a", undefined, undefined]);
  });
});

describe("ends", () => {
  it("offers instants after now", () => {
    for (let h = 0; h < 24 * 14; h++) {
      const now = new Date(2026, 10, 20, h, 30);
      for (const e of ends(now)) expect(e.at.getTime()).toBeGreaterThan(now.getTime());
      const friday = ends(now).find((e) => e.name === "friday")!.at;
      expect([friday.getDay(), friday.getHours(), local(friday).slice(11)]).toEqual([5, 18, "18:00"]);
    }
  });
});

describe("ticks", () => {
  it("are round, inside, and not too many", () => {
    const from = Date.parse(at(7));
    for (const span of [30, 90, 3600, 86_400, 2_592_000, 31_536_000]) {
      const all = ticks(from, from + span * 1000, 6);
      expect(all.length).toBeGreaterThan(0);
      expect(all.length).toBeLessThanOrEqual(7);
      for (const t of all) expect(t).toBeGreaterThanOrEqual(from);
      expect(all[all.length - 1]).toBeLessThanOrEqual(from + span * 1000);
    }
  });
});

describe("past", () => {
  const judged = (of: Partial<Judged>): Judged => ({ rule: "a", kind: "limit", matched: true, allowed: false, numbers: true, hits: 1, used: 3, quota: 3, retry_after: 10, reset_after: 55, ...of });
  it("leaves out what came later, and has what has left", () => {
    // At 35 s there were the hits of 0 s and 30 s, and one that left at 38 s.
    const was = past(sliding, judged({ used: 4, quota: 4, retry_after: 3 }), at(35))!;
    expect([was.gone, was.from, was.to, was.held]).toEqual([1, at(-25), at(95), 0]);
    expect(was.hits.map((h) => [h.at, h.hits, h.leave])).toEqual([[at(-22), 1, at(38)], [at(0), 2, at(60)], [at(30), 1, at(90)]]);
    expect(fitsAt(was, 4, 4)).toBe(Date.parse(at(38)));
  });
  it("does not tell what it does not know", () => {
    expect(past(sliding, judged({ used: 1 }), at(35))).toBeUndefined(); // hits were given back
    expect(past({ ...sliding, kind: "held" }, judged({}), at(35))).toBeUndefined();
  });
  it("knows the end of a period and the level of a bucket", () => {
    const was = past({ ...sliding, kind: "fixed", from: at(0), to: at(60) }, judged({ reset_after: 5 }), at(-10))!;
    expect([was.from, was.to, was.hits]).toEqual([at(-65), at(-5), [{ at: at(-65), seconds: 1, hits: 3, leave: at(-5) }]]);
    expect(past({ ...sliding, kind: "bucket" }, judged({ reset_after: 30 }), at(0))).toMatchObject({ from: at(0), to: at(30), drains: 10 });
  });
});
