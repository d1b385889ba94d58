/**
 * The defaults as a YAML file. The package publishes it as `eventbus-defaults.yaml`. It may be copied, or included and overridden; nothing requires it.
 */

import * as Shape from "./internal/schema/shape.ts"
import * as Names from "./internal/tree/names.ts"
import * as Settings from "./Settings.ts"

const indented = (lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.map((line) => (line === "" ? line : `  ${line}`))

/** A line for each key: keys with a default are set, other keys are comments. */
const lines = (shape: Shape.Struct): ReadonlyArray<string> =>
  Array.from(shape.keys).flatMap(([key, { shape: inner }]): ReadonlyArray<string> => {
    const name = Names.kebab(key)
    const comment = `# ${Shape.description(inner)}`
    if (inner._tag === "Struct") {
      const below = lines(inner)
      const isSet = below.some((line) => !line.trimStart().startsWith("#"))
      return ["", comment, isSet ? `${name}:` : `# ${name}:`, ...indented(below)]
    }
    const fallback = Shape.fallback(inner)
    return [comment, fallback === undefined ? `# ${name}:` : `${name}: ${JSON.stringify(fallback)}`]
  })

/** The text of the file. */
export const text: string = [
  "# Every default of a binding. What depends on another key, or is not set, is a comment.",
  "eventbus:",
  "  defaults:",
  ...indented(indented(lines(Shape.make(Settings.BindingDefaults.ast) as Shape.Struct))),
  ""
].join("\n")
