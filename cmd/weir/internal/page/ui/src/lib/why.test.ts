import { describe, expect, it } from "vitest";
import { course, ends, fitsAt, local, mostOf, ticks, type Leaving } from "./why";

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
