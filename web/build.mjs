// Builds the page into src/fairq/lab/static: one script and one style sheet, each with a hash in its name.
//   node build.mjs            minified, as it is shipped
//   node build.mjs --dev      with source maps, not minified
//   node build.mjs --tests    the tests of pure modules, into .tests/ or $FAIRQ_TESTS, for `node --test`
import { build } from "esbuild";
import { gzipSync } from "node:zlib";
import { cpSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const MOST = 150_000; // bytes of all files together, compressed
const here = dirname(fileURLToPath(import.meta.url));
const target = process.env.FAIRQ_STATIC ?? join(here, "..", "src", "fairq", "lab", "static");
const dev = process.argv.includes("--dev");

if (process.argv.includes("--tests")) {
  const out = process.env.FAIRQ_TESTS ?? join(here, ".tests");
  const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  rmSync(out, { recursive: true, force: true });
  await build({
    entryPoints: tests.map((name) => join(here, "test", name)),
    bundle: true, platform: "node", format: "esm", outdir: out, outExtension: { ".js": ".mjs" }, logLevel: "warning",
  });
  process.exit(0);
}

const made = join(here, ".out");
rmSync(made, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  bundle: true, format: "esm", target: "es2022", charset: "utf8",
  jsx: "automatic", jsxImportSource: "preact",
  entryNames: "[name]-[hash]", outdir: made, metafile: true,
  minify: !dev, sourcemap: dev ? "inline" : false, legalComments: "none", logLevel: "warning",
});
const names = Object.keys(metafile.outputs).map((path) => basename(path));
const script = names.find((name) => name.endsWith(".js"));
const style = names.find((name) => name.endsWith(".css"));
if (!script || !style) throw new Error("the build left no script or no style sheet");
let total = 0;
for (const name of [script, style]) {
  const packed = gzipSync(readFileSync(join(made, name)), { level: 9 });
  writeFileSync(join(made, `${name}.gz`), packed);
  total += packed.length;
  console.log(`${name}: ${packed.length} bytes compressed`);
}
if (!dev && total > MOST) throw new Error(`the page has ${total} bytes compressed, more than ${MOST}`);
cpSync(join(here, "icon.svg"), join(made, "icon.svg"));
writeFileSync(join(made, "manifest.json"), JSON.stringify({ script, style }));
mkdirSync(dirname(target), { recursive: true });
rmSync(target, { recursive: true, force: true });
renameSync(made, target);
