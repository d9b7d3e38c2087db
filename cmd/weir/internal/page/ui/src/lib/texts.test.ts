import { expect, test } from "vitest";
import * as common from "../texts/common";
import * as key from "../texts/key";
import * as overview from "../texts/overview";
import * as rules from "../texts/rules";
import * as trial from "../texts/try";
import * as why from "../texts/why";
import { windowInWords } from "./words";

test("no two views have a text of the same name", () => {
  const names = [common, overview, why, key, rules, trial].flatMap((file) => Object.keys(file.en));
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

test("a window of holds is said in words", () => {
  expect(windowInWords("held 30s")).toBe("at the same time");
});
