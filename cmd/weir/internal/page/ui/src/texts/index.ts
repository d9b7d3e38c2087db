import * as common from "./common";
import * as key from "./key";
import * as overview from "./overview";
import * as rules from "./rules";
import * as trial from "./try";
import * as why from "./why";

/** The texts of the page in each language. Each view has a file of its own. */
export const en = { ...common.en, ...overview.en, ...why.en, ...key.en, ...rules.en, ...trial.en };
export const zh: Record<keyof typeof en, string> = { ...common.zh, ...overview.zh, ...why.zh, ...key.zh, ...rules.zh, ...trial.zh };
