import { expect, test } from "vitest";
import { split, t } from "./i18n";

test("a number decides between two words, in texts and in sentences", () => {
  expect([1, 2].map((n) => t("rules.answer", { file: "f", n, ago: "now" }))).toEqual(["f has 1 rule, loaded now.", "f has 2 rules, loaded now."]);
  expect(split("rules.answer", { n: "1" })).toEqual([{ value: "file" }, " has ", { value: "n" }, " ", "rule", ", loaded ", { value: "ago" }, "."]);
});
