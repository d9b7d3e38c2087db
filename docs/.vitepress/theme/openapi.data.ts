// The description of the HTTP API, read when the site is built.
import { readFileSync } from "node:fs";
import { parse } from "yaml";

const file = new URL("../../../api/openapi.yaml", import.meta.url);

export default {
  watch: [file.pathname],
  load: () => parse(readFileSync(file, "utf8"), { merge: true }),
};
