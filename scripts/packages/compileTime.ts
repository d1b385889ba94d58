/** How long TypeScript takes for a small project with the `tsconfig.json` of the guide on projects of one's own. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { run } from "./packed.ts"

/** The guide promises 1.5 seconds on a machine that does nothing else. A machine that does may take this long, in milliseconds. */
const mostMillis = 10_000

const rounds = 3

/** The `tsconfig.json` that the guide shows. */
const guideConfig = (root: string): string => {
  const text = readFileSync(join(root, "docs/guide/own-project.md"), "utf8")
  const config = /```json\n(\{\s*"compilerOptions"[\s\S]*?)```/.exec(text)?.[1]
  if (config === undefined) throw new Error("docs/guide/own-project.md shows no tsconfig.json")
  return config
}

/** The shortest of three compilations of one program, in a folder of a project that has the packages installed. Prints it, and throws when it is far too long. */
export const timeCompiler = (consumer: string, program: string, root: string): void => {
  const folder = join(consumer, "small")
  mkdirSync(folder)
  writeFileSync(join(folder, "tsconfig.json"), guideConfig(root))
  copyFileSync(program, join(folder, "main.ts"))
  const times = Array.from({ length: rounds }, () => {
    const begin = performance.now()
    run(join(consumer, "node_modules/.bin/tsc"), ["-p", "."], folder)
    return performance.now() - begin
  })
  const millis = Math.round(Math.min(...times))
  console.log(`tsc of a small project: ${millis} ms`)
  if (millis > mostMillis) throw new Error(`tsc of a small project took ${millis} ms, allowed are ${mostMillis}`)
}
