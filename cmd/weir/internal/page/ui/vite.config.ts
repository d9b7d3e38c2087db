import { defineConfig } from "vite";

declare const process: { env: Record<string, string | undefined> };

// The same source gives the same files, whose names do not change: they are committed, and a
// reader of a diff sees what a change of the source did.
// The script and the style of a report are in its file, so they are one each: the mode report.
export default defineConfig(({ mode }) => {
  const report = mode === "report";
  return {
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  resolve: { alias: report ? [{ find: /^\.\.\/texts$/, replacement: new URL("src/texts/reports.ts", import.meta.url).pathname }] : [] },
  build: {
    outDir: process.env.OUT ?? "../built",
    emptyOutDir: !report,
    cssCodeSplit: !report,
    sourcemap: false,
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
