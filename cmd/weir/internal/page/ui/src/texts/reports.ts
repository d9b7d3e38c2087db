import * as common from "./common";
import * as report from "./report";

/** The texts of reports in each language: vite.config.ts has them in place of those of the page. */
export const en = { ...common.en, ...report.en };
export const zh: Record<keyof typeof en, string> = { ...common.zh, ...report.zh };
