/** What vite.config.ts needs of Node.js, whose types are not installed. */
declare module "node:fs" {
  export function readFileSync(path: string, encoding: "utf8"): string;
}

declare const process: { env: Record<string, string | undefined> };
