import { expect, test } from "vitest";
import * as common from "../texts/common";
import * as key from "../texts/key";
import * as overview from "../texts/overview";
import * as report from "../texts/report";
import * as rules from "../texts/rules";
import * as trial from "../texts/try";
import * as why from "../texts/why";
import { ago } from "./format";
import { language } from "./i18n";
import { details, inUse, lengthOf, windowInWords } from "./words";

const views = [common, overview, why, key, rules, trial];

test("no two views have a text of the same name", () => {
  const names = views.flatMap((file) => Object.keys(file.en));
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

const sources = import.meta.glob<string>(["../**/*.{ts,tsx}", "!../texts/**", "!../**/*.test.ts"], { query: "?raw", import: "default", eager: true });

test("each text is used", () => {
  const all = Object.values(sources).join("");
  const families = [...all.matchAll(/`([a-z.]+\.)\$\{/g)].map((m) => m[1]!);
  const unused = [...views, report].flatMap((file) => Object.keys(file.en)).filter((name) => !all.includes(`"${name}"`) && !families.some((f) => name.startsWith(f)));
  expect(unused).toEqual([]);
});

test("a window of holds is said in words", () => {
  expect(windowInWords("held 30s")).toBe("at the same time");
  expect([inUse("held 30s"), inUse("sliding 30s"), inUse()]).toEqual([true, false, false]);
});

test("one hour is said as any hour", () => {
  expect(["sliding 1h", "sliding 15m", "fixed 1m", "aligned 1h", "bucket 1m"].map(windowInWords)).toEqual([
    "in any hour", "in any 15 min", "in the minute from the first hit", "in each hour of the clock", "each minute, spread evenly",
  ]);
  language.value = "zh";
  expect(windowInWords("sliding 1h")).toBe("任意 1 小时内");
  expect(ago(0, 180_000)).toBe("3 分钟前");
  language.value = "en";
});

test("a rule says from where on it is near its limit", () => {
  expect(details({ name: "a", kind: "limit", limit: 5, window: "sliding 1h", near: "80%" })).toEqual(["reports at 80% of the limit"]);
});

test("a window has a length, unless it is of what is in use or of ever", () => {
  expect(["10m0s", "bucket 10m burst 5", "cells 1h/4", "a day", "day", "held 5m", "ever"].map(lengthOf)).toEqual([600, 600, 3600, 86400, 86400, 0, 0]);
});
