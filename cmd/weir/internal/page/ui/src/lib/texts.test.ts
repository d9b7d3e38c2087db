import { expect, test } from "vitest";
import * as common from "../texts/common";
import * as key from "../texts/key";
import * as overview from "../texts/overview";
import * as report from "../texts/report";
import * as rules from "../texts/rules";
import * as trial from "../texts/try";
import * as why from "../texts/why";
import { windowInWords } from "./words";

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
});
