/**
 * In the place of `nest build`: Node strips types and knows no decorators, so swc compiles the files of this folder as it does for Nest.
 *
 *   node packages/examples/src/recipes/nest/start.ts
 */
import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { fileURLToPath } from "node:url"
import { transformSync } from "@swc/core"

registerHooks({
  load: (url, context, next) => {
    if (!url.startsWith(new URL(".", import.meta.url).href)) return next(url, context)
    const { code } = transformSync(readFileSync(fileURLToPath(url), "utf8"), {
      jsc: {
        parser: { syntax: "typescript", decorators: true },
        transform: { legacyDecorator: true, decoratorMetadata: true },
        target: "es2022"
      }
    })
    return { format: "module", source: code, shortCircuit: true }
  }
})

await import("./main.ts")
