import { expect, test } from "vitest";
import { curl } from "./example";

test("a command shows each character of a key", () => {
  const user = "a\u007f\u009b\u202e\u2028\u{e0001}'é";
  const command = curl("http://localhost:8080", "/v1/take", { user }, false);
  expect(command).toBe(`curl http://localhost:8080/v1/take -d '{"user":"a\\u007f\\u009b\\u202e\\u2028\\udb40\\udc01'\\''é"}'`);
});
