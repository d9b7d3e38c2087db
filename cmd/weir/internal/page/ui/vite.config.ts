import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

/** bundled are the packages in the files that are built. Their licences are in licenses.txt, which is served, too. */
const bundled = ["@preact/signals", "@preact/signals-core", "preact", "uplot"];

const licences = {
  name: "licences",
  generateBundle(this: { emitFile: (f: { type: "asset"; fileName: string; source: string }) => void }) {
    const source = bundled.map((name) => name + "\n\n" + readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim() + "\n").join("\n\n");
    this.emitFile({ type: "asset", fileName: "licenses.txt", source });
  },
};

/** keyless leaves the keys out of the Chinese texts: they are those of the English ones, and 2 % of the page. */
const keyless = {
  name: "keyless",
  enforce: "pre" as const,
  transform(code: string, id: string) {
    const [en, zh] = code.split("export const zh");
    if (!/\/src\/texts\/\w+\.ts$/.test(id) || !en!.includes("export const en = {\n")) return undefined;
    const read = (text: string) => {
      const found = new Map([...text.matchAll(/^ {2}("[^"]+"): +(".*"),$/gm)].map((m) => [m[1]!, m[2]!]));
      if (found.size !== text.match(/^ {2}"/gm)!.length) throw new Error(`${id}: a text is not on a line of its own`);
      return found;
    };
    const texts = read(zh!);
    const list = [...read(en!).keys()].map((key) => {
      if (!texts.has(key)) throw new Error(`${id}: ${key} is not in Chinese`);
      return texts.get(key)!;
    });
    return { code: `${en}const list = [${list.join()}];\nexport const zh = Object.fromEntries(Object.keys(en).map((key, i) => [key, list[i]]));\n`, map: null };
  },
};

// The same source gives the same files, whose names do not change: they are committed, and a
// reader of a diff sees what a change of the source did.
// The script and the style of a report are in its file, so they are one each: the mode report.
export default defineConfig(({ mode }) => {
  const report = mode === "report";
  return {
    base: "./",
    plugins: [licences, keyless],
    // Half a kilobyte less than what jsx: "automatic" imports.
    esbuild: { jsx: "transform", jsxFactory: "jsxNode", jsxFragment: "jsxFragment", jsxInject: 'import { h as jsxNode, Fragment as jsxFragment } from "preact"', legalComments: "none" },
    resolve: { alias: report ? [{ find: /^\.\.\/texts$/, replacement: new URL("src/texts/reports.ts", import.meta.url).pathname }] : [] },
    build: {
      outDir: process.env.OUT ?? "../built",
      emptyOutDir: !report,
      cssCodeSplit: !report,
      sourcemap: false,
      target: "es2022",
      minify: "terser", // 3 % smaller than what esbuild writes
      terserOptions: { ecma: 2020, module: true, compress: { passes: 3, unsafe_arrows: true } },
      modulePreload: false,
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      chunkSizeWarningLimit: 400,
      rollupOptions: {
        input: (report ? { report: "src/report.tsx" } : { app: "index.html" }) as Record<string, string>,
        output: {
          format: report ? ("iife" as const) : ("es" as const),
          entryFileNames: "[name].js",
          chunkFileNames: "[name].js",
          assetFileNames: report ? "report[extname]" : "[name][extname]",
        },
      },
    },
    // make a service with tokens listen there, then: npm run dev
    server: { proxy: { "/page/": "http://127.0.0.1:8081", "/v1/": "http://127.0.0.1:8081", "/ns/": "http://127.0.0.1:8081" } },
    test: { include: ["src/**/*.test.ts"] },
  };
});
