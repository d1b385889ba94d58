/**
 * Bundles the console with preact into one module of strings, `src/internal/console/bundle.ts`, which is checked in.
 */
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

const bundled = async (entry: string): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [at(`../console/${entry}`)],
    ...{ bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none" },
    ...{ format: "iife", target: ["chrome120", "firefox120", "safari17"], jsx: "automatic", jsxImportSource: "preact" }
  })
  return outputFiles[0]!.text.trim()
}

/** The text of the module. The same sources give the same text. */
export const moduleText = async (): Promise<string> => {
  const [script, style] = await Promise.all([bundled("main.tsx"), bundled("style.css")])
  return `/** The console, as \`pnpm console:build\` bundles it from \`packages/admin/console\`. It holds preact, under the MIT licence. */
export const script: string = ${JSON.stringify(script)}
export const style: string = ${JSON.stringify(style)}
`
}

export const modulePath = at("../src/internal/console/bundle.ts")

if (import.meta.main) writeFileSync(modulePath, await moduleText())
