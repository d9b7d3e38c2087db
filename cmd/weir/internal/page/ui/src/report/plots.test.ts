import { expect, test } from "vitest";
import { powers, ticks } from "../lib/picture";
import { split } from "./plots";

const bounds = [1, 2, 5, 8, 10, 20, 50];

test("the gap is where no key peaks, around the limit", () => {
  expect(split({ quota: 8, bounds, keys: [78, 142, 0, 0, 0, 0, 1], above: 0 }, 8)).toEqual({ below: 220, above: 1, gap: [2, 5] });
  expect(split({ quota: 8, bounds, keys: [78, 142, 3, 0, 0, 0, 0], above: 2 }, 8)).toEqual({ below: 223, above: 2, gap: [3, 6] });
  expect(split({ quota: 8, bounds, keys: [1, 1, 1, 1, 1, 0, 0], above: 0 }, 8)).toEqual({ below: 4, above: 1 });
});

test("without keys on both sides there is no gap", () => {
  expect(split({ quota: 50, bounds, keys: [1, 0, 0, 0, 0, 0, 0], above: 0 }, 50)).toEqual({ below: 1, above: 0 });
  expect(split({ quota: 0, bounds, keys: [0, 0, 0, 4, 0, 0, 0], above: 0 }, 0)).toEqual({ below: 0, above: 4 });
});

test("axes reach the largest number", () => {
  expect(powers(142)).toEqual([0, 1, 10, 100, 1000]);
  expect(ticks(7)).toEqual([0, 2, 4, 6, 8]);
});
