// The description of the HTTP API, read when the site is built.
import { readFileSync } from "node:fs";
import { parse } from "yaml";

const file = new URL("../../../api/openapi.yaml", import.meta.url);

/** unwrap joins the lines of a paragraph in a description, each of which the renderer would break. */
function unwrap(name: string, value: unknown): unknown {
  return name === "description" && typeof value === "string" ? value.replaceAll(/(\S)\n(?![\n\-*|])/g, "$1 ") : value;
}

export default {
  watch: [file.pathname],
  load: () => parse(readFileSync(file, "utf8"), unwrap, { merge: true }),
};
